"""What all parts of one run share, as one value: made once, passed on whole."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from msgspec import Struct

from mews.harness.clock import virtual_clock
from mews.harness.journal import Journal
from mews.kube.clock import Clock, Pace, stream

if TYPE_CHECKING:
    from mews.harness.options import RunOptions


class RunContext(Struct, frozen=True):
    """One run of one scenario: its chance, its time, its dialect and its journal.

    ``pace`` is that of emulated hardware and durations (``--speed``); ``clock`` is the time that components read.
    """

    seed: int
    dialect: str
    pace: Pace
    clock: Clock
    journal: Journal

    @property
    def speed(self) -> float:
        """Emulated seconds per second of the loop."""
        return self.pace.speed

    def rng(self, actor: str) -> random.Random:
        """Return the actor's own stream of chance: the same for the same seed and name in every process."""
        return stream(self.seed, actor)


def begin_run(options: RunOptions, *, seed: int, dialect: str) -> RunContext:
    """Return the context of a run that begins now, on the running loop: its journal counts seconds from this call."""
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    clock = virtual_clock() if options.time == "virtual" else Clock.wall()
    return RunContext(seed, dialect, Pace(options.speed), clock, Journal(lambda: loop.time() - start_s))
