"""For tests of laws: streams of lines for one law alone, and runs of scenarios on planted components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.invariant import ObservedState
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.scenario.result import Result
from mews.kube.system.invariant import Breach, Invariant
from mews.kube.system.journal import Line

ROOT = Path(__file__).parents[3] / "scenarios"

Plant = Callable[[pytest.MonkeyPatch], None]
"""Changes one line of a component."""
PlantedRow = tuple[Plant, int, str, str, str, str]
"""A fault, the law that must find it, in which scenario, what its finding says, the events of its first line and of the
line that it should have come after."""
Said = tuple[float, str, str, Mapping[str, Any]]
"""A line: t, actor, event, fields."""


def played(text_or_name: str) -> Result:
    """The result of a scenario: of a file below ``scenarios``, or of this text."""
    if "\n" in text_or_name:
        return Engine(RunOptions()).run(parse_scenario(text_or_name, shipped("hardware", "demo"))).result
    (path,) = ROOT.glob(f"{text_or_name}*.yaml")
    return Engine(RunOptions()).run(load_scenario(path)).result


def named(result: Result, number: int) -> tuple[str, str, str]:
    """What the first finding of a law says, and the events of the lines that it names; "" where it names none."""
    found = [each for each in (*result.violations, *result.known) if each["invariant"] == number]
    assert found, (number, result.verdict, result.reason, [each["what"] for each in result.violations])
    first, after = found[0]["first"], found[0]["after"]
    return found[0]["what"], first["event"], after["event"] if after else ""


def each_planted(rows: Sequence[PlantedRow]) -> pytest.MarkDecorator:
    """A test for each fault, under its name."""
    return pytest.mark.parametrize("row", rows, ids=[row[0].__name__ for row in rows])


def check_found(patch: pytest.MonkeyPatch, row: PlantedRow) -> None:
    """Plant the fault, play its scenario, and hold what the law says of it to the row."""
    plant, number, scenario, says, first, after = row
    plant(patch)
    what, *lines = named(played(scenario), number)
    assert says in what
    assert lines == [first, after]


def breaches(law: Invariant[Any], said: Iterable[Said], *, until: float | None = None, **bounds: Any) -> list[Breach]:
    """What a law finds in these lines, and at the end of the time."""
    return list(_judged(law, said, until, bounds))


def _judged(
    law: Invariant[Any], said: Iterable[Said], until: float | None, bounds: Mapping[str, Any]
) -> Iterator[Breach]:
    theirs = {name: value for name, value in bounds.items() if name not in Bounds.names()}
    state, t = ObservedState(Bounds.of(bounds, theirs)), 0.0
    for number, (t, actor, event, fields) in enumerate(said):
        line = Line(number, t, layer_of(actor, event), actor, event, dict(fields))
        state.windows.take(line)
        if law.events is None or (line.layer, event) in law.events:
            yield from law.on_line(line, state)
        yield from law.on_time(t, state)
    yield from law.on_time(t if until is None else until, state)


def layer_of(actor: str, event: str) -> str:
    """The layer of a line by its actor: kubelets have lines of their own, and are started and killed as components."""
    kind = actor.partition("/")[0]
    if event in ("started", "killed", "crashed"):
        return "component"
    if event == "event":
        return "api"
    return kind if kind in ("kubelet", "chassis", "host") else "api"


def numbers(found: Iterable[Breach]) -> list[tuple[int | None, int | None]]:
    """The numbers of the lines that each breach names: first and after."""
    return [(b.first.number if b.first else None, b.after.number if b.after else None) for b in found]


def without_line(said: Iterable[Said], event: str) -> list[Said]:
    """The stream without lines of an event: what a component that forgot it would have made."""
    return [each for each in said if each[2] != event]


__all__ = [
    "ROOT",
    "Plant",
    "PlantedRow",
    "Said",
    "breaches",
    "check_found",
    "each_planted",
    "layer_of",
    "named",
    "numbers",
    "played",
    "without_line",
]
