"""What pods cost on their nodes: nothing, as in the paper's simulator, or what the emulated kubelet takes, whose
measured spans are drawn here as it draws them, with what a testbed's profile adds."""

from __future__ import annotations

import math
import random
from typing import Any

from msgspec import Struct

from mews.kube.emulated.kubelet.timings import MEASURED, Timings
from mews.kube.system.profile import MakeOverhead, NodeState, Overhead


class PodSpan(Struct, frozen=True):
    """A pod's times: its startTime and its end as they are booked, when it is shown Running, when its room is free."""

    started_s: float
    ended_s: float
    shown_s: float
    freed_s: float


class _NodeClock(Struct):
    relist_s: float
    tick_s: float
    reads_s: float
    overhead: Overhead | None


class KubeletCosts:
    """One node's pods take what a kubelet takes. ``ready_first``: as the first jobs come all nodes have just told of
    their devices, as in a scenario, which waits for that; else nobody knows when a node tells of anything."""

    def __init__(
        self,
        seed: int | str,
        make_overhead: MakeOverhead | None,
        timings: Timings = MEASURED,
        *,
        ready_first: bool = False,
    ) -> None:
        self._seed = seed
        self._make = make_overhead
        self._timings = timings
        self._ready_first = ready_first
        self._rng = random.Random(f"{seed}/simulate/kubelet")
        self._nodes: dict[str, _NodeClock] = {}

    def _clock(self, node: str) -> _NodeClock:
        if node not in self._nodes:
            rng = random.Random(f"{self._seed}/simulate/{node}")
            overhead = None if self._make is None else self._make(rng)
            timings = self._timings
            span_s = -timings.relist_s if self._ready_first else timings.tick.usual_s
            self._nodes[node] = _NodeClock(
                rng.random() * timings.relist_s, rng.random() * span_s, rng.random(), overhead
            )
        return self._nodes[node]

    def span(self, node: str, idle: int, bound_s: float, duration_s: float) -> PodSpan:
        """Return the times of a pod that is bound then, on a node with so many idle devices."""
        clock, timings, rng = self._clock(node), self._timings, self._rng
        seen_s = bound_s + timings.see_pod.draw(rng)
        starts = timings.sandbox.draw(rng) + timings.create.draw(rng) + timings.start.draw(rng)
        shown_more_s = stop_s = 0.0
        if clock.overhead is not None:
            delay = clock.overhead(_POD, NodeState(pods=0, devices=idle, held=0))
            starts, shown_more_s, stop_s = starts + delay.start_s, delay.shown_s, delay.stop_s
        running_s = seen_s + starts
        ended_s = running_s + duration_s
        return PodSpan(
            float(math.floor(seen_s)),
            float(math.floor(ended_s)),
            self._relist(clock, running_s) + shown_more_s,
            self._relist(clock, ended_s) + timings.finished.draw(rng) + stop_s,
        )

    def _relist(self, clock: _NodeClock, at_s: float) -> float:
        """Return the kubelet's next look at its containers."""
        return _next(at_s, clock.relist_s, self._timings.relist_s)

    def usable_s(self, node: str, attached_s: float, reading_s: float, rest_s: float) -> float:
        """A device counts in its node's status at the first tick after a reading of the chassis has shown it; one
        takes ``reading_s``, and the next begins ``rest_s`` after it."""
        clock = self._clock(node)
        period_s = reading_s + rest_s
        seen_s = _next(attached_s, clock.reads_s * period_s, period_s)
        return _next(seen_s, clock.tick_s, self._timings.tick.usual_s)


def _next(at_s: float, phase_s: float, period_s: float) -> float:
    return phase_s + (math.floor((at_s - phase_s) / period_s) + 1) * period_s


_POD: dict[str, Any] = {"metadata": {"name": "job"}, "spec": {"containers": []}}
