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


def _place(source: str, target: str) -> None:
    target = os.path.realpath(target)
    if not os.path.exists(target):
        _make_room(target, is_folder=os.path.isdir(source))
    _mount(source, target, None, _BIND | _RECURSIVE)


def _make_room(target: str, *, is_folder: bool) -> None:
    """Make the path in a folder of the machine by putting in its place one in memory, with all that is in it."""
    parent = os.path.dirname(target)
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    if parent == "/":
        raise OSError(f"{target}: a new folder below / cannot be made without a root of its own")
    stage = "/proc" if parent == "/tmp" else "/tmp"  # any folder that is not the one: it is covered for a moment
    kept = os.open(parent, os.O_PATH)
    names = sorted(os.listdir(parent))
    _mount("none", stage, "tmpfs", 0)
    for name in names:
        _take_over(f"/proc/self/fd/{kept}/{name}" if stage != "/proc" else f"{parent}/{name}", f"{stage}/{name}")
    new = os.path.join(stage, os.path.relpath(target, parent))
    os.makedirs(new if is_folder else os.path.dirname(new), exist_ok=True)
    if not is_folder:
        with open(new, "wb"):
            pass
    _mount(stage, parent, None, _MOVE)
    os.close(kept)


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
    for source, target in zip(mounts[::2], mounts[1::2], strict=True):
        _place(source, target)
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
