"""A Runtime that does to containers what a node's container runtime does before they start: CDI, then NVIDIA's hook."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import annotations_of, uid_of
from mews.kube.deviceplugin.port import DeviceNode
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.oci import nvidia
from mews.kube.emulated.kubelet.oci.cdi import CdiError, annotated, resolve
from mews.kube.emulated.kubelet.oci.container_root import DEVICES, UnknownHookError, lay_out, nvml_rights
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits, combined
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch, Process, Runtime


class PreparedContainer(Struct, frozen=True):
    """What a container is changed by, and the GPUs that it can use then."""

    edits: ContainerEdits
    gpus: tuple[nvidia.NodeGpu, ...]
    parts: tuple[nvidia.NodeMig, ...]
    """The MIG devices that it can use."""
    driver: bool
    """Whether it has NVIDIA's driver, with or without GPUs."""


def prepare(launch: Launch, node: NodeDriver) -> PreparedContainer:
    """Return what the runtime does to a container; nothing is read of the node for one that asks for nothing.

    Raises StartError in the words of containerd and NVIDIA's runtime.
    """
    given = launch.allocation
    try:
        names = (*given.cdi_devices, *annotated(given.annotations), *annotated(annotations_of(launch.pod)))
        cdi = resolve(names, node.cdi_folders()) if names else ContainerEdits()
    except CdiError as error:
        raise StartError("CreateContainerError", f"CDI device injection failed: {error}") from error
    own = ContainerEdits(mounts=given.mounts, devices=given.devices, hooks=given.hooks)
    env = {**launch.env, **cdi.env}
    words = nvidia.requested(env, (mount.container_path for mount in given.mounts))
    hook, gpus, parts = ContainerEdits(), tuple[nvidia.NodeGpu, ...](), tuple[nvidia.NodeMig, ...]()
    try:
        if words is not None and nvidia.cdi_names(words):
            hook = resolve(nvidia.cdi_names(words), node.cdi_folders())
        elif words is not None:
            wanted = nvidia.capabilities(env.get(nvidia.CAPABILITIES))
            gpus = nvidia.chosen(words, _gpus(node))
            parts = nvidia.chosen_parts(words, _parts(node)) if nvidia.names_parts(words) else ()
            hook = nvidia.driver_edits(gpus, wanted, node.files(), parts=parts, everything="all" in words)
    except (CdiError, nvidia.UnknownGpuError) as error:
        raise StartError("RunContainerError", _failed(str(error))) from error
    edits = combined((own, cdi, hook))
    nodes = {device.container_path for device in edits.devices}
    if "/dev/nvidiactl" in nodes and not gpus and not parts:
        gpus = tuple(gpu for gpu in _gpus(node) if f"/dev/nvidia{gpu.minor}" in nodes)
        if any(path.startswith(nvidia.PARTS) for path in nodes):
            parts = tuple(part for part in _parts(node) if nodes.issuperset(part.nodes))
            gpus = tuple(gpu for gpu in gpus if gpu not in {part.gpu for part in parts})
    return PreparedContainer(edits, gpus, parts, "/dev/nvidiactl" in nodes)


def _parts(node: NodeDriver) -> tuple[nvidia.NodeMig, ...]:
    try:
        return node.parts()
    except OSError as error:
        raise nvidia.UnknownGpuError(f"nvidia-container-cli: initialization error: {error}: unknown") from error


def _gpus(node: NodeDriver) -> tuple[nvidia.NodeGpu, ...]:
    try:
        return node.gpus()
    except OSError as error:
        text = "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
        raise nvidia.UnknownGpuError(text) from error


def _failed(text: str) -> str:
    return f"failed to create containerd task: failed to create shim task: OCI runtime create failed: {text}"


class OciRuntime:
    """Starts containers in another Runtime, changed as one node's runtime would; ``folder`` is for their roots."""

    def __init__(self, runtime: Runtime, node: NodeDriver, folder: Path) -> None:
        self._runtime = runtime
        self._node = node
        self._folder = folder

    async def start(self, launch: Launch) -> Process:
        """Start one container.

        Raises StartError.
        """
        prepared = await asyncio.to_thread(prepare, launch, self._node)
        if prepared.edits.empty:
            return await self._runtime.start(launch)
        folder = self._folder / uid_of(launch.pod) / launch.container
        try:
            found = await asyncio.to_thread(lay_out, folder, prepared.edits, self._node.place)
        except FileNotFoundError as error:
            text = f'failed to generate spec: lstat "{error.filename}": no such file or directory'
            raise StartError("CreateContainerError", text) from error
        except (UnknownHookError, OSError) as error:
            raise StartError("CreateContainerError", str(error)) from error
        env = {**launch.env, **prepared.edits.env}
        for name, usual in (("PATH", SEARCH_PATH), ("LD_LIBRARY_PATH", "")):
            if found[name]:
                env[name] = ":".join(filter(None, (*found[name], env.get(name, usual))))
        if prepared.driver:
            env.update({DEVICES: str(folder / "dev"), **nvml_rights(launch.pod, launch.container)})
        edits = ContainerEdits(devices=tuple(self._found(device) for device in prepared.edits.devices))
        return await self._runtime.start(replace(launch, env=env, gpus=_used(launch, prepared), edits=edits))

    def _found(self, device: DeviceNode) -> DeviceNode:
        """Return the same, by where it is on this machine."""
        return replace(device, host_path=os.path.realpath(self._node.place(device.host_path)))

    def forget(self, uid: str) -> None:
        """The pod's sandbox is down."""
        self._runtime.forget(uid)

    async def close(self) -> None:
        """End every container."""
        await self._runtime.close()


class EditingRuntime:
    """Does the same for containers that have a root of their own: they are started with the edits in their launch.
    Without a ``node`` there is no driver, and they get what device plugins give."""

    def __init__(self, runtime: Runtime, node: NodeDriver | None) -> None:
        self._runtime = runtime
        self._node = node

    async def start(self, launch: Launch) -> Process:
        """Start one container.

        Raises StartError.
        """
        if self._node is None:
            given = ContainerEdits(mounts=launch.allocation.mounts, devices=launch.allocation.devices)
            return await self._runtime.start(replace(launch, edits=given))
        prepared = await asyncio.to_thread(prepare, launch, self._node)
        return await self._runtime.start(replace(launch, edits=prepared.edits, gpus=_used(launch, prepared)))

    def forget(self, uid: str) -> None:
        """The pod's sandbox is down."""
        self._runtime.forget(uid)

    async def close(self) -> None:
        """End every container."""
        await self._runtime.close()


def _used(launch: Launch, prepared: PreparedContainer) -> tuple[str, ...] | None:
    used = (*(gpu.uuid for gpu in prepared.gpus), *(part.uuid for part in prepared.parts))
    return used if used and _allocated(launch) else None


def _allocated(launch: Launch) -> bool:
    """Return whether a device plugin gave something: who only looks at GPUs that it asked for itself computes on
    none."""
    given = launch.allocation
    return bool(given.cdi_devices or given.annotations or given.mounts or given.devices or nvidia.VISIBLE in given.envs)
