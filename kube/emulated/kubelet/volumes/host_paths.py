"""Where the path of a ``hostPath`` volume is on this machine, and whether it may be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from msgspec import Struct

from mews.kube.api.objects import Object, node_name_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.host_access import refusal
from mews.kube.emulated.kubelet.node_folders import placed

_REASON = "CreateContainerConfigError"
_TYPES: Mapping[str, tuple[str, Callable[[Path], bool]]] = {
    "Directory": ("is not a directory", Path.is_dir),
    "DirectoryOrCreate": ("is not a directory", Path.is_dir),
    "File": ("is not a file", Path.is_file),
    "FileOrCreate": ("is not a file", Path.is_file),
    "Socket": ("is not a socket", Path.is_socket),
    "CharDevice": ("is not a character device", Path.is_char_device),
    "BlockDevice": ("is not a block device", Path.is_block_device),
}
_OF_THE_MACHINE = ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "usr")
"""Folders that say what a machine is. Pods read those of this machine where the emulated host has none; what they keep
on their node lies elsewhere."""
_OWN = "rootfs"
"""In the folder of a node: what else pods mount of it."""


class HostPath(Struct, frozen=True):
    """A file or folder of this machine; ``read_only``: whatever the mount says."""

    path: Path
    read_only: bool = False


class HostPaths(Protocol):
    """Finds them."""

    def find(self, pod: Object, name: str, volume: Mapping[str, Any]) -> HostPath:
        """Return that of the volume of that name with the fields ``path`` and ``type``; made where its type says so.

        Raises StartError.
        """
        ...


class EngineHostPaths:
    """For containers of an engine: those of the node, by ``place``; others of this machine only where ``allowed``."""

    def __init__(self, place: Callable[[str], Path], *, allowed: bool = False) -> None:
        self._place = place
        self._allowed = allowed

    def find(self, pod: Object, name: str, volume: Mapping[str, Any]) -> HostPath:
        """Return that of the node where it has that path, else of this machine."""
        path, kind = self._place(str(volume["path"])), str(volume.get("type") or "")
        if not self._allowed and path == Path(volume["path"]):
            raise StartError(_REASON, refusal(f'volume "{name}": hostPath: {path}'))
        return HostPath(_checked(path, name, kind, shown=path))


class NodeHostPaths:
    """For processes: the kubelet's paths are in the node's folder (``nodes``), others in the host's files (``roots``),
    or read-only of this machine where they say what a machine is. All others are kept in the node's folder."""

    def __init__(self, nodes: Callable[[str], Path], roots: Callable[[str], Path | None]) -> None:
        self._nodes = nodes
        self._roots = roots

    def find(self, pod: Object, name: str, volume: Mapping[str, Any]) -> HostPath:
        """Return that of the pod's node."""
        path, kind, node = PurePosixPath(str(volume["path"])), str(volume.get("type") or ""), node_name_of(pod)
        if ".." in path.parts:
            raise StartError(_REASON, f'volume "{name}": hostPath: {path}: must not contain ".."')
        folder = self._nodes(node)
        found = placed(folder, str(path))
        if found is not None:
            return HostPath(_checked(found, name, kind or "DirectoryOrCreate", shown=path, strict=bool(kind)))
        below = path.relative_to("/") if path.is_absolute() else path
        root = self._roots(node)
        if below.parts and root is not None and (root / below).exists():
            return HostPath(_checked(root / below, name, kind, shown=path))
        if Path(path).exists() and (not below.parts or below.parts[0] in _OF_THE_MACHINE):
            return HostPath(_checked(Path(path), name, kind, shown=path), read_only=True)
        own = folder / _OWN / below
        return HostPath(_checked(own, name, kind or "DirectoryOrCreate", shown=path, strict=bool(kind)))


def _checked(path: Path, name: str, kind: str, *, shown: Path | PurePosixPath, strict: bool = True) -> Path:
    """Return the path, if it is what the volume's type says (pkg/volume/hostpath, NewHostPathType's checks). A volume
    without a type is made by the container runtime, and may be anything where it is there (``strict``)."""
    if kind == "DirectoryOrCreate" and not path.exists():
        path.mkdir(parents=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    text = ""
    if not path.exists():
        text = f"{shown} does not exist"
    elif strict and kind in _TYPES and not _TYPES[kind][1](path):
        text = f"{shown} {_TYPES[kind][0]}"
    if text:
        text = f'MountVolume.SetUp failed for volume "{name}" : hostPath type check failed: {text}'
        raise StartError(_REASON, text)
    return path
