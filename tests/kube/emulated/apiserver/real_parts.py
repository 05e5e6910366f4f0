"""Programs of Kubernetes, unmodified, on a served store; wall-clock tests only."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mews.harness.clusters.embedded.control_plane import EmbeddedControlPlane
from mews.harness.clusters.programs.control_plane import Program
from mews.harness.clusters.programs.finding import find
from mews.harness.ports.fence import Fence
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock
from mews.kube.emulated.ports.kubelets import NoKubelets

PATIENCE_S = 120.0
_TROUBLE = re.compile(r"^[EF]\d{4} ")


def missing(*programs: str) -> str:
    """Why the programs cannot run here, or ""."""
    absent = [program for program in programs if find(program) is None]
    return f"{', '.join(absent)} neither in KUBEBUILDER_ASSETS nor on PATH" if absent else ""


@dataclass
class ClusterAdmin:
    """A served store, a client of it, and the folder of whatever else runs on it."""

    plane: EmbeddedControlPlane
    kube: HttpKube
    folder: Path
    clock: Clock

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @asynccontextmanager
    async def running(self, program: Program | None) -> AsyncIterator[None]:
        """With a program, killed at the end; one that ends by itself is a failure."""
        assert program is not None
        fence = Fence()
        task = asyncio.create_task(program(fence).run())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def ground(folder: Path) -> AsyncIterator[ClusterAdmin]:
    """Serve an empty store on loopback."""
    clock = Clock.wall()
    plane = EmbeddedControlPlane(folder, clock.now, random.Random(1))
    await plane.open(NoKubelets(), [])
    made = ClusterAdmin(plane, plane.kube("test"), folder, clock)
    plane.write_kubeconfig(made.kubeconfig)
    try:
        yield made
    finally:
        await plane.close()


async def until(holds: Callable[[], Awaitable[bool]], what: str, *, within_s: float = PATIENCE_S) -> None:
    """Ask again and again."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + within_s
    while not await holds():
        assert loop.time() < end_s, f"not within {within_s:g} s: {what}"
        await asyncio.sleep(0.2)


def troubles(log: Path, *, excused: tuple[str, ...] = ()) -> list[str]:
    """The errors in a program's log, but for those that contain an excuse."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if _TROUBLE.match(line) and not any(excuse in line for excuse in excused)]
