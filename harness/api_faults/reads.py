"""Faults that strike what the component is shown: lists, gets and the events of watches."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.harness.api_faults.bounds import RECOVERY_S, Delayed, check_within
from mews.harness.api_faults.plans import EventPlan, RequestPlan

MOST_COPIES = 10


@dataclass(frozen=True, slots=True)
class LaggingWatch(Delayed):
    """Events of watches come ``by_s`` late, in their order."""

    kind: ClassVar[str] = "lagging-watch"
    on: ClassVar[tuple[str, ...]] = ("watch",)
    count: ClassVar[int | None] = None

    def lag_s(self, rng: random.Random) -> float:
        """Return the same for all watches."""
        return self.by_s


@dataclass(frozen=True, slots=True)
class UnorderedWatches(Delayed):
    """Events of different watches come in another order: each watch lags by a different time, drawn up to ``by_s``.
    Within one watch, thus of one kind, the order stays, as the API promises."""

    kind: ClassVar[str] = "unordered-watches"
    on: ClassVar[tuple[str, ...]] = ("watch",)
    count: ClassVar[int | None] = None

    def lag_s(self, rng: random.Random) -> float:
        """Return that of one watch."""
        return rng.uniform(0, self.by_s)


@dataclass(frozen=True, slots=True)
class RepeatedEvents:
    """Every event of a watch comes ``times`` times more."""

    times: int = 1
    resource: str | None = None

    kind: ClassVar[str] = "repeated-events"
    on: ClassVar[tuple[str, ...]] = ("watch",)
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def __post_init__(self) -> None:
        check_within(self.kind, "times", self.times, least=1, most=MOST_COPIES)

    def event(self) -> EventPlan:
        """Repeat it."""
        return EventPlan(copies=self.times)


@dataclass(frozen=True, slots=True)
class BrokenWatch:
    """A watch ends where its next event would have come: ``closed`` by the server, ``broken`` without a word, or
    ``gone``, with 410 Expired, so that the component must list again."""

    how: Literal["closed", "broken", "gone"] = "broken"
    resource: str | None = None

    kind: ClassVar[str] = "broken-watch"
    on: ClassVar[tuple[str, ...]] = ("watch",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def event(self) -> EventPlan:
        """End the watch in its place."""
        return EventPlan(ends=self.how)


@dataclass(frozen=True, slots=True)
class StaleReads:
    """The API server that the component asks lags behind: reads show the state from when the fault was added, and
    watches send no events. Writes take effect, as they go to etcd."""

    resource: str | None = None

    kind: ClassVar[str] = "stale-reads"
    on: ClassVar[tuple[str, ...]] = ("get", "list", "watch")
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S

    def read(self, version: str) -> RequestPlan:
        """Show that version."""
        return RequestPlan(version=version)

    def lag_s(self, rng: random.Random) -> float:
        """Return it as long as it is there."""
        return float("inf")
