"""One component of a cluster through its incarnations: started, killed as by kill -9, started anew."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from mews.harness.journal import Journal
from mews.harness.ports.fence import Fence, Fenced
from mews.kube.component import Runnable

log = logging.getLogger(__name__)

Make = Callable[[Fence], Runnable]
"""Builds one incarnation; its ports go through that fence."""

Bury = Callable[[], Awaitable[None] | None]
"""What the machine does when the process is gone: connections close."""

FIRST_S, MOST_S, CALM_S = 10.0, 300.0, 600.0
"""Waits before a crashed component is started again: doubling from the first to the most, anew after a calm life
(the kubelet's back-off, contract kubelet.md section 10; pkg/kubelet/kubelet.go MaxContainerBackOff)."""


COMPONENT: ContextVar[str] = ContextVar("component", default="")
"""Whose code runs: the name of a component in all that it does on the loop, "" outside of them."""


class Unit:
    """A component under supervision. ``crash`` is what an incarnation died of without being killed, else None.

    ``revives``: it is started again after a crash, as a Deployment's pod would be; a scenario's is not, it has failed.
    """

    def __init__(self, name: str, journal: Journal, make: Make, *, bury: Bury | None = None) -> None:
        self.name = name
        self.crash: BaseException | None = None
        self.revives = False
        self._wait_s = FIRST_S
        self._journal = journal
        self._make = make
        self._bury = bury
        self._fence: Fence | None = None
        self._task: asyncio.Task[None] | None = None
        self._starts = 0

    @property
    def running(self) -> bool:
        """Whether an incarnation lives."""
        return self._fence is not None and not self._fence.is_cut

    @property
    def starts(self) -> int:
        """How often it was started."""
        return self._starts

    def start(self) -> None:
        """Start a new incarnation; nothing while one lives."""
        if self.running:
            return
        fence = self._fence = Fence()
        self._starts += 1
        if self._starts > 1:
            self._journal.write("component", self.name, "started")
        self._task = asyncio.create_task(self._live(fence), name=self.name)

    def cut(self) -> None:
        """Fence the incarnation off, now: nothing gets out any more."""
        if self._fence is not None and not self._fence.is_cut:
            self._fence.cut()
            self._journal.write("component", self.name, "killed")

    def freeze(self, *, frozen: bool) -> bool:
        """Stop its process, or let it go on; False where it has none that runs."""
        return self._fence is not None and self._fence.freeze(frozen=frozen)

    async def kill(self) -> None:
        """Kill -9: fence, drop the tasks, let the machine close what the process had open."""
        self.cut()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._bury is not None:
            closing = self._bury()
            if closing is not None:
                await closing

    async def close(self) -> None:
        """End with the cluster, without a word in the journal."""
        if self._fence is not None:
            self._fence.cut()
        await self.kill()

    async def _live(self, fence: Fence) -> None:
        COMPONENT.set(self.name)
        begun_s = asyncio.get_running_loop().time()
        try:
            await self._make(fence).run()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            # The outermost loop of a component: whatever escapes is a crash, unless it was killed.
            if fence.is_cut or _only_fenced(error):
                return
            from mews.harness.clusters.process import ProcessEndedError

            self.crash = error
            first = _first(error)
            more: dict[str, list[str]] = {}
            if isinstance(first, ProcessEndedError):
                # Not ours to trace: where the program went wrong its own last lines show.
                log.error("%s: %s", self.name, first)
                more = {"output": list(first.output)} if first.output else {}
            else:
                log.exception("%s crashed", self.name)
            self._journal.write("component", self.name, "crashed", cause=_cause(error), **more)
            fence.cut()
        if self.revives and self.crash is not None:
            await self._revive(asyncio.get_running_loop().time() - begun_s)

    async def _revive(self, lived_s: float) -> None:
        wait_s = FIRST_S if lived_s >= CALM_S else self._wait_s
        self._wait_s = min(2 * wait_s, MOST_S)
        if self._bury is not None and (closing := self._bury()) is not None:
            await closing
        log.warning("%s is started again in %g s", self.name, wait_s)
        await asyncio.sleep(wait_s)
        self.crash = None
        self.start()


def _only_fenced(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_only_fenced(inner) for inner in error.exceptions)
    return isinstance(error, Fenced | asyncio.CancelledError)


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _cause(error: BaseException) -> str:
    found = _first(error)
    return f"{type(found).__name__}: {found}"
