"""What a node's runtime adds to a container for its devices, as mounts of the files that stand for them here. Pure but
for looking at links.

A container has a root of its own, so nothing is led there by variables as for processes of this machine: device nodes
lie in its ``/dev``, the driver's files where NVIDIA's tools put them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mews.kube.deviceplugin.port import ContainerHook, DeviceNode, Mount
from mews.kube.emulated.kubelet.engine.creation import ContainerAdditions
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.oci.container_root import DEVICES, NOTHING_TO_DO
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver

_STATE_FILE, STATE = "nvml.state", "MEWS_NVML_STATE"
"""Beside our NVML library a link to its host's state; the variable names it where there is no such link."""


def additions_of(edits: ContainerEdits, node: NodeDriver) -> ContainerAdditions:
    """Mounts, devices and variables.

    Raises StartError for a device node that the node does not have, and for a hook that cannot be played.
    """
    if edits.empty:
        return ContainerAdditions()
    placed = [Mount(each.container_path, str(node.place(each.host_path)), each.read_only) for each in edits.mounts]
    devices: list[DeviceNode] = []
    for device in edits.devices:
        there = node.place(device.host_path)
        if not os.path.lexists(there):
            text = f'failed to generate spec: lstat "{there}": no such file or directory'
            raise StartError("CreateContainerError", text)
        if str(there) == device.host_path:
            devices.append(device)
        else:
            placed.append(Mount(device.container_path, str(there)))
    env = dict(edits.env)
    searched = dict.fromkeys(path for hook in edits.hooks for path in _play(hook, placed))
    if searched:
        env["LD_LIBRARY_PATH"] = ":".join(searched)
    if any(device.container_path.startswith("/dev/nvidia") for device in edits.devices):
        env[DEVICES] = "/dev"
    reached = [found for mount in placed for found in _reached(mount)]
    state = next(filter(None, map(_state_of, placed)), None)
    if state is not None:
        env[STATE] = str(state)
        reached.append(Mount(str(state.parent), str(state.parent), read_only=True))
    return ContainerAdditions((*reached, *placed), tuple(devices), env)


def _play(hook: ContainerHook, placed: list[Mount]) -> Sequence[str]:
    """Links that a hook makes are mounts of what they lead to; returns the folders of libraries."""
    words = [word for word in hook.args[1:] if word != "hook"]
    name, arguments = (words[0], words[1:]) if words else (hook.path, [])
    folders = _values(arguments, "--folder")
    if name == "create-symlinks":
        for link in _values(arguments, "--link"):
            target, _, path = link.partition("::")
            inside = os.path.normpath(PurePosixPath(path).parent / target)
            placed += [Mount(path, each.host_path, each.read_only) for each in placed if each.container_path == inside]
        return ()
    if name in ("update-ldcache", "create-soname-symlinks"):
        for folder in folders:
            placed += _sonames(folder, placed)
        return folders if name == "update-ldcache" else ()
    if name not in NOTHING_TO_DO:
        raise StartError("CreateContainerError", f"hook {hook.path} {name}: cannot be played for a container here")
    return ()


def _values(arguments: Sequence[str], option: str) -> list[str]:
    found = [after for word, after in itertools.pairwise(arguments) if word == option]
    return found + [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]


def _sonames(folder: str, placed: Sequence[Mount]) -> list[Mount]:
    """Return them as ldconfig: by the name under which programs load a library, with NVIDIA's drivers ``.so.1``."""
    there = {mount.container_path for mount in placed}
    found = []
    for mount in placed:
        path = PurePosixPath(mount.container_path)
        short = str(path.with_name(f"{path.name.partition('.so.')[0]}.so.1"))
        if str(path.parent) == folder.rstrip("/") and path.match("lib*.so.*.*") and short not in there:
            found.append(Mount(short, mount.host_path, mount.read_only))
    return found


def _reached(mount: Mount) -> Iterator[Mount]:
    """Yield what the links in a mounted folder lead to, where they lead out of it: mounted where they point."""
    folder = Path(mount.host_path)
    if not folder.is_dir():
        return
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() and os.path.isabs(os.readlink(entry)) and entry.exists():
            target = os.readlink(entry)
            if not Path(target).is_relative_to(folder):
                yield Mount(target, target, read_only=True)


def _state_of(mount: Mount) -> Path | None:
    link = Path(mount.host_path).with_name(_STATE_FILE)
    return Path(os.readlink(link)) if link.is_symlink() else None
