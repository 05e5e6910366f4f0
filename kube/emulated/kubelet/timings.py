"""How long the kubelet's steps take: measured spans as data (contract kubelet.md sections 2, 8, 10 and 11; the spans
are the low, usual and high values of data/kubelet-1.34/lifecycle, two shared cores)."""

from __future__ import annotations

import random

from msgspec import Struct


class Span(Struct, frozen=True):
    """Seconds between two events: never below ``low_s``, never above ``high_s``, most often ``usual_s``."""

    low_s: float
    usual_s: float
    high_s: float

    def draw(self, rng: random.Random) -> float:
        """Draw one duration from the span."""
        return rng.triangular(self.low_s, self.high_s, self.usual_s)


class Timings(Struct, frozen=True):
    """The spans of a kubelet, in emulated seconds."""

    see_pod: Span = Span(0.010, 0.015, 0.035)
    """A pod bound -> its first status (hostIP, ContainerCreating)."""
    sandbox: Span = Span(0.45, 0.50, 1.30)
    """First status -> sandbox up, event Pulled."""
    create: Span = Span(0.012, 0.017, 0.035)
    """Pulled -> Created."""
    start: Span = Span(0.09, 0.10, 0.38)
    """Created -> Started, the process runs."""
    see_deletion: Span = Span(0.020, 0.030, 1.0)
    """deletionTimestamp -> observedGeneration, event Killing, TERM."""
    killed: Span = Span(0.19, 0.20, 0.26)
    """The last container gone -> the terminal phase of a deleted pod."""
    finished: Span = Span(1.13, 1.19, 1.37)
    """All containers ended by themselves, seen -> the terminal phase."""
    remove: Span = Span(0.70, 0.75, 0.84)
    """The terminal phase of a deleted pod -> DELETE with grace 0."""
    retry: Span = Span(10.0, 12.5, 15.0)
    """A sync that failed -> the next one (backOffPeriod with jitter, pkg/kubelet/pod_workers.go)."""
    resync: Span = Span(60.0, 75.0, 90.0)
    """A sync -> the next one of a pod to which nothing happens (workerResyncIntervalJitterFactor)."""
    relist_s: float = 1.0
    """The kubelet looks at its containers once in that time (PLEG)."""
    backoff_first_s: float = 10.0
    backoff_last_s: float = 300.0
    """Crash-loop back-off: doubled with each restart, forgotten after twice the last value."""
    boot: Span = Span(0.3, 0.6, 0.66)
    """A kubelet's start -> its sockets are there."""
    first_status: Span = Span(0.1, 0.15, 0.2)
    """Its sockets are there -> its first status."""
    become_ready: Span = Span(0.25, 0.27, 0.29)
    """A new node registered -> Ready True."""
    tick: Span = Span(10.0, 10.2, 10.4)
    """The node status loop, and the renewal of the lease."""
    report_s: float = 300.0
    """An unchanged node status is written again after that long."""


MEASURED = Timings()
