"""A container's root folder: what was mounted into it and its device nodes, as links to the node's files.

A process of this machine has no root of its own, so its variables lead it there: PATH and LD_LIBRARY_PATH to the
folders of what was mounted, ``MEWS_NVML_DEV`` to its device nodes, by which our NVML library knows its GPUs.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from mews.kube.api.objects import Object, containers_of, init_containers_of
from mews.kube.deviceplugin.port import ContainerHook
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits

DEVICES = "MEWS_NVML_DEV"
"""Names the folder with a container's device nodes to the NVML library."""
RIGHTS = "MEWS_NVML_RIGHTS"
"""``none``: the NVML library sets nothing for this container."""

NOTHING_TO_DO = (
    "apply-cuda-memory-limits",
    "chmod",
    "disable-device-node-modification",
    "enable-cuda-compat",
    "update-application-profile",
)
"""Hooks of NVIDIA's toolkit that change nothing for a process without CUDA: modes of folders, forward compatibility and
limits of CUDA, settings of the driver and for its applications."""


class UnknownHookError(Exception):
    """A hook that cannot be played; the message names it."""


def nvml_rights(pod: Object, container: str) -> Mapping[str, str]:
    """Return the variable for a container whose processes may not change GPUs: NVIDIA's driver takes that from
    processes with CAP_SYS_ADMIN alone."""
    found = (*init_containers_of(pod), *containers_of(pod))
    spec = next((each for each in found if each["name"] == container), {})
    security = spec.get("securityContext") or {}
    added = {str(name).upper().removeprefix("CAP_") for name in (security.get("capabilities") or {}).get("add") or ()}
    return {} if security.get("privileged") or added & {"ALL", "SYS_ADMIN"} else {RIGHTS: "none"}


def lay_out(folder: Path, edits: ContainerEdits, place: Callable[[str], Path]) -> Mapping[str, list[str]]:
    """Make the folder show the edits: ``place`` says where the node's files are.

    Returns the folders for PATH and for LD_LIBRARY_PATH. Raises UnknownHookError, FileNotFoundError for a device node
    that the node does not have, OSError.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "dev").mkdir(parents=True)
    for mount in edits.mounts:
        _link(folder, mount.container_path, place(mount.host_path))
    for device in edits.devices:
        there = place(device.host_path)
        there.lstat()
        _link(folder, device.container_path, there)
    searched = {_parent(mount.container_path): None for mount in edits.mounts if ".so" in _name(mount.container_path)}
    for hook in edits.hooks:
        _play(folder, hook, searched)
    programs = {_parent(mount.container_path): None for mount in edits.mounts if _is_program(mount.container_path)}
    return {
        "PATH": [f"{folder}{path}" for path in programs],
        "LD_LIBRARY_PATH": [f"{folder}{path}" for path in searched],
    }


def _play(folder: Path, hook: ContainerHook, searched: dict[str, None]) -> None:
    words = [word for word in hook.args[1:] if word != "hook"]
    name, arguments = (words[0], words[1:]) if words else (hook.path, [])
    if name == "create-symlinks":
        for link in _values(arguments, "--link"):
            target, _, path = link.partition("::")
            _link(folder, path, Path(target))
    elif name == "update-ldcache":
        for path in _values(arguments, "--folder"):
            searched[path] = None
            _sonames(folder, path)
    elif name == "create-soname-symlinks":
        for path in _values(arguments, "--folder"):
            _sonames(folder, path)
    elif name not in NOTHING_TO_DO:
        raise UnknownHookError(f"hook {hook.path} {name}: cannot be played for a process of this machine")


def _values(arguments: list[str], option: str) -> list[str]:
    found = [after for word, after in itertools.pairwise(arguments) if word == option]
    return found + [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]


def _sonames(folder: Path, path: str) -> None:
    """As ldconfig: a link by the name under which programs load a library, with NVIDIA's drivers ``.so.1``."""
    for library in sorted(_inside(folder, path).glob("lib*.so.*.*")):
        link = library.with_name(f"{library.name.partition('.so.')[0]}.so.1")
        if not link.is_symlink():
            link.symlink_to(library.name)


def _link(folder: Path, path: str, target: Path) -> None:
    link = _inside(folder, path)
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not link.is_symlink():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _inside(folder: Path, path: str) -> Path:
    """No path leads out of the container's folder, whatever a specification says."""
    parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
    return folder.joinpath(*parts)


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _is_program(path: str) -> bool:
    return PurePosixPath(path).parent.name in ("bin", "sbin")
