"""Waiting for the world to become as expected: woken by the journal, never a fixed sleep.

A look is taken again whenever the journal grows, and on a slow beat for what no journal shows (logs, rare kinds). The
beat is a ``rest``, so that waiting alone never keeps a virtual run going: once nothing can happen any more, and that
for a while (a lease may still lapse unseen), the wait ends as a deadlock, in no time at all.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace

from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.chain import chain_of
from mews.harness.scenario.diagnosis import hint_for, made_by, related_to
from mews.harness.scenario.errors import Failure, StepFailedError
from mews.harness.scenario.step_context import Finding, StepContext
from mews.kube.clock import rest

_BEAT_S = {"virtual": 1.0, "wall": 0.2}
_QUIET_S = 200.0
"""What may still happen unseen lapses within this time: longer than the longest lease of a component (180 s)."""

Look = Callable[[], Awaitable[Finding]]


class _Quiet:
    """Since when nothing happened."""

    def __init__(self, cluster: Cluster, patience_s: float) -> None:
        self._cluster = cluster
        self._patience_s = patience_s
        self._line = len(cluster.journal)
        self._since = asyncio.get_running_loop().time()

    def for_good(self) -> bool:
        """Return whether nothing can happen any more."""
        now, line = asyncio.get_running_loop().time(), len(self._cluster.journal)
        if line != self._line:
            self._line, self._since = line, now
        return self._cluster.stalled(self._line) and now - self._since >= self._patience_s


@contextlib.asynccontextmanager
async def _woken(cluster: Cluster) -> AsyncIterator[asyncio.Event]:
    """Provide an event that is set whenever the journal grows, and on each beat."""
    wake = asyncio.Event()

    async def beat() -> None:
        while True:
            await rest(_BEAT_S.get(cluster.time, 1.0))
            wake.set()

    stop = cluster.journal.listen(lambda _: wake.set())
    beating = asyncio.create_task(beat())
    try:
        yield wake
    finally:
        stop()
        beating.cancel()


async def until(stage: StepContext, look: Look, timeout_s: float) -> Finding:
    """Look until it holds; ``timeout_s`` in loop seconds.

    Raises StepFailedError when time is up, when nothing can happen any more, or once a program of the user's has ended
    by itself: what it was to do nobody does.
    """
    cluster, loop = stage.cluster, asyncio.get_running_loop()
    timeout_s = stage.remaining_s(timeout_s)
    start = loop.time()
    quiet = _Quiet(cluster, min(_QUIET_S, timeout_s / 2))
    async with _woken(cluster) as wake:
        while True:
            wake.clear()
            finding = await look()
            if finding.holds:
                return finding
            waited = loop.time() - start
            crash = stage.brought.crash()
            if crash is not None:
                failure = await _failure(stage, finding, waited, deadlock=False)
                raise StepFailedError(replace(failure, crash=crash.text, output=crash.output, hint=""))
            dead = quiet.for_good()
            if dead or waited >= timeout_s:
                raise StepFailedError(await _failure(stage, finding, waited, deadlock=dead))
            await wake.wait()


async def hold(stage: StepContext, look: Look, span_s: float) -> Finding:
    """Look again and again for so long (loop seconds); it must hold each time.

    Raises StepFailedError as soon as it does not.
    """
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with _woken(stage.cluster) as wake:
        timer = loop.call_later(span_s, wake.set)
        try:
            while True:
                wake.clear()
                finding = await now(stage, look)
                if loop.time() - start >= span_s:
                    return finding
                await wake.wait()
        finally:
            timer.cancel()


async def now(stage: StepContext, look: Look) -> Finding:
    """Look once.

    Raises StepFailedError when it does not hold.
    """
    finding = await look()
    if not finding.holds:
        raise StepFailedError(await _failure(stage, finding, None, deadlock=False))
    return finding


async def _failure(stage: StepContext, finding: Finding, waited_s: float | None, *, deadlock: bool) -> Failure:
    return Failure(
        awaited=finding.awaited,
        seen=finding.seen,
        waited_s=waited_s,
        deadlock=deadlock,
        related=related_to(stage.cluster.journal, finding.about, stage.first_line),
        line=made_by(stage.cluster.journal, finding, stage.first_line),
        chain=() if waited_s is None else chain_of(stage.cluster.journal.lines(), finding.about),
        hint=await hint_for(stage.cluster, finding.about, deadlock=deadlock),
    )
