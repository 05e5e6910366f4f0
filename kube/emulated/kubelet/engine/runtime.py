"""A Runtime whose containers are those of real images: one node's, run by the engine of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mews.kube.api.objects import uid_of
from mews.kube.client.port import KubeApi
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.engine.client import ContainerEngine, LocalImage, explained
from mews.kube.emulated.kubelet.engine.container import ContainerTerminal, EngineContainer
from mews.kube.emulated.kubelet.engine.creation import ContainerAdditions, check_supported, container_spec, creation_of
from mews.kube.emulated.kubelet.engine.node_files import additions_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.hosts_files import HostsFiles
from mews.kube.emulated.kubelet.in_cluster import FOLDER, InCluster
from mews.kube.emulated.kubelet.oci.container_root import DEVICES, nvml_rights
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.output import OutputLog
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.volumes.host_paths import EngineHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

_CLOSE_S = 30.0


class EngineRuntime:
    """Starts the containers of one node; logs, volumes and hosts files lie below ``folder``. ``kube`` reads what
    volumes are made of. ``host_allowed``: pods may ask for access to this machine; ``provisioned``: where the
    volumes of claims lie."""

    def __init__(
        self,
        engine: ContainerEngine,
        node: NodeDriver,
        folder: Path,
        *,
        kube: Callable[[], KubeApi],
        in_cluster: InCluster | None = None,
        names: Path | None = None,
        host_allowed: bool = False,
        provisioned: Path | None = None,
        speed: float = 1.0,
    ) -> None:
        self._engine = engine
        self._host_allowed = host_allowed
        self._node = node
        self._folder = folder
        self._in_cluster = in_cluster
        self._hosts = HostsFiles(folder, names)
        paths = EngineHostPaths(node.place, allowed=host_allowed)
        self._volumes = PodVolumes(kube, folder, paths, provisioned=provisioned, tokens=in_cluster, speed=speed)
        self._running: dict[EngineContainer, str] = {}

    async def start(self, launch: Launch) -> EngineContainer:
        """Create and start one container.

        Raises StartError in the words of the engine, of the kubelet or of NVIDIA's runtime.
        """
        from docker.errors import APIError
        from requests.exceptions import RequestException

        pod, spec = launch.pod, container_spec(launch.pod, launch.container)
        check_supported(pod, spec, host_allowed=self._host_allowed)
        device_files = await asyncio.to_thread(additions_of, launch.edits, self._node)
        variables, mounts = await self._pod_files(launch)
        rights = nvml_rights(pod, launch.container) if DEVICES in device_files.env else {}
        env = {**variables, **device_files.env, **rights}
        added = replace(device_files, mounts=(*mounts, *device_files.mounts), env=env)
        log = OutputLog(_made(self._folder / uid_of(pod) / "logs" / launch.container) / f"{launch.attempt}.log")
        try:
            image = await self._engine.image(launch.image.container)
            if image is None:
                text = f'failed to create containerd container: image "{launch.image.container}": not found'
                raise StartError("CreateContainerError", text)
            started = await self._started(launch, image, added, log)
        except (APIError, RequestException) as error:
            log.end()
            raise StartError("CreateContainerError", explained(error)) from error
        except BaseException:
            log.end()
            raise
        self._running = {each: uid for each, uid in self._running.items() if not each.ended}
        self._running[started] = uid_of(pod)
        self._hosts.keep(self._running.values())
        return started

    async def _started(
        self, launch: Launch, image: LocalImage, added: ContainerAdditions, log: OutputLog
    ) -> EngineContainer:
        from docker.errors import APIError

        spec = container_spec(launch.pod, launch.container)
        terminal = ContainerTerminal(bool(spec.get("tty")), bool(spec.get("stdin")), bool(spec.get("stdinOnce")))
        made = await self._engine.call("create_container", **creation_of(launch, image, added, self._engine.labels))
        container = str(made["Id"])
        streams = {"stdin": int(terminal.stdin), "stdout": 1, "stderr": 1, "stream": 1}
        try:
            stream = await self._engine.stream("attach_socket", container, params=streams)
            try:
                await self._engine.call("start", container)
                state: Mapping[str, Any] = (await self._engine.call("inspect_container", container))["State"]
            except BaseException:
                stream.close()
                raise
        except BaseException as error:
            await asyncio.shield(self._engine.call("remove_container", container, v=True, force=True))
            if isinstance(error, APIError):
                raise StartError("RunContainerError", explained(error)) from error
            raise
        return EngineContainer(
            self._engine,
            container,
            pid=int(state.get("Pid") or 0),
            log=log,
            stream=stream,
            terminal=terminal,
            stop_signal=image.stop_signal,
        )

    async def _pod_files(self, launch: Launch) -> tuple[Mapping[str, str], list[Mount]]:
        """Return what every container of a cluster finds: its API's address, its account, its hosts file, its
        volumes."""
        variables: Mapping[str, str] = {}
        mounts: list[Mount] = []
        if not launch.pod["spec"].get("hostNetwork"):
            mounts.append(Mount("/etc/hosts", str(self._hosts.file(launch.pod, launch.ip))))
        if self._in_cluster is not None:
            variables, folder = self._in_cluster.variables(), await self._in_cluster.account(launch)
            if folder is not None:
                folder.chmod(0o755)  # whoever the container runs as; nobody else gets into the folder around it
                mounts.append(Mount(FOLDER, str(folder), read_only=True))
        own = await self._volumes.mounts(launch.pod, launch.container, launch.env)
        return {name: value for name, value in variables.items() if name not in launch.env}, [*mounts, *own]

    def forget(self, uid: str) -> None:
        """Of a sandbox nothing is kept here."""

    async def close(self) -> None:
        """End every container; one whose engine does not answer is left to whoever removes what this run left."""
        containers = list(self._running)
        stopping = [asyncio.create_task(container.stop(0.0)) for container in containers]
        if stopping:
            await asyncio.wait(stopping, timeout=_CLOSE_S)
        for container in containers:
            container.abandon()
        await asyncio.gather(*stopping, return_exceptions=True)
        self._running.clear()
        await self._hosts.close()
        await self._volumes.close()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
