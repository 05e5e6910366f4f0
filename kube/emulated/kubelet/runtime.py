"""What runs containers: the port between one node's container daemon (``containerd``) and processes, real or played."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mews.kube.api.objects import Object
from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.handlers import Answer, Question
from mews.kube.emulated.kubelet.images import Image


@dataclass(frozen=True, slots=True)
class Launch:
    """One container start with everything resolved. ``command`` and ``args`` are the container's own, empty where the
    image's are meant; ``env`` is the whole environment that Kubernetes gives; ``pod`` is read-only."""

    pod: Object
    container: str
    attempt: int
    image: Image
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: dict[str, str]
    working_dir: str = ""


class Log(Protocol):
    """What a container wrote, standard output and error in one."""

    def read(self, offset: int = 0) -> bytes:
        """All bytes from that offset on."""
        ...

    async def grown(self, offset: int) -> None:
        """Return once there is more than that many bytes, or the container has ended."""
        ...


class Process(Protocol):
    """One started container."""

    @property
    def log(self) -> Log:
        """What it writes."""
        ...

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        ...

    async def stop(self, grace_s: float) -> None:
        """TERM, and KILL once the grace is over; returns when it has ended."""
        ...

    async def exec(self, command: Sequence[str]) -> ExecResult:
        """Run a command beside it.

        Raises ExecRefused where that cannot be played.
        """
        ...

    async def ask(self, question: Question) -> Answer:
        """Do a probe's or a hook's action, within its time."""
        ...


class Runtime(Protocol):
    """Starts containers."""

    async def start(self, launch: Launch) -> Process:
        """Start one.

        Raises StartError.
        """
        ...

    async def close(self) -> None:
        """End everything that still runs and remove what was written."""
        ...


async def follow(process: Process, offset: int = 0) -> AsyncIterator[bytes]:
    """A log from that offset on as it grows, until the container has ended and all is read."""
    while True:
        await process.log.grown(offset)
        chunk = process.log.read(offset)
        if not chunk:
            return
        offset += len(chunk)
        yield chunk
