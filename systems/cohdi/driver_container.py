"""Plays the container in which a GPU operator runs NVIDIA's driver: ``python -m mews.systems.cohdi.driver_container``.

The kubelet starts it in a mount namespace of its own (and a user namespace, where nodes are emulated), with the node's
driver root at ``/run/mews/driver``, or where ``MEWS_DRIVER_ROOT`` says, and empty folders at ``/run/mews/kept`` and
``/run/nvidia/driver``.
Commands that are executed in the container find there what they find on a node::

    /usr/bin/nvidia-smi             that of the node, with its library
    /sys, /proc/driver/nvidia       the node's
    /dev/nvidia*                    the node's, as they come and go; one that is removed is removed there
    /proc/cpuinfo                   the machine's, without the flag of a virtual one: the operator removes a GPU of a
                                    virtual machine by sysfs, one of a server by nvidia-smi
    /run/nvidia/driver              all of this once more, to be the root of a command (chroot)

Nothing changes outside of its namespace. It runs until SIGTERM.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from pathlib import Path

ROOT, ELSEWHERE = Path("/run/mews/driver"), "MEWS_DRIVER_ROOT"
"""Where the pod mounts the node's driver root, and the variable that names another place."""
_BEGUN_S = 60.0
_KEPT = Path("/run/mews/kept")
_CHROOT = Path("/run/nvidia/driver")
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 1 << 18
_FOLLOW_S = 0.1
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Lay the container out, then follow the device nodes until SIGTERM; 1 where something cannot be mounted."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    root = Path(os.environ.get(ELSEWHERE) or ROOT)
    if not is_there(root, ended):
        sys.stderr.write(f"{root}: not there: needs a mount namespace and the node's driver root\n")
        return 1
    node = root.resolve()
    try:
        _lay_out(node)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    nodes = DeviceNodes(node / "dev", Path("/dev"))
    while not ended.wait(_FOLLOW_S):
        nodes.follow()
    return 0


def is_there(root: Path, ended: threading.Event) -> bool:
    """Return whether all of it is there, or comes within a minute: on a real node it may still be made."""
    parts = [root / each for each in ("usr/bin/nvidia-smi", "dev", "sys", "proc/driver/nvidia")]
    for _ in range(int(_BEGUN_S / _FOLLOW_S) if ELSEWHERE in os.environ else 1):
        if all(part.exists() for part in parts):
            return True
        if ended.wait(_FOLLOW_S):
            break
    return False


def _lay_out(node: Path) -> None:
    _place_program(node)
    cpuinfo = _KEPT / "cpuinfo"
    cpuinfo.write_text(without_hypervisor(Path("/proc/cpuinfo").read_text("utf-8")), "utf-8")
    _mount(str(cpuinfo), "/proc/cpuinfo", None, _BIND)
    files = (node / "proc").resolve()
    _mount("none", "/proc/driver", "tmpfs", 0)
    Path("/proc/driver/nvidia").symlink_to(files / "driver/nvidia")
    _replace_by_links(Path("/dev"))
    DeviceNodes(node / "dev", Path("/dev")).follow()
    _mount(str((node / "sys").resolve()), "/sys", None, _BIND | _RECURSIVE)
    _mount("none", "/", None, _PRIVATE)  # a container's root cannot be bound anywhere, as the kubelet leaves it
    _mount("/", str(_CHROOT), None, _BIND | _RECURSIVE)


def _place_program(node: Path) -> None:
    """Put nvidia-smi into /usr/bin, where it loads the library of the node."""
    folder = Path("/usr/bin")
    _replace_by_links(folder)
    program = folder / "nvidia-smi"
    program.unlink(missing_ok=True)
    libraries = node / "usr/lib" / f"{os.uname().machine}-linux-gnu"
    text = f'exec env -u MEWS_NVML_DEV LD_LIBRARY_PATH={libraries} {node}/usr/bin/nvidia-smi "$@"'
    program.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    program.chmod(0o755)


def _replace_by_links(folder: Path) -> None:
    """Make the folder one in memory with a link to each of its entries: then entries can be added and removed."""
    kept = _KEPT / str(folder).strip("/").replace("/", "-")
    kept.mkdir(exist_ok=True)  # of a container that has ended in this pod
    _mount(str(folder), str(kept), None, _BIND | _RECURSIVE)
    _mount("none", str(folder), "tmpfs", 0)
    for name in sorted(os.listdir(kept)):
        (folder / name).symlink_to(kept / name)


def without_hypervisor(cpuinfo: str) -> str:
    """Return the text of /proc/cpuinfo without the flag ``hypervisor``."""
    lines = cpuinfo.splitlines(keepends=True)
    return "".join(line.replace(" hypervisor", "") if line.startswith("flags") else line for line in lines)


class DeviceNodes:
    """``/dev/nvidia*`` of a container, as links to a node's."""

    def __init__(self, node: Path, container: Path) -> None:
        self._node = node
        self._container = container
        self._linked: set[str] = set()

    def follow(self) -> None:
        """Link those that have come, drop those that are gone, and remove from the node what was removed here."""
        there = {path.name for path in self._node.glob("nvidia*")}
        for name in self._linked - there:
            (self._container / name).unlink(missing_ok=True)
        for name in sorted(self._linked & there):
            if not (self._container / name).is_symlink():
                (self._node / name).unlink(missing_ok=True)
        for name in sorted(there - self._linked):
            link = self._container / name
            if not link.is_symlink():
                link.symlink_to(self._node / name)
        self._linked = there


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    form = None if kind is None else kind.encode()
    if _libc.mount(os.fsencode(source), os.fsencode(target), form, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount {source} at {target}: {os.strerror(number)}")


if __name__ == "__main__":
    sys.exit(main())
