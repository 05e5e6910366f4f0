"""Namespaces for a process' container, where this machine lets its users make them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet import namespace_entry

_PYTHON = (sys.executable, "-I", "-S", str(Path(namespace_entry.__file__)))
_PROBE_S = 10.0
_POD = "ipc,pid,kept"
"""What the containers of a pod have in common that see each other's processes."""
_AT_ONCE, _MOST_KEPT = 65536, 8

Mounts = Sequence[tuple[Path, str]]
"""What stands where: a file or folder of this machine, and the absolute path at which the container finds it."""


class ContainerRoot(Struct, frozen=True):
    """The root of one container: this machine's folders except /tmp, read-only unless ``machine_writable``, and over
    them the mounts. ``user`` and ``group`` are what this process' user and group are called inside; ``stage`` is an
    empty folder of this machine, ``folder`` the container's working folder; "" as ``hostname`` is this machine's.
    ``door`` is the descriptor of its pod's network and ``ip`` the pod's address; None: it has this machine's.
    ``namespaces`` are words for others that it has or joins, by those descriptors that are ``joined``; ``groups`` are
    files by which a process gets into its control groups."""

    mounts: tuple[Mount, ...]
    stage: Path
    folder: str
    user: int
    group: int
    hostname: str = ""
    door: int | None = None
    ip: str = ""
    machine_writable: bool = False
    namespaces: tuple[str, ...] = ()
    joined: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def passed(self) -> tuple[int, ...]:
        """Descriptors that whoever enters inherits."""
        return () if self.door is None else (self.door,)

    @property
    def entry(self) -> tuple[str, ...]:
        """What whoever enters must know: working folder, network, address, control groups."""
        return (self.folder, "" if self.door is None else str(self.door), self.ip, "\n".join(self.groups))

    @property
    def words(self) -> tuple[str, ...]:
        """As the program in the namespace reads it."""
        mode = "rw" if self.machine_writable else "ro"
        placed = [
            word
            for mount in self.mounts
            for word in ("ro" if mount.read_only else "rw", mount.host_path, mount.container_path)
        ]
        return (
            ",".join(self.namespaces),
            self.hostname,
            str(self.user),
            str(self.group),
            str(self.stage),
            *self.entry,
            mode,
            *placed,
        )


@cache
def namespaces_lacking() -> str:
    """Return why no namespace can be made here; "" where it can (asked once, blocking)."""
    if not sys.platform.startswith("linux"):
        return f"there are no user namespaces on {sys.platform}"
    return _tried(())


@cache
def lacking(kind: str) -> str:
    """Return why containers share this machine's ``pid`` or ``ipc`` namespace; "" where they have their own (asked
    once, blocking). One for process IDs needs /proc, of which a container's runtime may have covered parts."""
    return namespaces_lacking() or _tried((kind,))


def _tried(namespaces: tuple[str, ...]) -> str:
    import subprocess
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="mews-root-") as stage:
            root = ContainerRoot((), Path(stage), "/", os.getuid(), os.getgid(), namespaces=namespaces)
            words = [*_PYTHON, "contain", "2", *root.words, "--"]
            asked = subprocess.run(words, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if asked.returncode == 0 else asked.stderr.strip() or f"exit code {asked.returncode}"


@cache
def filters_lacking() -> str:
    """Return why pods cannot have a network of their own here; "" where they can (asked once, blocking)."""
    import subprocess

    missing = namespaces_lacking()
    if missing:
        return missing
    try:
        words = [*_PYTHON, "filter", "2", "--"]
        asked = subprocess.run(words, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = asked.stderr.strip().splitlines()
    return "" if asked.returncode == 0 else lines[-1] if lines else f"exit code {asked.returncode}"


class NamespaceStart:
    """The start of one process in namespaces: ``prefix`` goes before its program, descriptors that are ``passed``
    are inherited; by the ``door`` of callers it finds pods. Once it runs, ``child`` is the process that the program is,
    where it is not the one that was started, and ``kept`` are descriptors of its namespaces, which are the caller's to
    close."""

    def __init__(self, mounts: Mounts | ContainerRoot | None, door: tuple[int, ...] = ()) -> None:
        self.prefix: tuple[str, ...]
        self.passed: tuple[int, ...]
        self.child: int | None = None
        self.kept: dict[str, int] = {}
        self._ours, self._theirs = socket.socketpair()
        self._theirs.set_inheritable(True)
        self.descriptor = self._theirs.fileno()
        if mounts is None:
            self.prefix = (*_PYTHON, "pause", str(self.descriptor), _POD, "--")
            self.passed = (self.descriptor,)
        elif isinstance(mounts, ContainerRoot):
            self.prefix = (*_PYTHON, "contain", str(self.descriptor), *mounts.words, "--")
            self.passed = (self.descriptor, *mounts.passed, *mounts.joined)
        else:
            placed = [word for source, target in mounts for word in (str(source), target)]
            self.prefix = (*_PYTHON, "boot", str(self.descriptor), ",".join(map(str, door)), *placed, "--")
            self.passed = (self.descriptor, *door)

    async def fault(self) -> str:
        """Once the program runs: ""; else why it does not."""
        self._theirs.close()
        reading = asyncio.get_running_loop().run_in_executor(None, self._read_all)
        try:
            return (await asyncio.shield(reading)).decode("utf-8", "replace").strip()
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                self._ours.shutdown(socket.SHUT_RDWR)  # The thread reads an end, and closes it.
            raise

    def _read_all(self) -> bytes:
        found, held = b"", list[int]()
        with self._ours:
            while True:
                data, descriptors, _, _ = socket.recv_fds(self._ours, _AT_ONCE, _MOST_KEPT, socket.MSG_CMSG_CLOEXEC)
                held += descriptors
                if not data and not descriptors:
                    break
                found += data
        lines = found.split(b"\n")
        for line in lines:
            if line.startswith(b"\0"):
                number, *kinds = line[1:].decode("ascii").split()
                self.child, self.kept = int(number), dict(zip(kinds, held, strict=True))
        return b"\n".join(line for line in lines if not line.startswith(b"\0"))

    def abandon(self) -> None:
        """The process was not even made."""
        self._theirs.close()
        self._ours.close()


def entry_of(pid: int | str, root: ContainerRoot | None = None) -> tuple[str, ...]:
    """Return what goes before a command that is to see what that process sees; ``root`` is its container's, where it
    has one: there it starts in the container's folder and is in the pod's network."""
    return (*_PYTHON, "enter", str(pid), *(() if root is None else root.entry), "--")
