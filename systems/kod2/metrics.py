"""What the operator measures of itself."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol


class Kod2Counter(StrEnum):
    """What is counted."""

    PLACED = "placed_jobs"
    SCALED_IN = "removed_workers"
    SCALED_OUT = "added_workers"
    STARVED = "starved_jobs"
    REFUSED = "refused_pods"
    RESTARTED = "restarted_pods"
    SUCCEEDED = "succeeded_jobs"
    FAILED = "failed_jobs"
    RETRIES = "retried_keys"
    STALLED = "stalled_jobs"
    ERRORS = "unexpected_errors"


class Kod2Metrics(Protocol):
    """Where the operator puts its numbers."""

    def count(self, what: Kod2Counter, by: int = 1) -> None:
        """So many more."""
        ...

    def states(self, jobs: Mapping[str, int]) -> None:
        """How many jobs are in each state now."""
        ...

    def workers(self, jobs: Mapping[str, int]) -> None:
        """How many workers each running job has now, by ``namespace/name``."""
        ...

    def finished(self, wait_s: float, jct_s: float) -> None:
        """A job entered the finished queue: how long it waited, and how long it took in all."""
        ...

    def decided(self, seconds: float) -> None:
        """How long a scheduling pass took, loop seconds."""
        ...


class Kod2MemoryMetrics:
    """Metrics in plain Python."""

    def __init__(self) -> None:
        self.counts: dict[Kod2Counter, int] = dict.fromkeys(Kod2Counter, 0)
        self.jobs: dict[str, int] = {}
        self.workers_of: dict[str, int] = {}
        self.waits_s: list[float] = []
        self.jcts_s: list[float] = []

    def count(self, what: Kod2Counter, by: int = 1) -> None:
        """So many more."""
        self.counts[what] += by

    def states(self, jobs: Mapping[str, int]) -> None:
        """How many jobs are in each state now."""
        self.jobs = dict(jobs)

    def workers(self, jobs: Mapping[str, int]) -> None:
        """How many workers each running job has now."""
        self.workers_of = dict(jobs)

    def finished(self, wait_s: float, jct_s: float) -> None:
        """A job entered the finished queue."""
        self.waits_s.append(wait_s)
        self.jcts_s.append(jct_s)

    def decided(self, seconds: float) -> None:
        """Not kept: in virtual time it is nothing."""
