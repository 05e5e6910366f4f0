"""What a run of an expression has: its variables, and the steps that are left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.kube.cel.budgets import SLICE, WORK_LIMIT, EvaluationPace, work_of
from mews.kube.cel.values import CelError

_EXCEEDED = "operation cancelled: actual cost limit exceeded"
_WORK_PER_STEP = 10
"""Members that are touched in the time of a step."""


class Frame:
    """The variables of a run, and the steps that are left: of this slice, ``later`` of those to come, ``work`` of its
    own (``kube/cel/budgets.py``)."""

    __slots__ = ("later", "left", "names", "pace", "work")

    def __init__(self, names: dict[str, Any], limit: int, pace: EvaluationPace | None = None) -> None:
        self.names = names
        self.pace = pace
        self.left = limit if pace is None else min(limit, SLICE)
        self.later = limit - self.left
        self.work = WORK_LIMIT

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises ``CelError`` when none are left.
        """
        self.left -= steps
        while self.left < 0:
            if not self.later or self.pace is None:
                raise CostExceededError(_EXCEEDED)
            self.pace.go_on(SLICE)
            more = min(self.later, SLICE)
            self.left += more
            self.later -= more

    def toil(self, name: str, values: list[Any]) -> None:
        """Count the work of a call before it is done.

        Raises ``CelError`` when it is too much.
        """
        done = work_of(name, values, self.work)
        self.work -= done
        if self.work < 0:
            raise CostExceededError(_EXCEEDED)
        if self.pace is not None and done > SLICE:
            self.pace.go_on(done // _WORK_PER_STEP)


class CostExceededError(CelError):
    """No steps are left."""


def within(frame: Frame, names: dict[str, Any]) -> Frame:
    """Return what a loop has: these variables besides those outside."""
    inner = _InnerFrame({**frame.names, **names}, 0)
    inner.outer = frame
    return inner


class _InnerFrame(Frame):
    """The variables of a loop; steps are counted outside."""

    __slots__ = ("outer",)

    outer: Frame

    def spend(self, steps: int) -> None:
        self.outer.spend(steps)

    def toil(self, name: str, values: list[Any]) -> None:
        self.outer.toil(name, values)


Run = Callable[[Frame], Any]
"""A part of an expression, ready to run."""


class Constant:
    """A value that is known before any run, and costs none."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, frame: Frame) -> Any:
        """Return the value."""
        return self.value
