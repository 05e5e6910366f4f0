"""What runs containers: the port between one node's container daemon (``containerd``) and processes, real or played."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.client.port import ExecResult
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.kernel_traces import KernelTraces
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits
from mews.kube.emulated.streaming.standard_streams import StandardStreams

SEARCH_PATH = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where a process finds programs, if its container does not say."""


class Launch(Struct, frozen=True):
    """One container start with everything resolved. ``command`` and ``args`` are the container's own, empty where the
    image's are meant; ``env`` is the whole environment that Kubernetes gives; ``pod`` is read-only. ``allocation`` is
    what device plugins gave, its ``envs`` in ``env`` already; ``gpus`` are the UUIDs that the
    container runtime made of it, None where it was not asked; ``edits`` are what it does to a container that has a root
    of its own: for one that is a process, the device nodes. ``ip`` is the pod's address; ``resources`` are the
    container's requests and limits of cpu and memory."""

    pod: Object
    container: str
    attempt: int
    image: Image
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: dict[str, str]
    working_dir: str = ""
    allocation: Allocation = field(default_factory=Allocation)
    gpus: tuple[str, ...] | None = None
    edits: ContainerEdits = field(default_factory=ContainerEdits)
    ip: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class LogMark(Struct, frozen=True):
    """From ``offset`` on a log was written at ``loop_s`` (seconds of the loop) to ``stream`` (1: output, 2: error)."""

    offset: int
    loop_s: float
    stream: int = 1


class Log(Protocol):
    """What a container wrote, standard output and error in one."""

    @property
    def size(self) -> int:
        """Bytes so far."""
        ...

    def marks(self, offset: int = 0) -> Sequence[LogMark]:
        """Return when the pieces that end after ``offset`` were written, oldest first."""
        ...

    def read(self, offset: int = 0) -> bytes:
        """Return all bytes from ``offset`` on."""
        ...

    async def grown(self, offset: int) -> None:
        """Return once the log holds more than ``offset`` bytes, or the container has ended."""
        ...


class Process(Protocol):
    """A container that was started."""

    @property
    def log(self) -> Log:
        """The log that the container writes."""
        ...

    async def wait(self) -> int:
        """Wait until the container has ended and return its exit code."""
        ...

    async def stop(self, grace_s: float) -> None:
        """Send TERM, and KILL once the grace period is over; return when the container has ended."""
        ...

    async def exec(self, command: Sequence[str]) -> ExecResult:
        """Run a command in the container, beside its main process.

        Raises ExecRefusedError where that cannot be played.
        """
        ...

    async def run(self, command: Sequence[str], streams: StandardStreams) -> int:
        """Run a command in the container with a client's streams; returns its exit code.

        Raises StartRefusedError.
        """
        ...

    async def attach(self, streams: StandardStreams) -> int:
        """Connect a client to the container's own streams until it ends."""
        ...

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of the container, in the pod of that address.

        Raises OSError with the text for the client.
        """
        ...

    async def ask(self, question: Question) -> HandlerResult:
        """Run a probe's or hook's action against the container, within its time limit."""
        ...


@runtime_checkable
class KernelProcess(Protocol):
    """A container of this machine's kernel."""

    @property
    def kernel(self) -> KernelTraces:
        """What the kernel knows of it."""
        ...


class Runtime(Protocol):
    """What starts containers: as processes, or as simulations of them."""

    async def start(self, launch: Launch) -> Process:
        """Start one container.

        Raises StartError.
        """
        ...

    def forget(self, uid: str) -> None:
        """The sandbox of a pod is down, and its containers have ended."""
        ...

    async def close(self) -> None:
        """End everything that still runs and remove what was written."""
        ...


class ImageStore(Protocol):
    """The images that the container engine has."""

    async def image(self, reference: str) -> object | None:
        """Return what is there under that name, None where it would have to be pulled."""
        ...

    async def pull(self, reference: str) -> None:
        """Get it from its registry.

        Raises PullError.
        """
        ...


class EnginePort(Struct, frozen=True):
    """What runs real images on one node, and has them."""

    runtime: Runtime
    store: ImageStore


async def follow(process: Process, offset: int = 0) -> AsyncIterator[bytes]:
    """Yield a log from that offset on as it grows, until the container has ended and all is read."""
    while True:
        await process.log.grown(offset)
        chunk = process.log.read(offset)
        if not chunk:
            return
        offset += len(chunk)
        yield chunk
