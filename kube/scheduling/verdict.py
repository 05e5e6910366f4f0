"""What a plugin answers, and what it keeps for one attempt."""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

MAX_PERMIT_S = 900.0
"""The longest a pod may wait at Permit (contract apiserver.md section 8)."""


class Code(Enum):
    """The kinds of answer that a plugin can give."""

    SUCCESS = "Success"
    ERROR = "Error"
    """Something went wrong: condition SchedulerError, retried with backoff."""
    UNSCHEDULABLE = "Unschedulable"
    """Does not fit now; preemption may help. At Permit: reject."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Does not fit, and preemption would not help."""
    WAIT = "Wait"
    """Permit only: hold the pod back for at most ``timeout_s``."""
    SKIP = "Skip"
    """PreFilter, PreScore: leave out this plugin's Filter or Score for this pod. Bind: not mine."""


class Status(Struct, frozen=True):
    """An answer: its code and the reasons shown to the user. The framework fills ``plugin`` in.

    ``nodes``, from PreFilter: only these can fit. ``timeout_s``, from Permit with WAIT.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    nodes: frozenset[str] | None = None
    timeout_s: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS

    @property
    def rejected(self) -> bool:
        """Whether the plugin found that the pod does not fit; an error is no such finding."""
        return self.code is Code.UNSCHEDULABLE or self.code is Code.UNRESOLVABLE

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same status with the plugin that gave it named."""
        return self if self.plugin else replace(self, plugin=plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """The pod does not fit now, but would if other pods went."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """The pod does not fit, whichever pods went."""
    return Status(Code.UNRESOLVABLE, reasons)


def error(*reasons: str) -> Status:
    """The plugin could not decide."""
    return Status(Code.ERROR, reasons)


def wait(timeout_s: float) -> Status:
    """Permit's answer: hold the pod until all that hold it allow it, at most this long."""
    return Status(Code.WAIT, timeout_s=min(timeout_s, MAX_PERMIT_S))


def failed(point: str, plugin: str, status: Status) -> Status:
    """Return a status that is no decision, worded as upstream's runtime does with what a plugin could not decide."""
    if status.rejected:
        return status.by(plugin)
    return Status(Code.ERROR, (f"{point}: {status.message}",), plugin)


class CycleState:
    """What plugins keep in ``data`` between their points for one pod's attempt; by convention under their name."""

    __slots__ = ("data", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self.data: dict[str, Any] = {}
        self.skip_filter: frozenset[str] = frozenset()
        self.skip_score: frozenset[str] = frozenset()

    def clone(self) -> CycleState:
        """Return a copy for "what if": values that have a ``clone()`` are cloned, others shared."""
        other = CycleState()
        other.data = {k: v.clone() if hasattr(v, "clone") else v for k, v in self.data.items()}
        other.skip_filter, other.skip_score = self.skip_filter, self.skip_score
        return other
