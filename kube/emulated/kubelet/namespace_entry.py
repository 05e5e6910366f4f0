"""Runs as a script, before a container's program takes its place: puts files where the program looks for them.

``boot FD SOURCE TARGET [SOURCE TARGET]... -- PROGRAM...`` makes a user and a mount namespace, in which each SOURCE
stands at TARGET, also where the machine has no such path; ``enter PID -- PROGRAM...`` joins those of a process. What
goes wrong is written to the descriptor FD, which closes when the program starts. Nothing of it needs root, and nothing
changes outside the namespace. Only the standard library is imported: a container waits for it.
"""

from __future__ import annotations

import ctypes
import os
import sys

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _MOVE, _RECURSIVE, _SLAVE = 0x1000, 0x2000, 0x4000, 0x80000
_DETACH = 2
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


def _unshare() -> None:
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_USER | _NEW_MOUNTS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
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
    number = _PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"no folder can be made below / on {os.uname().machine}")
    _call("syscall", ctypes.c_long(number), b".", b".")
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
    _unshare()
    pairs = zip(mounts[::2], mounts[1::2], strict=True)
    in_memory: set[str] = set()
    for source, target in sorted(pairs, key=lambda pair: os.path.realpath(pair[1]).count("/")):
        _place(source, target, in_memory)
    os.chdir(folder)  # it may lie below what was covered


def _enter(pid: str) -> None:
    folder = os.getcwd()
    descriptors = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "mnt")]
    for descriptor in descriptors:
        _call("setns", descriptor, 0)
        os.close(descriptor)
    os.chdir(folder)


def _main() -> None:
    at = sys.argv.index("--")
    verb, words, program = sys.argv[1], sys.argv[2:at], sys.argv[at + 1 :]
    fault = int(words[0]) if verb == "boot" else 2
    try:
        if verb == "boot":
            os.set_inheritable(fault, False)
            _boot(words[1:])
        else:
            _enter(words[0])
        if program:
            os.execvp(program[0], program)
    except OSError as error:
        os.write(fault, f"{error.strerror or error}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    _main()
