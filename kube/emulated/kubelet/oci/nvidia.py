"""NVIDIA's container runtime: which GPUs a container asks for, and what it gets of the driver for them.

Source: nvidia-container-toolkit 1.17 (``internal/config/image``: visible devices from the environment or from mounts;
capabilities) and libnvidia-container 1.17 (``src/nvc_info.c``: the libraries and programs of each capability). As
installed by NVIDIA's GPU operator, both the environment and volume mounts are accepted. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mews.kube.deviceplugin.port import ContainerHook, DeviceNode, Mount
from mews.kube.emulated.kubelet.oci.cdi import qualified
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"
BY_MOUNTS = "/var/run/nvidia-container-devices"
"""A mount below this folder asks for the device that it is named by."""

SUPPORTED = ("compute", "compat32", "graphics", "utility", "video", "display", "ngx")
USUAL = ("compute", "utility")
"""What a container gets that does not say."""

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "utility": ("libnvidia-ml", "libnvidia-cfg", "libnvidia-nscq"),
    "compute": (
        "libcuda", "libcudadebugger", "libnvidia-opencl", "libnvidia-gpucomp", "libnvidia-ptxjitcompiler",
        "libnvidia-allocator", "libnvidia-pkcs11", "libnvidia-pkcs11-openssl3", "libnvidia-nvvm",
    ),
    "video": ("libvdpau_nvidia", "libnvidia-encode", "libnvidia-opticalflow", "libnvcuvid"),
    "graphics": ("libnvidia-eglcore", "libnvidia-glcore", "libnvidia-tls", "libnvidia-glsi", "libnvidia-rtcore"),
    "display": ("libnvidia-fbc",),
    "ngx": ("libnvidia-ngx",),
    "compat32": (),
}  # fmt: skip
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "utility": ("nvidia-smi", "nvidia-debugdump", "nvidia-persistenced"),
    "compute": ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server"),
}

CONTROL_DEVICES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
MODESET = "/dev/nvidia-modeset"
PARTS = "/dev/nvidia-caps/"
"""The folder with the nodes of MIG devices' capabilities."""
_HOOK = "/usr/bin/nvidia-container-cli"


class UnknownGpuError(Exception):
    """What a container asks for and the node cannot give; the message is the runtime's."""


class NodeGpu(Struct, frozen=True):
    """A GPU as its node's driver numbers it."""

    index: int
    uuid: str
    bus_id: str
    minor: int


class NodeMig(Struct, frozen=True):
    """A MIG device of a GPU, as its node's driver numbers it, with the device nodes of its capabilities."""

    gpu: NodeGpu
    index: int
    uuid: str
    nodes: tuple[str, ...]


class DriverFiles(Struct, frozen=True):
    """What a node's driver root has, by absolute path in it: libraries with their version, and programs."""

    libraries: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()


def requested(env: Mapping[str, str], mounts: Iterable[str]) -> tuple[str, ...] | None:
    """Return what the container asks for: words, () for the driver alone, None for nothing; mounts count first."""
    prefix = f"{BY_MOUNTS}/"
    mounted = sorted(path.removeprefix(prefix) for path in mounts if path.startswith(prefix))
    if mounted:
        return tuple(mounted)
    text = env.get(VISIBLE, "")
    if text in ("", "void"):
        return None
    return () if text == "none" else tuple(word for word in text.split(",") if word)


def cdi_names(words: Sequence[str]) -> tuple[str, ...]:
    """Return the qualified CDI names among what is asked for; with one of them the runtime works in its CDI mode."""
    return tuple(word for word in words if qualified(word) is not None)


def names_parts(words: Sequence[str]) -> bool:
    """Return whether MIG devices are among what is asked for: by their UUIDs, or as ``0:1``."""
    return any(_names_part(word) for word in words)


def _names_part(word: str) -> bool:
    gpu, _, part = word.partition(":")
    return word.upper().startswith("MIG-") or (gpu.isdecimal() and part.isdecimal())


def chosen(words: Sequence[str], gpus: Sequence[NodeGpu]) -> tuple[NodeGpu, ...]:
    """Return the GPUs of those words: ``all``, indexes, UUIDs, bus addresses; words of MIG devices are left out.

    Raises UnknownGpuError.
    """
    if "all" in words:
        return tuple(gpus)
    wanted: dict[str, NodeGpu] = {}
    for word in words:
        if _names_part(word):
            continue
        found = next((gpu for gpu in gpus if word.lower() in _names(gpu)), None)
        if found is None:
            raise UnknownGpuError(f"nvidia-container-cli: device error: {word}: unknown device: unknown")
        wanted[found.uuid] = found
    return tuple(wanted.values())


def chosen_parts(words: Sequence[str], parts: Sequence[NodeMig]) -> tuple[NodeMig, ...]:
    """Return the MIG devices of those words.

    Raises UnknownGpuError.
    """
    wanted: dict[str, NodeMig] = {}
    for word in words:
        if not _names_part(word):
            continue
        found = next((one for one in parts if word.lower() in (one.uuid.lower(), f"{one.gpu.index}:{one.index}")), None)
        if found is None:
            raise UnknownGpuError(f"nvidia-container-cli: device error: {word}: unknown device: unknown")
        wanted[found.uuid] = found
    return tuple(wanted.values())


def _names(gpu: NodeGpu) -> tuple[str, ...]:
    return str(gpu.index), gpu.uuid.lower(), gpu.bus_id.lower(), f"0000{gpu.bus_id.lower()}"


def capabilities(text: str | None) -> tuple[str, ...]:
    """Return the capabilities of a variable's text.

    Raises UnknownGpuError for one that there is not.
    """
    if not text:
        return USUAL
    words = tuple(word for word in text.split(",") if word)
    if "all" in words:
        return SUPPORTED
    if any(word not in SUPPORTED for word in words):
        raise UnknownGpuError(f"unsupported capabilities found in '{text}' (allowed '{','.join(SUPPORTED)}')")
    return words


def driver_edits(
    gpus: Sequence[NodeGpu],
    wanted: Sequence[str],
    files: DriverFiles,
    *,
    parts: Sequence[NodeMig] = (),
    everything: bool = False,
) -> ContainerEdits:
    """Device nodes of GPUs and MIG devices, libraries and programs of the capabilities; ``everything``: asked for as
    ``all``."""
    stems = {stem for capability in wanted for stem in LIBRARIES[capability]}
    names = {name for capability in wanted for name in PROGRAMS.get(capability, ())}
    paths = [path for path in files.libraries if _stem(path) in stems]
    paths += [path for path in files.programs if path.rpartition("/")[2] in names]
    drawing = (MODESET,) if {"graphics", "display"} & set(wanted) else ()
    nodes = [path for path in (*CONTROL_DEVICES, *drawing) if path in files.devices]
    nodes += dict.fromkeys(f"/dev/nvidia{gpu.minor}" for gpu in (*gpus, *(part.gpu for part in parts)))
    nodes += dict.fromkeys(node for part in parts for node in part.nodes)
    if everything:
        nodes += [path for path in files.devices if path.startswith(PARTS)]
    return ContainerEdits(
        mounts=tuple(Mount(path, path, read_only=True) for path in paths),
        devices=tuple(DeviceNode(path, path) for path in nodes),
        hooks=tuple(
            _ldconfig(folder) for folder in sorted({path.rpartition("/")[0] for path in paths if ".so" in path})
        ),
    )


def _ldconfig(folder: str) -> ContainerHook:
    """The tool runs ldconfig itself, so that the libraries are found by their short names."""
    return ContainerHook("prestart", _HOOK, (_HOOK, "update-ldcache", "--folder", folder))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".so")[0]
