"""Namespaces for a process' container, where this machine lets its users make them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct

from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet import namespace_entry

_PYTHON = (sys.executable, "-I", "-S", str(Path(namespace_entry.__file__)))
_PROBE_S = 10.0

Mounts = Sequence[tuple[Path, str]]
"""What stands where: a file or folder of this machine, and the absolute path at which the container finds it."""


class ContainerRoot(Struct, frozen=True):
    """The root of one container: this machine's folders except /tmp, read-only unless ``machine_writable``, and over
    them the mounts. ``user`` and ``group`` are what this process' user and group are called inside; ``stage`` is an
    empty folder of this machine, ``folder`` the container's working folder; "" as ``hostname`` is this machine's.
    ``door`` is the descriptor of its pod's network and ``ip`` the pod's address; None: it has this machine's."""

    mounts: tuple[Mount, ...]
    stage: Path
    folder: str
    user: int
    group: int
    hostname: str = ""
    door: int | None = None
    ip: str = ""
    machine_writable: bool = False

    @property
    def passed(self) -> tuple[int, ...]:
        """Descriptors that whoever enters inherits."""
        return () if self.door is None else (self.door,)

    @property
    def entry(self) -> tuple[str, ...]:
        """What whoever enters must know: working folder, network, address."""
        return (self.folder, "" if self.door is None else str(self.door), self.ip)

    @property
    def words(self) -> tuple[str, ...]:
        """As the program in the namespace reads it."""
        mode = "rw" if self.machine_writable else "ro"
        placed = [
            word
            for mount in self.mounts
            for word in ("ro" if mount.read_only else "rw", mount.host_path, mount.container_path)
        ]
        return (self.hostname, str(self.user), str(self.group), str(self.stage), *self.entry, mode, *placed)


@cache
def namespaces_lacking() -> str:
    """Return why no namespace can be made here; "" where it can (asked once, blocking)."""
    import subprocess
    import tempfile

    if not sys.platform.startswith("linux"):
        return f"there are no user namespaces on {sys.platform}"
    try:
        with tempfile.TemporaryDirectory(prefix="mews-root-") as stage:
            root = ContainerRoot((), Path(stage), "/", os.getuid(), os.getgid())
            words = [*_PYTHON, "contain", "2", *root.words, "--"]
            asked = subprocess.run(words, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if asked.returncode == 0 else asked.stderr.strip() or f"exit code {asked.returncode}"


@cache
def filters_lacking() -> str:
    """Return why pods cannot have a network of their own here; "" where they can (asked once, blocking)."""
    import subprocess

    lacking = namespaces_lacking()
    if lacking:
        return lacking
    try:
        words = [*_PYTHON, "filter", "2", "--"]
        asked = subprocess.run(words, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = asked.stderr.strip().splitlines()
    return "" if asked.returncode == 0 else lines[-1] if lines else f"exit code {asked.returncode}"


class NamespaceStart:
    """The start of one process in namespaces: ``prefix`` goes before its program, descriptors that are ``passed``
    are inherited."""

    def __init__(self, mounts: Mounts | ContainerRoot) -> None:
        self._read, self.descriptor = os.pipe()
        os.set_inheritable(self.descriptor, True)
        if isinstance(mounts, ContainerRoot):
            self.prefix = (*_PYTHON, "contain", str(self.descriptor), *mounts.words, "--")
            self.passed = (self.descriptor, *mounts.passed)
        else:
            placed = [word for source, target in mounts for word in (str(source), target)]
            self.prefix = (*_PYTHON, "boot", str(self.descriptor), *placed, "--")
            self.passed = (self.descriptor,)

    async def fault(self) -> str:
        """Once the program runs: ""; else why it does not."""
        self._close_ours()
        return (await asyncio.to_thread(self._read_all)).decode("utf-8", "replace").strip()

    def _close_ours(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _read_all(self) -> bytes:
        with os.fdopen(self._read, "rb") as file:
            return file.read()

    def abandon(self) -> None:
        """The process was not even made."""
        self._close_ours()
        os.close(self._read)


def entry_of(pid: int, root: ContainerRoot | None = None) -> tuple[str, ...]:
    """Return what goes before a command that is to see what that process sees; ``root`` is its container's, where it
    has one: there it starts in the container's folder and is in the pod's network."""
    return (*_PYTHON, "enter", str(pid), *(() if root is None else root.entry), "--")
