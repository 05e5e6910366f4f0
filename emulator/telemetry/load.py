"""What a process asks of a GPU over its life: constant, a curve, a walk by the seed. Pure values, checked as they are
read.

::

    80                                        # percent, for as long as it runs
    {utilization: 80, memory_mib: 16384}
    {curve: {0: 10, 60: 90, 300: 0}}          # seconds since its start: percent, each until the next
    {curve: [[0, 10], [60, 90]], repeat_s: 120}
    {walk: {low: 20, high: 90, step: 10, every_s: 5}}
    {trace: load.csv}                         # columns t_s, utilization: read by who starts it (``traced``)
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from mews.emulator.telemetry.units import ns

KINDS = ("utilization", "curve", "walk", "trace")
FORMS = "a percentage, or a mapping with one of utilization, curve, walk, trace, and memory_mib"
POINTS = 100_000
"""A curve has at most so many points."""
MEMORY_MIB = 1 << 22


class LoadLevels(Protocol):
    """A load that runs."""

    def at(self, age_ns: int) -> tuple[int, int | None]:
        """Return its percentage at that age, and at which age it changes next (None: never)."""
        ...


class LoadCurve(Struct, frozen=True):
    """``points`` are (age in ns, percent), ascending, the first at 0; the last holds for ever, or all begin anew every
    ``repeat_ns``."""

    points: tuple[tuple[int, int], ...]
    repeat_ns: int | None = None

    def at(self, age_ns: int) -> tuple[int, int | None]:
        """See LoadLevels."""
        begin_ns, age_ns = 0, max(age_ns, 0)
        if self.repeat_ns is not None:
            begin_ns = age_ns - age_ns % self.repeat_ns
        place = bisect_right(self.points, (age_ns - begin_ns, 101)) - 1
        after = place + 1
        if after < len(self.points):
            return self.points[place][1], begin_ns + self.points[after][0]
        return self.points[place][1], None if self.repeat_ns is None else begin_ns + self.repeat_ns


class LoadWalk(Struct, frozen=True):
    """It begins in the middle of ``low`` and ``high`` and goes at most ``step`` up or down every ``every_ns``."""

    low: int
    high: int
    step: int
    every_ns: int


class WalkedLevels:
    """A walk that runs: its steps follow from ``seed`` alone and are made as they are looked at."""

    def __init__(self, walk: LoadWalk, seed: str) -> None:
        self._walk = walk
        self._rng = random.Random(seed)
        self._steps = [(walk.low + walk.high) // 2]

    def at(self, age_ns: int) -> tuple[int, int | None]:
        """See LoadLevels."""
        walk, number = self._walk, max(age_ns, 0) // self._walk.every_ns
        while len(self._steps) <= number:
            there = self._steps[-1] + self._rng.randint(-walk.step, walk.step)
            self._steps.append(max(walk.low, min(walk.high, there)))
        return self._steps[number], (number + 1) * walk.every_ns


class GpuLoad(Struct, frozen=True):
    """One process' load; ``memory_mib`` None: its share of what a load fills."""

    course: LoadCurve | LoadWalk
    memory_mib: int | None = None

    def levels(self, seed: str) -> LoadLevels:
        """It runs now; ``seed`` is of this process alone."""
        return self.course if isinstance(self.course, LoadCurve) else WalkedLevels(self.course, seed)

    def as_value(self) -> dict[str, Any]:
        """Return the mapping that ``parse_load`` reads back."""
        more = {} if self.memory_mib is None else {"memory_mib": self.memory_mib}
        if isinstance(self.course, LoadWalk):
            walk = self.course
            every_s = walk.every_ns / ns(1)
            return {"walk": {"low": walk.low, "high": walk.high, "step": walk.step, "every_s": every_s}, **more}
        repeat = {} if self.course.repeat_ns is None else {"repeat_s": self.course.repeat_ns / ns(1)}
        return {"curve": [[at_ns / ns(1), percent] for at_ns, percent in self.course.points], **repeat, **more}


IDLE = GpuLoad(LoadCurve(((0, 0),)), 0)
"""A process that has the GPU open and does nothing."""


def constant(percent: int, memory_mib: int | None = None) -> GpuLoad:
    """Return the same from the beginning to the end."""
    return GpuLoad(LoadCurve(((0, percent),)), memory_mib)


def parse_load(value: Any) -> GpuLoad:
    """Return a load as files and annotations have it.

    Raises ValueError: the value, and what is allowed.
    """
    if not isinstance(value, Mapping):
        return constant(_percent(value, "load"))
    _only(value, (*KINDS, "memory_mib", "repeat_s"), "load")
    given = [kind for kind in KINDS if kind in value]
    if len(given) != 1:
        raise ValueError(f"load {_shown(value)}: must be {FORMS}")
    memory_mib = None if "memory_mib" not in value else _whole(value["memory_mib"], "memory_mib", 0, MEMORY_MIB)
    if "repeat_s" in value and given != ["curve"]:
        raise ValueError(f"repeat_s {value['repeat_s']!r}: only a curve repeats")
    match given[0]:
        case "utilization":
            return constant(_percent(value["utilization"], "utilization"), memory_mib)
        case "curve":
            return GpuLoad(_curve(value["curve"], value.get("repeat_s")), memory_mib)
        case "walk":
            return GpuLoad(_walk(value["walk"]), memory_mib)
    raise ValueError(f"trace {value['trace']!r}: a trace file can be named only on the command line")


def traced(rows: Iterable[Mapping[str, str]], memory_mib: int | None = None) -> GpuLoad:
    """Return the load of a trace: rows with ``t_s`` and ``utilization``, as a CSV file has them.

    Raises ValueError naming the row.
    """
    points = []
    for number, row in enumerate(rows, start=2):
        try:
            points.append((float(row["t_s"]), float(row["utilization"])))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"line {number}: must have numbers in the columns t_s and utilization") from None
    return GpuLoad(_curve([[t, percent] for t, percent in points], None), memory_mib)


def _curve(value: Any, repeat_s: Any) -> LoadCurve:
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not 0 < len(pairs) <= POINTS:
        raise ValueError(f"curve {_shown(value)}: must be seconds and percentages, such as {{0: 10, 60: 90}}")
    points: list[tuple[int, int]] = []
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"curve {_shown(pair)}: must be a pair of seconds and percent")
        at_ns = ns(_number(pair[0], "curve's seconds", 0, 1e9))
        if points and at_ns <= points[-1][0]:
            raise ValueError(f"curve's seconds {pair[0]!r}: must be more than those before")
        points.append((at_ns, _percent(pair[1], "curve's percent")))
    if points[0][0] > 0:
        points.insert(0, (0, 0))
    if repeat_s is None:
        return LoadCurve(tuple(points))
    repeat_ns = ns(_number(repeat_s, "repeat_s", 0.001, 1e9))
    if repeat_ns <= points[-1][0]:
        raise ValueError(f"repeat_s {repeat_s!r}: must be more than the last of the curve's seconds")
    return LoadCurve(tuple(points), repeat_ns)


def _walk(value: Any) -> LoadWalk:
    if not isinstance(value, Mapping):
        raise ValueError(f"walk {_shown(value)}: must be a mapping of low, high, step, every_s")
    _only(value, ("low", "high", "step", "every_s"), "walk")
    low, high = _percent(value.get("low", 0), "low"), _percent(value.get("high", 100), "high")
    if low > high:
        raise ValueError(f"walk: low {low} is above high {high}")
    step = _whole(value.get("step", 10), "step", 1, 100)
    return LoadWalk(low, high, step, ns(_number(value.get("every_s", 5), "every_s", 0.01, 1e6)))


def _only(value: Mapping[str, Any], allowed: Sequence[str], what: str) -> None:
    for key in value:
        if key not in allowed:
            raise ValueError(f"{what} {key!r}: unknown key; allowed: {', '.join(allowed)}")


def _percent(value: Any, what: str) -> int:
    if isinstance(value, str) and what == "load" and value.strip().removesuffix("%").isdecimal():
        value = int(value.strip().removesuffix("%"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        allowed = "a percentage from 0 to 100" if what != "load" else FORMS
        raise ValueError(f"{what} {_shown(value)}: must be {allowed}")
    return round(value)


def _whole(value: Any, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{what} {_shown(value)}: must be a whole number from {low} to {high}")
    return value


def _number(value: Any, what: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{what} {_shown(value)}: must be a number from {low:g} to {high:g}")
    return float(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
