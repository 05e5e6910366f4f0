"""Runs as a script, before a container's program takes its place: puts files where the program looks for them.

``boot FD DOOR [SOURCE TARGET]... -- PROGRAM...`` makes a user and a mount namespace, in which each SOURCE stands at
TARGET, also where the machine has no such path; none where there is no SOURCE. With a DOOR it is as in ``enter``.

``contain FD NAMESPACES HOSTNAME UID GID STAGE FOLDER DOOR IP GROUPS MODE [MODE SOURCE TARGET]... -- PROGRAM...`` makes
a root for a container, and gives it a host name: this machine's folders, except /tmp, with MODE ``ro`` or ``rw``, and
over them each SOURCE at TARGET. UID and GID are what the user and group of the caller are called inside; STAGE is an
empty folder, FOLDER the working folder. GROUPS are lines: files by which the program gets into its control groups.

NAMESPACES are words with commas between them: ``ipc`` and ``pid`` are new ones; ``user:7``, ``ipc:8`` and ``pid:9``
are joined by their descriptors; ``kept`` hands over descriptors of those that are new. With process IDs of its own,
the program is another process, a child of the caller's, who reads its number from FD, a socket.

``pause FD NAMESPACES --`` is the first process of new ones, and takes in the orphans of all others.

``enter PID [FOLDER [DOOR IP [GROUPS]]] -- PROGRAM...`` joins the namespaces of a process. With a DOOR, the descriptor
of a socket, who holds its other end answers each bind(2) and connect(2) of the program, which is in the pod of address
IP, and tells the names of its sockets unless IP is of this machine; ``-``: it is in no pod, and only connects count;
``filter FD --`` only finds out whether anybody could.

What goes wrong is written to the descriptor FD, which closes when the program starts. Nothing of it needs root, and
nothing changes outside the namespaces. Only the standard library is imported: a container waits for it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

_MOUNTS = "mews.kube.emulated.kubelet.namespace_mounts"
if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    _MOUNTS = "namespace_mounts"
_files = __import__(_MOUNTS, fromlist=["call"])
Container, call, libc, mount, number_of, place = (
    _files.Container, _files.call, _files.libc, _files.mount, _files.number_of, _files.place,
)  # fmt: skip
NEW_SLAVE = _files.NEW_SLAVE

_NEW_MOUNTS, _NEW_NAMES, _NEW_USER = 0x00020000, 0x04000000, 0x10000000
_NEW = {"ipc": 0x08000000, "pid": 0x20000000}
_CHILD_OF_PARENT, _OWNER = 0x8000, 0xB701
"""Of clone(2), CLONE_PARENT: the new process is its starter's. Of ioctl_ns(2), NS_GET_USERNS."""
_NO_DEVICES_NOR_PROGRAMS = 2 | 4 | 8
_TAKE_TERMINAL = 0x540E
_SET_PARENT_DEATH_SIGNAL, _SET_NAME, _NO_NEW_PRIVILEGES = 1, 15, 38
_SECCOMP = {
    "x86_64": (317, 0xC000003E, (42, 49, 51, 52, 43, 288), (44, 45)),
    "aarch64": (277, 0xC00000B7, (203, 200, 204, 205, 202, 242), (206, 207)),
    "riscv64": (277, 0xC00000F3, (203, 200, 204, 205, 202, 242), (206, 207)),
}
"""Machine -> number of seccomp(2), its name in filters (AUDIT_ARCH), numbers of connect(2), bind(2), getsockname(2),
getpeername(2), accept(2) and accept4(2); of sendto(2) and recvfrom(2)."""
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_FIFTH = 16 + 4 * 8
"""Where a filter finds the call's fifth argument."""
_ALLOW, _ASK = 0x7FFF0000, 0x7FC00000


class _Namespaces:
    """Those of a container, as its words say."""

    def __init__(self, words: str) -> None:
        given = [word.partition(":") for word in words.split(",") if word]
        self.joined = {kind: int(number) for kind, _, number in given if number}
        self.new = [kind for kind, _, number in given if not number and kind in _NEW]
        self._kept = any(kind == "kept" for kind, _, _ in given)

    def make(self, fault: int, more: int, *, user: int, group: int) -> None:
        """Be in them; ``more`` are made where the user is called so, after those of the pod are joined."""
        flags = sum(_NEW[kind] for kind in self.new)
        if self.joined:
            for kind in ("user", "ipc", "pid"):
                if kind in self.joined:
                    _join(self.joined[kind])
            call("unshare", _NEW_MOUNTS | flags)
            mount("none", "/", None, NEW_SLAVE)
        else:
            _unshare(more | flags, user=user, group=group)
        if "pid" in self.new or "pid" in self.joined:
            self._become_first(fault)
            mount("proc", "/proc", "proc", _NO_DEVICES_NOR_PROGRAMS)
        if self.joined:
            _unshare(more, user=user, group=group)

    def _become_first(self, fault: int) -> None:
        """Go on as another process, which has a number in the namespace; its starter learns the one outside."""
        if fault == 2:
            _go_on_as_child()
            return
        import _socket

        own = os.open("/proc/self/ns", os.O_RDONLY | os.O_DIRECTORY)  # at once, the child moves all files away
        numbers = (ctypes.c_long(0) for _ in range(4))
        child = int(libc.syscall(ctypes.c_long(number_of("clone")), ctypes.c_long(_CHILD_OF_PARENT | 17), *numbers))
        if child < 0:
            raise OSError(ctypes.get_errno(), f"clone: {os.strerror(ctypes.get_errno())}")
        if child == 0:
            os.close(own)
            return
        kinds = ["user", *self.new] if self._kept else []
        files = ["pid_for_children" if kind == "pid" else kind for kind in kinds]
        held = [os.open(file, os.O_RDONLY, dir_fd=own) for file in files]
        sent = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack(f"={len(held)}i", *held))] if held else []
        _socket.socket(fileno=os.dup(fault)).sendmsg([f"\0{child} {' '.join(kinds)}\n".encode()], sent)
        os._exit(0)


def _go_on_as_child() -> None:
    """This process waits for it, and ends as it ends."""
    child = os.fork()
    if child == 0:
        call("prctl", _SET_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))
        return
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


def _join(descriptor: int) -> None:
    call("setns", descriptor, 0)
    os.close(descriptor)


def _unshare(more: int = 0, *, user: int, group: int) -> None:
    """New namespaces, in which this process' user and group are called so."""
    maps = (("uid_map", f"{user} {os.getuid()} 1"), ("gid_map", f"{group} {os.getgid()} 1"))
    call("unshare", _NEW_USER | _NEW_MOUNTS | more)
    for name, text in (("setgroups", "deny"), *maps):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    mount("none", "/", None, NEW_SLAVE)


def _boot(fault: int, words: list[str]) -> None:
    door, *mounts = words
    if mounts:
        folder = os.getcwd()
        _unshare(user=os.getuid(), group=os.getgid())
        pairs = zip(mounts[::2], mounts[1::2], strict=True)
        in_memory: set[str] = set()
        for source, target in sorted(pairs, key=lambda pair: os.path.realpath(pair[1]).count("/")):
            place(source, target, in_memory)
        os.chdir(folder)  # it may lie below what was covered
    _join_network(door, "-")


def _join_network(door: str, ip: str) -> None:
    """From now on whoever holds the other end of the socket answers the program's binds and connects; "" as ``door``:
    nobody does."""
    if not door:
        return
    import _socket  # without the module socket, which takes as long as all else here

    way, listener = _socket.socket(fileno=int(door)), _filter(_asked(ip))
    way.sendmsg([ip.encode()], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("=i", listener))])
    way.close()
    os.close(listener)


def _asked(ip: str) -> int:
    """Return how many of the calls are asked about. Whoever has this machine's network only connects elsewhere; a pod
    that is known by an address of this machine sees its own names."""
    return 1 if ip == "-" else 2 if ip.startswith("127.") else 6


def _filter(asked: int) -> int:
    """Have the kernel ask before each of the first calls; returns the descriptor by which it asks."""
    seccomp, machine, calls, of_datagrams = _SECCOMP[os.uname().machine]
    datagrams = _that_name_somebody(*of_datagrams) if asked == len(calls) else ()
    last = asked + len(datagrams)
    lines = [
        (_LOAD, 0, 0, 4), (_JUMP_EQUAL, 0, last + 1, machine), (_LOAD, 0, 0, 0),
        *((_JUMP_EQUAL, last - at, 0, number) for at, number in enumerate(calls[:asked])), *datagrams,
        (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ASK),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    call("prctl", _NO_NEW_PRIVILEGES, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3)
    # A program whose call is interrupted would make it again: it is to wait (since Linux 5.19).
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = libc.syscall(ctypes.c_long(seccomp), ctypes.c_long(_SET_FILTER), ctypes.c_ulong(flags), program)
        if listener >= 0:
            os.set_inheritable(listener, False)
            return int(listener)
    raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _that_name_somebody(send: int, receive: int) -> tuple[tuple[int, int, int, int], ...]:
    """Of these calls those with a place for an address, both halves of which are looked at: they are few, since what
    is connected has none."""
    return (
        (_JUMP_EQUAL, 1, 0, send), (_JUMP_EQUAL, 0, 4, receive), (_LOAD, 0, 0, _FIFTH), (_JUMP_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _FIFTH + 4), (_JUMP_EQUAL, 0, 1, 0),
    )  # fmt: skip


def _contain(fault: int, words: list[str]) -> None:
    namespaces, hostname, user, group, stage, folder, door, ip, groups, mode, *mounts = words
    opened = _opened(groups)
    starter = os.getppid()
    made = _Namespaces(namespaces)
    made.make(fault, _NEW_NAMES, user=int(user), group=int(group))
    if hostname:
        call("sethostname", os.fsencode(hostname), ctypes.c_size_t(len(os.fsencode(hostname))))
    placed = [
        (mode_of, os.path.realpath(source), target)
        for mode_of, source, target in zip(mounts[::3], mounts[1::3], mounts[2::3], strict=True)
    ]
    container = Container(mode)
    container.begin(stage)
    for one in sorted(placed, key=lambda one: os.path.realpath(one[2]).count("/")):
        container.place(*one)
    container.end()
    os.chdir(folder)
    _end_with_starter(fault, starter)
    _lead_session()
    _join_groups(opened)
    _join_network(door, ip)


def _opened(groups: str) -> list[int]:
    """While the folders of control groups are seen."""
    return [os.open(path, os.O_WRONLY) for path in groups.split("\n") if path]


def _join_groups(opened: list[int]) -> None:
    for descriptor in opened:
        os.write(descriptor, b"0")
        os.close(descriptor)


def _end_with_starter(fault: int, starter: int) -> None:
    """Once the namespaces are there: the kernel forgets it when a process gets other rights."""
    call("prctl", _SET_PARENT_DEATH_SIGNAL, ctypes.c_ulong(signal.SIGKILL))
    try:
        if fault == 2:
            return
        os.write(fault, b"\n")
    except OSError:  # it reads no more
        os._exit(128 + signal.SIGKILL)
    if os.getppid() not in (starter, 0):
        os._exit(128 + signal.SIGKILL)


def _lead_session() -> None:
    """Of a terminal, where there is one."""
    if os.getsid(0) != os.getpid():
        os.setsid()
    if os.isatty(0):
        libc.ioctl(0, ctypes.c_ulong(_TAKE_TERMINAL), ctypes.c_ulong(0))


def _pause(fault: int, words: list[str]) -> None:
    starter = os.getppid()
    _Namespaces(words[0]).make(fault, 0, user=os.getuid(), group=os.getgid())
    os.setsid()
    _end_with_starter(fault, starter)
    call("prctl", _SET_NAME, b"pause")
    os.close(fault)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while True:
        signal.sigwait([signal.SIGCHLD])
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            continue


def _of(pid: str, kind: str) -> str:
    return f"/proc/{pid}/ns/{kind}"


def _enter(pid: str, folder: str = "", door: str = "", ip: str = "", groups: str = "") -> None:
    folder, groups_opened = folder or os.getcwd(), _opened(groups)
    kinds = [kind for kind in ("user", "ipc", "pid", "mnt", "uts") if not _is_same(_of(pid, kind), _of("self", kind))]
    opened = {kind: os.open(_of(pid, kind), os.O_RDONLY) for kind in kinds}  # before what they show is another's
    for descriptor in _in_order(opened):
        _join(descriptor)
    if "pid" in opened:
        _go_on_as_child()
    os.chdir(folder)
    if os.isatty(0):
        _lead_session()
    _join_groups(groups_opened)
    _join_network(door, ip)


def _is_same(one: str, other: str) -> bool:
    return os.path.samefile(one, other)


def _in_order(opened: dict[str, int]) -> list[int]:
    """A container's user namespace may be below the one that owns what its pod shares, which is joined first."""
    owners = {kind: libc.ioctl(opened[kind], ctypes.c_ulong(_OWNER)) for kind in ("ipc", "pid") if kind in opened}
    own = os.fstat(opened["user"]) if "user" in opened else None
    shared = [kind for kind, owner in owners.items() if own is None or not os.path.samestat(os.fstat(owner), own)]
    first = [owners[shared[0]], *(opened[kind] for kind in shared)] if shared else []
    return [*first, *(descriptor for kind, descriptor in opened.items() if kind not in shared)]


def _try_filter(fault: int, words: list[str]) -> None:
    os.close(_filter(6))


_WORK = {"boot": _boot, "contain": _contain, "filter": _try_filter, "pause": _pause}


def _main() -> None:
    at = sys.argv.index("--")
    verb, words, program = sys.argv[1], sys.argv[2:at], sys.argv[at + 1 :]
    fault = 2 if verb == "enter" else int(words[0])
    try:
        if verb == "enter":
            _enter(*words)
        else:
            os.set_inheritable(fault, fault == 2)  # standard error is the program's, too
            _WORK[verb](fault, words[1:])
        if program:
            # Python ignores some, a shell's background others; a program in a container ignores none.
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            os.execvp(program[0], program)
    except OSError as error:
        os.write(fault, f"{error.strerror or error}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    _main()
