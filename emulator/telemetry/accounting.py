"""Accounting of a board's processes (NVML API reference, "Accounting Statistics"): what each used over its life.

Shares are means over a process' life, of a GPU's time in percent. The buffer is circular: the oldest process that has
ended makes room for the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.emulator.telemetry import physics
from mews.emulator.telemetry.timeline import TelemetrySpan

BUFFER = 4000
"""Processes that a driver remembers (nvmlDeviceGetAccountingBufferSize)."""


class AccountedProcess(Struct, frozen=True):
    """``ended_ns`` None: it still runs. ``memory_mib`` is the most that it used."""

    key: str
    began_ns: int
    ended_ns: int | None
    utilization: int
    memory_mib: int

    @property
    def memory_utilization(self) -> int:
        """Percent of its life in which it read or wrote memory."""
        return physics.memory_utilization(self.utilization)

    def as_value(self) -> list[Any]:
        """Return them for JSON; ``AccountedProcess(*value)`` reads it back."""
        return [self.key, self.began_ns, self.ended_ns, self.utilization, self.memory_mib]


class RunningAccount(Struct):
    """A process that runs: percent of the GPU's time, times ns."""

    began_ns: int
    memory_mib: int
    work_ns: int = 0

    def process(self, key: str, at_ns: int, ended_ns: int | None) -> AccountedProcess:
        """Return what there is of it at a time."""
        passed_ns = max(at_ns - self.began_ns, 1)
        return AccountedProcess(key, self.began_ns, ended_ns, self.work_ns // passed_ns, self.memory_mib)


class BoardAccounting:
    """The accounts of one board. ``period`` numbers the times that it was switched on or cleared; 0 is off."""

    __slots__ = ("_ended", "_running", "period")

    def __init__(self) -> None:
        self.period = 0
        self._running: dict[str, RunningAccount] = {}
        self._ended: list[AccountedProcess] = []

    def switch(self, period: int, filled: Mapping[str, int], at_ns: int) -> None:
        """Begin anew, or end; ``filled`` is what each process uses, in MiB."""
        self.period = period
        self._ended = []
        self._running = {key: RunningAccount(at_ns, mib) for key, mib in filled.items()} if period else {}

    def add(self, spans: Iterable[TelemetrySpan], keys: Sequence[str], begin_ns: int, end_ns: int) -> None:
        """What processes did from a time to another, in the order of the spans' shares."""
        for span in spans:
            until_ns = end_ns if span.until_ns is None else min(span.until_ns, end_ns)
            passed_ns = until_ns - max(span.at_ns, begin_ns)
            for key, share in zip(keys, span.shares, strict=True):
                if key in self._running and passed_ns > 0:
                    self._running[key].work_ns += share * passed_ns

    def change(self, filled: Mapping[str, int], at_ns: int) -> None:
        """From now on these processes run, each with its MiB."""
        for key in [key for key in self._running if key not in filled]:
            self._ended.append(self._running.pop(key).process(key, at_ns, at_ns))
        del self._ended[:-BUFFER]
        for key, memory_mib in filled.items():
            account = self._running.setdefault(key, RunningAccount(at_ns, memory_mib))
            account.memory_mib = max(account.memory_mib, memory_mib)

    def shown(self, at_ns: int) -> tuple[AccountedProcess, ...]:
        """Return all, those that ended first."""
        running = (account.process(key, at_ns, None) for key, account in self._running.items())
        return (*self._ended, *running)
