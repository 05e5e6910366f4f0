"""Runs as a script, before a container's program takes its place: puts files where the program looks for them.

``boot FD SOURCE TARGET [SOURCE TARGET]... -- PROGRAM...`` makes a user and a mount namespace, in which each SOURCE
stands at TARGET, also where the machine has no such path.

``contain FD HOSTNAME UID GID STAGE FOLDER DOOR IP MODE [MODE SOURCE TARGET]... -- PROGRAM...`` makes a root for a
container, and gives it a host name: this machine's folders, except /tmp, with MODE ``ro`` or ``rw``, and over them each
SOURCE at TARGET. UID and GID are what the user and group of the caller are called inside; STAGE is an empty folder,
FOLDER the working folder.

``enter PID [FOLDER [DOOR IP]] -- PROGRAM...`` joins the namespaces of a process. With a DOOR, the descriptor of a
socket, who holds its other end answers each bind(2) and connect(2) of the program, which is in the pod of address IP;
``filter FD --`` only finds out whether anybody could.

What goes wrong is written to the descriptor FD, which closes when the program starts. Nothing of it needs root, and
nothing changes outside the namespaces. Only the standard library is imported: a container waits for it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
import sys

_NEW_MOUNTS, _NEW_NAMES, _NEW_USER = 0x00020000, 0x04000000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _MOVE, _RECURSIVE, _UNBINDABLE, _SLAVE = 1, 0x20, 0x1000, 0x2000, 0x4000, 0x20000, 0x80000
_KEPT_FLAGS = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8, os.ST_NOATIME: 0x400, os.ST_RELATIME: 0x200000}
"""What a mount has, as statvfs(3) says it -> the flag by which a new mount keeps it, which it must."""
_DETACH = 2
_SET_PARENT_DEATH_SIGNAL = 1
_MOUNT_SETATTR, _AT_CWD, _AT_RECURSIVE = 442, -100, 0x8000
_NO_NEW_PRIVILEGES = 38
_SECCOMP = {
    "x86_64": (317, 0xC000003E, (42, 49)),
    "aarch64": (277, 0xC00000B7, (200, 203)),
    "riscv64": (277, 0xC00000F3, (200, 203)),
}
"""Machine -> number of seccomp(2), its name in filters (AUDIT_ARCH), numbers of bind(2) and connect(2)."""
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000
_MACHINE, _ROOM = "/.machine", "/.room"
"""While a container's root is made: where the machine's root is seen, and where folders in memory begin."""
_LIVE = ("dev", "proc")
"""Folders of the machine that stay as they are: what is written there goes to the kernel."""
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
"""Numbers of the call that the C library does not name."""
_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        shown = ", ".join(os.fsdecode(word) for word in arguments if isinstance(word, bytes))
        raise OSError(number, f"{name}({shown}): {os.strerror(number)}")


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    form = None if kind is None else kind.encode()
    _call("mount", os.fsencode(source), os.fsencode(target), form, ctypes.c_ulong(flags), None)


def _unshare(more: int = 0, *, user: int, group: int) -> None:
    """New namespaces, in which this process' user and group are called so."""
    maps = (("uid_map", f"{user} {os.getuid()} 1"), ("gid_map", f"{group} {os.getgid()} 1"))
    _call("unshare", _NEW_USER | _NEW_MOUNTS | more)
    for name, text in (("setgroups", "deny"), *maps):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    _mount("none", "/", None, _RECURSIVE | _SLAVE)


def _place(source: str, target: str, in_memory: set[str]) -> None:
    target = os.path.realpath(target)
    if not os.path.exists(target):
        _make_room(target, in_memory, is_folder=os.path.isdir(source))
    _mount(source, target, None, _BIND | _RECURSIVE)


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
    _mount("none", stage, "tmpfs", 0)
    for name in names:
        if parent == "/" and stage == f"/{name}":
            os.mkdir(f"{stage}/{name}")
            _mount(f"/proc/self/fd/{covered}", f"{stage}/{name}", None, _BIND | _RECURSIVE)
            _call("umount2", os.fsencode(f"{stage}/{name}"), _DETACH)  # the stage itself, which came along
            continue
        there = f"/proc/self/fd/{kept}/{name}" if stage != "/proc" else f"{parent}/{name}"
        _take_over(there, f"{stage}/{name}")
    _make(os.path.join(stage, os.path.relpath(target, parent)), is_folder=is_folder)
    if parent == "/":
        _become_root(stage)
    else:
        _mount(stage, parent, None, _MOVE)
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
    _call("syscall", ctypes.c_long(_pivot_root()), b".", b".")
    _call("umount2", b".", _DETACH)
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
    _mount(path, there, None, _BIND | _RECURSIVE)


def _boot(mounts: list[str]) -> None:
    folder = os.getcwd()
    _unshare(user=os.getuid(), group=os.getgid())
    pairs = zip(mounts[::2], mounts[1::2], strict=True)
    in_memory: set[str] = set()
    for source, target in sorted(pairs, key=lambda pair: os.path.realpath(pair[1]).count("/")):
        _place(source, target, in_memory)
    os.chdir(folder)  # it may lie below what was covered


class _Container:
    """The root of a container as it is made: ``ours`` says of its mounts whether a mount point can be made in them,
    since they are the container's own."""

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self._ours = {"/": True}
        self._in_memory: list[str] = []

    def begin(self, stage: str) -> None:
        """Take over the machine's folders; what is to be mounted is found below ``_MACHINE``."""
        _mount("none", stage, "tmpfs", 0)
        _mount("none", stage, None, _UNBINDABLE)  # else it would be among the folders that it takes over
        os.mkdir(stage + _MACHINE)
        _call("syscall", ctypes.c_long(_pivot_root()), os.fsencode(stage), os.fsencode(stage + _MACHINE))
        os.chdir("/")
        for name in os.listdir(_MACHINE):
            if name == "tmp":
                os.mkdir("/tmp")
                continue
            _take_over(f"{_MACHINE}/{name}", f"/{name}")
            self._ours[f"/{name}"] = False
            if self._mode == "ro" and name not in _LIVE and not os.path.islink(f"/{name}"):
                _freeze(f"/{name}")

    def place(self, mode: str, source: str, target: str) -> None:
        """Show a file or folder of the machine at a path."""
        target = os.path.realpath(target)
        source = _MACHINE + source
        if not os.path.exists(target):
            self._make_room(target, is_folder=os.path.isdir(source))
        _mount(source, target, None, _BIND | _RECURSIVE)
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
        _mount("none", _ROOM, "tmpfs", 0)
        for name in os.listdir(folder):
            _take_over(f"{folder}/{name}", f"{_ROOM}/{name}")
        os.chmod(_ROOM, os.stat(folder).st_mode & 0o7777)
        _mount(_ROOM, folder, None, _MOVE)
        self._ours[folder] = True
        self._in_memory.append(folder)

    def end(self) -> None:
        """Let go of the machine's root; what is not a volume cannot be written from now on."""
        _call("umount2", _MACHINE.encode(), _DETACH)
        os.rmdir(_MACHINE)
        if os.path.isdir(_ROOM):
            os.rmdir(_ROOM)
        if self._mode == "ro":
            for folder in (*self._in_memory, "/"):
                _freeze(folder, 0)


def _pivot_root() -> int:
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"no folder can be made below / on {os.uname().machine}")
    return number


def _freeze(path: str, depth: int = _AT_RECURSIVE) -> None:
    """Nothing can be written through this mount any more, nor through those below it."""
    wanted = struct.pack("=4Q", _READ_ONLY, 0, 0, 0)
    try:
        _call(
            "syscall",
            ctypes.c_long(_MOUNT_SETATTR), ctypes.c_long(_AT_CWD), os.fsencode(path), ctypes.c_long(depth), wanted,
            ctypes.c_long(len(wanted)),
        )  # fmt: skip
    except OSError as error:
        if error.errno != errno.ENOSYS:  # before Linux 5.12; then mounts below it stay as they are
            raise
        flags = os.statvfs(path).f_flag
        kept = sum(number for known, number in _KEPT_FLAGS.items() if flags & known)
        _mount("none", path, None, _REMOUNT | _BIND | _READ_ONLY | kept)


def _join_network(door: str, ip: str) -> None:
    """From now on whoever holds the other end of the socket answers the program's binds and connects; "" as ``door``:
    nobody does."""
    if not door:
        return
    import _socket  # without the module socket, which takes as long as all else here

    way, listener = _socket.socket(fileno=int(door)), _filter()
    way.sendmsg([ip.encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))])
    way.close()
    os.close(listener)


def _filter() -> int:
    """Have the kernel ask before each bind and connect; returns the descriptor by which it asks."""
    seccomp, machine, calls = _SECCOMP[os.uname().machine]
    lines = [
        (_LOAD, 0, 0, 4), (_JUMP_EQUAL, 0, 3, machine),
        (_LOAD, 0, 0, 0), (_JUMP_EQUAL, 2, 0, calls[0]), (_JUMP_EQUAL, 1, 0, calls[1]),
        (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ASK),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    _call("prctl", _NO_NEW_PRIVILEGES, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3)
    # A program whose call is interrupted would make it again: it is to wait (since Linux 5.19).
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = _libc.syscall(ctypes.c_long(seccomp), ctypes.c_long(_SET_FILTER), ctypes.c_ulong(flags), program)
        if listener >= 0:
            os.set_inheritable(listener, False)
            return int(listener)
    raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _contain(words: list[str]) -> None:
    hostname, user, group, stage, folder, door, ip, mode, *mounts = words
    starter = os.getppid()
    _unshare(_NEW_NAMES, user=int(user), group=int(group))
    if hostname:
        _call("sethostname", os.fsencode(hostname), ctypes.c_size_t(len(os.fsencode(hostname))))
    placed = [
        (mode_of, os.path.realpath(source), target)
        for mode_of, source, target in zip(mounts[::3], mounts[1::3], mounts[2::3], strict=True)
    ]
    container = _Container(mode)
    container.begin(stage)
    for mount in sorted(placed, key=lambda mount: os.path.realpath(mount[2]).count("/")):
        container.place(*mount)
    container.end()
    os.chdir(folder)
    # Once the namespaces are there: the kernel forgets it when a process gets other rights.
    _call("prctl", _SET_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))
    if os.getppid() != starter:
        os._exit(128 + signal.SIGKILL)
    _join_network(door, ip)


def _of(pid: str, kind: str) -> str:
    return f"/proc/{pid}/ns/{kind}"


def _enter(pid: str, folder: str = "", door: str = "", ip: str = "") -> None:
    folder = folder or os.getcwd()
    joined = [kind for kind in ("user", "mnt", "uts") if not os.path.samefile(_of(pid, kind), _of("self", kind))]
    descriptors = [os.open(_of(pid, kind), os.O_RDONLY) for kind in joined]  # before what they show is another's
    for descriptor in descriptors:
        _call("setns", descriptor, 0)
        os.close(descriptor)
    os.chdir(folder)
    _join_network(door, ip)


def _try_filter(words: list[str]) -> None:
    os.close(_filter())


_WORK = {"boot": _boot, "contain": _contain, "filter": _try_filter}


def _main() -> None:
    at = sys.argv.index("--")
    verb, words, program = sys.argv[1], sys.argv[2:at], sys.argv[at + 1 :]
    fault = 2 if verb == "enter" else int(words[0])
    try:
        if verb == "enter":
            _enter(*words)
        else:
            os.set_inheritable(fault, fault == 2)  # standard error is the program's, too
            _WORK[verb](words[1:])
        if program:
            os.execvp(program[0], program)
    except OSError as error:
        os.write(fault, f"{error.strerror or error}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    _main()
