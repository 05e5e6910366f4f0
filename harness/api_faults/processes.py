"""Faults that strike a component's whole process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mews.harness.api_faults.bounds import RECOVERY_S


@dataclass(frozen=True, slots=True)
class FrozenProcess:
    """The component's process and those it started are stopped (SIGSTOP) until the fault ends (SIGCONT): it answers
    nobody, and its connections stay open. Only for programs in wall-clock time."""

    kind: ClassVar[str] = "frozen-process"
    on: ClassVar[tuple[str, ...]] = ()
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = ()
    grace_s: ClassVar[float] = RECOVERY_S
