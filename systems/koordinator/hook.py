"""What koordlet makes of a container before it is created. Pure (contract koordinator.md section 2).

The devices stand in the pod's annotation and are the pod's: each of its containers gets them, as koordlet's gpu-hook
does it. What a device plugin gave the container of other GPUs goes: device nodes, mounts and CDI names that ask
NVIDIA's runtime for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.runtimehook.port import HookedContainer, HookError, HookRequest
from mews.kube.system.facility import ContainerExtras
from mews.systems.koordinator.allocations import DeviceAllocation, parse_allocations
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.host_devices import HostDevice
from mews.systems.koordinator.names import ALLOCATED, CORE, GPU, HAMI_CORE, ISOLATION, MEMORY, RATIO, RDMA, VISIBLE
from mews.systems.koordinator.visible import IndexedGpu, visible_text

MEMORY_LIMIT, SM_LIMIT = "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_SM_LIMIT"
RDMA_MANAGER = "/dev/infiniband/rdma_cm"
_BY_MOUNTS = "/var/run/nvidia-container-devices"
"""A mount below this folder asks NVIDIA's runtime for the device that it is named by."""
_CDI = "nvidia.com/gpu="
_CDI_KEY = "cdi.k8s.io/"
_CONTROL = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


class HookedNode(Struct, frozen=True):
    """What the hook knows of its node: the GPUs, and by (type, minor) everything else; ``device_folder`` as in
    ``NodeAccess``."""

    gpus: tuple[IndexedGpu, ...] = ()
    others: Mapping[tuple[str, int], HostDevice] = field(default_factory=dict)
    extras: ContainerExtras = ContainerExtras()
    device_folder: str = ""


def allocated(annotations: Mapping[str, str]) -> tuple[DeviceAllocation, ...]:
    """Return the devices of a pod by its annotations; () without any.

    Raises HookError.
    """
    try:
        text = annotations.get(ALLOCATED, "")
        return parse_allocations(text) if text else ()
    except BadDeviceError as error:
        raise HookError(str(error)) from error


def answer(request: HookRequest, node: HookedNode) -> HookedContainer:
    """Return the container as it is to be made; as it was asked for where the pod has no annotation.

    Raises HookError for an annotation that cannot be read, or that names a GPU by a minor that the node has not.
    """
    asked, given = request.asked, allocated(request.pod_annotations)
    gpus = [each for each in given if each.type == GPU]
    if gpus:
        found = [_gpu(each, node.gpus) for each in gpus]
        asked = _follow(asked, found, node)
        env = {**asked.env, VISIBLE: visible_text(found, node.gpus), **_limits(request.pod_labels, gpus)}
        asked = replace(asked, env=env)
    others = [path for each in given if each.type != GPU for path in _nodes(each, node.others)]
    if any(each.type == RDMA for each in given):
        others.append(RDMA_MANAGER)
    return _with_nodes(asked, dict.fromkeys(others), node.device_folder)


def _with_nodes(asked: HookedContainer, paths: Iterable[str], folder: str) -> HookedContainer:
    there = {device.container_path for device in asked.devices} | {mount.container_path for mount in asked.mounts}
    added = [path for path in paths if path not in there]
    if not added:
        return asked
    if folder:
        return replace(asked, mounts=(*asked.mounts, *(Mount(path, f"{folder}{path}") for path in added)))
    return replace(asked, devices=(*asked.devices, *(DeviceNode(path, path) for path in added)))


def _nodes(allocation: DeviceAllocation, others: Mapping[tuple[str, int], HostDevice]) -> tuple[str, ...]:
    """Return the device nodes that come with a device: of its virtual functions, where such were given, and not its
    own."""
    device = others.get((allocation.type, allocation.minor))
    if device is None:
        return ()
    if not allocation.functions:
        return device.nodes
    buses = {function.minor: function.bus for function in device.functions}
    given = [function.bus or buses.get(function.minor, "") for function in allocation.functions]
    return tuple(path for bus in given for path in device.function_nodes.get(bus, ()))


def _gpu(allocation: DeviceAllocation, node: Sequence[IndexedGpu]) -> IndexedGpu:
    """Return the GPU that was meant: minors are given anew by a driver, UUIDs never."""
    for gpu in node:
        if gpu.uuid == allocation.id or (not allocation.id and gpu.minor == allocation.minor):
            return gpu
    if allocation.id:
        # Let the container runtime refuse it, in its own words, rather than start the container without.
        return IndexedGpu(-1, allocation.minor, allocation.id)
    raise HookError(f"{ALLOCATED}: gpu minor {allocation.minor}: this node has {_minors(node)}")


def _minors(node: Iterable[IndexedGpu]) -> str:
    return ", ".join(str(gpu.minor) for gpu in node) or "none"


def _limits(labels: Mapping[str, str], gpus: Sequence[DeviceAllocation]) -> dict[str, str]:
    """Return what HAMi-core reads in a container that has a part of a GPU."""
    first = gpus[0].resources
    if labels.get(ISOLATION) != HAMI_CORE or first.get(RATIO, 100) >= 100:
        return {}
    found = {}
    if MEMORY in first:
        found[MEMORY_LIMIT] = str(first[MEMORY])
    if CORE in first:
        found[SM_LIMIT] = str(first[CORE])
    return found


def _follow(asked: HookedContainer, gpus: Sequence[IndexedGpu], node: HookedNode) -> HookedContainer:
    """Device nodes, mounts and CDI names of the GPUs given in place of those that were asked for."""
    devices = [d for d in asked.devices if not _is_gpu_node(d.host_path)]
    if len(devices) < len(asked.devices):
        devices += [DeviceNode(f"/dev/nvidia{gpu.minor}", f"/dev/nvidia{gpu.minor}") for gpu in gpus]
    mounts = [m for m in asked.mounts if not m.container_path.startswith(f"{_BY_MOUNTS}/")]
    if len(mounts) < len(asked.mounts):
        mounts += [Mount(f"{_BY_MOUNTS}/{gpu.uuid}", "/dev/null") for gpu in gpus]
    cdi = [name for name in asked.cdi_devices if not name.startswith(_CDI)]
    if len(cdi) < len(asked.cdi_devices):
        cdi += [f"{_CDI}{gpu.uuid}" for gpu in gpus]
    paths = {mount.container_path for mount in mounts}
    return HookedContainer(
        env={**node.extras.envs, **asked.env},
        args=asked.args,
        mounts=(*mounts, *(m for m in node.extras.mounts if m.container_path not in paths)),
        devices=tuple(devices),
        annotations={key: _cdi_text(key, text, gpus) for key, text in asked.annotations.items()},
        cdi_devices=tuple(cdi),
    )


def _is_gpu_node(path: str) -> bool:
    name = path.removeprefix("/dev/")
    return name != path and name not in _CONTROL and name.startswith("nvidia") and name[6:].isdecimal()


def _cdi_text(key: str, text: str, gpus: Sequence[IndexedGpu]) -> str:
    """Return an annotation by which a device plugin asks for CDI devices, with those of other GPUs replaced."""
    if not key.startswith(_CDI_KEY):
        return text
    names = text.split(",")
    others = [name for name in names if not name.startswith(_CDI)]
    if len(others) == len(names):
        return text
    return ",".join((*others, *(f"{_CDI}{gpu.uuid}" for gpu in gpus)))
