"""What stands where in a mount namespace: files of the machine, in folders that it may lack.

``namespace_entry`` imports it by its file's name, since it runs without this package: only the standard library may be
imported here.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

NEW_SLAVE = 0x80000 | 0x4000
"""Recursively: mounts of the machine arrive, those made here do not leave."""
CALLS = {
    "x86_64": {"pivot_root": 155, "clone": 56},
    "aarch64": {"pivot_root": 41, "clone": 220},
    "riscv64": {"pivot_root": 41, "clone": 220},
}
"""Numbers of the calls that the C library does not name."""
libc = ctypes.CDLL(None, use_errno=True)
_READ_ONLY, _REMOUNT, _BIND, _MOVE, _RECURSIVE, _UNBINDABLE = 1, 0x20, 0x1000, 0x2000, 0x4000, 0x20000
_KEPT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 0x400, os.ST_RELATIME: 0x200000}
"""What a mount has, as statvfs(3) says it -> the flag by which a new mount keeps it, which it must."""
_DETACH = 2
_MOUNT_SETATTR, _AT_CWD, _AT_RECURSIVE = 442, -100, 0x8000
_MACHINE, _ROOM = "/.machine", "/.room"
"""While a container's root is made: where the machine's root is seen, and where folders in memory begin."""
_LIVE = ("dev", "proc")
"""Folders of the machine that stay as they are: what is written there goes to the kernel."""
_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "fd", "stdin", "stdout", "stderr",
)  # fmt: skip
"""What is in each container's /dev (opencontainers/runtime-spec, config-linux.md), with the machine's terminals."""


def call(name: str, *arguments: object) -> None:
    """Of the C library. Raises OSError with what was called."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        shown = ", ".join(os.fsdecode(word) for word in arguments if isinstance(word, bytes))
        raise OSError(number, f"{name}({shown}): {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    """As mount(2). Raises OSError."""
    form = None if kind is None else kind.encode()
    call("mount", os.fsencode(source), os.fsencode(target), form, ctypes.c_ulong(flags), None)


def place(source: str, target: str, in_memory: set[str]) -> None:
    """Show a file or folder of the machine at a path; folders that were put in memory for it are in the set."""
    target = os.path.realpath(target)
    if not os.path.exists(target):
        _make_room(target, in_memory, is_folder=os.path.isdir(source))
    mount(source, target, None, _BIND | _RECURSIVE)


def _make_room(target: str, in_memory: set[str], *, is_folder: bool) -> None:
    """Make the path in a folder of the machine by putting in its place one in memory, with all that is in it; those
    that are there already are ``in_memory``."""
    parent = os.path.dirname(target)
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    if parent in in_memory:
        _make(target, is_folder=is_folder)
        return
    in_memory.add(parent)
    stage = "/proc" if parent == "/tmp" else "/tmp"  # any folder that is not the one: it is covered for a moment
    kept, covered = os.open(parent, os.O_PATH), os.open(stage, os.O_PATH)
    names = sorted(os.listdir(parent))
    mount("none", stage, "tmpfs", 0)
    for name in names:
        if parent == "/" and stage == f"/{name}":
            os.mkdir(f"{stage}/{name}")
            mount(f"/proc/self/fd/{covered}", f"{stage}/{name}", None, _BIND | _RECURSIVE)
            call("umount2", os.fsencode(f"{stage}/{name}"), _DETACH)  # the stage itself, which came along
            continue
        there = f"/proc/self/fd/{kept}/{name}" if stage != "/proc" else f"{parent}/{name}"
        _take_over(there, f"{stage}/{name}")
    _make(os.path.join(stage, os.path.relpath(target, parent)), is_folder=is_folder)
    if parent == "/":
        _become_root(stage)
    else:
        mount(stage, parent, None, _MOVE)
    os.close(kept)
    os.close(covered)


def _make(path: str, *, is_folder: bool) -> None:
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    if not is_folder:
        with open(path, "wb"):
            pass


def _become_root(stage: str) -> None:
    """Nothing can be mounted over /, so the folder takes its place (pivot_root(2), "pivot_root(".", ".")")."""
    os.chdir(stage)
    call("syscall", ctypes.c_long(number_of("pivot_root")), b".", b".")
    call("umount2", b".", _DETACH)
    os.chdir("/")


def _take_over(path: str, there: str) -> None:
    if os.path.islink(path):
        os.symlink(os.readlink(path), there)
        return
    if os.path.isdir(path):
        os.mkdir(there)
    else:
        with open(there, "wb"):
            pass
    mount(path, there, None, _BIND | _RECURSIVE)


class Container:
    """The root of a container as it is made: ``ours`` says of its mounts whether a mount point can be made in them,
    since they are the container's own."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._ours = {"/": True}
        self._in_memory: list[str] = []

    def begin(self, stage: str) -> None:
        """Take over the machine's folders; what is to be mounted is found below ``_MACHINE``."""
        mount("none", stage, "tmpfs", 0)
        mount("none", stage, None, _UNBINDABLE)  # else it would be among the folders that it takes over
        os.mkdir(stage + _MACHINE)
        call("syscall", ctypes.c_long(number_of("pivot_root")), os.fsencode(stage), os.fsencode(stage + _MACHINE))
        os.chdir("/")
        for name in os.listdir(_MACHINE):
            if name == "tmp":
                os.mkdir("/tmp")
                continue
            if name == "dev" and self._mode == "ro":
                self._make_devices()
                continue
            _take_over(f"{_MACHINE}/{name}", f"/{name}")
            self._ours[f"/{name}"] = False
            if self._mode == "ro" and name not in _LIVE and not os.path.islink(f"/{name}"):
                _freeze(f"/{name}")

    def _make_devices(self) -> None:
        """Its own /dev: nothing is made in the machine's. It can be bound elsewhere, as the root cannot."""
        os.mkdir("/dev")
        mount("none", "/dev", "tmpfs", 0)
        self._ours["/dev"] = True
        os.mkdir("/dev/shm")
        for name in _DEVICES:
            if os.path.lexists(f"{_MACHINE}/dev/{name}"):
                _take_over(f"{_MACHINE}/dev/{name}", f"/dev/{name}")

    def place(self, mode: str, source: str, target: str) -> None:
        """Show a file or folder of the machine at a path."""
        target = os.path.realpath(target)
        source = _MACHINE + source
        if not os.path.exists(target):
            self._make_room(target, is_folder=os.path.isdir(source))
        mount(source, target, None, _BIND | _RECURSIVE)
        if mode == "ro":
            _freeze(target)
        self._ours[target] = mode == "rw"

    def _make_room(self, target: str, *, is_folder: bool) -> None:
        parent = os.path.dirname(target)
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        if not self._is_ours(parent):
            self._cover(parent)
        _make(target, is_folder=is_folder)

    def _is_ours(self, folder: str) -> bool:
        while folder not in self._ours:
            folder = os.path.dirname(folder)
        return self._ours[folder]

    def _cover(self, folder: str) -> None:
        """Put one in memory in its place, with all that is in it."""
        os.makedirs(_ROOM, exist_ok=True)
        mount("none", _ROOM, "tmpfs", 0)
        for name in os.listdir(folder):
            _take_over(f"{folder}/{name}", f"{_ROOM}/{name}")
        os.chmod(_ROOM, os.stat(folder).st_mode & 0o7777)
        mount(_ROOM, folder, None, _MOVE)
        self._ours[folder] = True
        self._in_memory.append(folder)

    def end(self) -> None:
        """Let go of the machine's root; what is not a volume cannot be written from now on."""
        call("umount2", _MACHINE.encode(), _DETACH)
        os.rmdir(_MACHINE)
        if os.path.isdir(_ROOM):
            os.rmdir(_ROOM)
        if self._mode == "ro":
            for folder in (*self._in_memory, "/"):
                _freeze(folder, 0)


def number_of(name: str) -> int:
    """Return that of a system call of this machine. Raises OSError."""
    calls = CALLS.get(os.uname().machine)
    if calls is None:
        raise OSError(f"the numbers of system calls on {os.uname().machine} are not known")
    return calls[name]


def _freeze(path: str, depth: int = _AT_RECURSIVE) -> None:
    """Nothing can be written through this mount any more, nor through those below it."""
    wanted = struct.pack("=4Q", _READ_ONLY, 0, 0, 0)
    try:
        call(
            "syscall",
            ctypes.c_long(_MOUNT_SETATTR), ctypes.c_long(_AT_CWD), os.fsencode(path), ctypes.c_long(depth), wanted,
            ctypes.c_long(len(wanted)),
        )  # fmt: skip
    except OSError as error:
        if error.errno != errno.ENOSYS:  # before Linux 5.12; then mounts below it stay as they are
            raise
        flags = os.statvfs(path).f_flag
        kept = sum(number for known, number in _KEPT_FLAGS.items() if flags & known)
        mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | kept)
