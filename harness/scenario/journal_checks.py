"""Looking at what has happened: journal lines and Kubernetes events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.journal import Line
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.expectations import EventExpectation, JournalExpectation
from mews.harness.scenario.match import fits, match, show
from mews.harness.scenario.step_context import Finding, StepContext
from mews.kube.api.resources import EVENTS

Entry = Mapping[str, Any]


async def journal(stage: StepContext, expected: JournalExpectation) -> Finding:
    """Return lines that occurred, never did, came in that order, or so often."""
    written = stage.cluster.journal.lines(_since(stage, expected.since))
    lines = [line.as_dict() for line in written]
    for pattern in expected.occurs:
        if not _like(pattern, lines):
            near = _near(pattern, lines)
            seen = f"none; the last of its kind: {show(near, 300)}" if near else "none of that layer and event"
            line = _number(near, written, lines) if near else None
            return Finding(False, f"a journal line {show(pattern)}", seen, line=line)
    for pattern in expected.never:
        found = _like(pattern, lines)
        if found:
            seen = f"{len(found)}, first {show(found[0], 300)}"
            return Finding(False, f"no journal line {show(pattern)}", seen, line=_number(found[0], written, lines))
    missing = _out_of_order(expected.order, lines)
    if missing is not None:
        before = show(expected.order[missing - 1]) if missing else "the start"
        early = _like(expected.order[missing], lines)
        seen = f"none after it; the last before it: {show(early[-1], 300)}" if early else "none"
        line = _number(early[-1], written, lines) if early else None
        return Finding(False, f"a journal line {show(expected.order[missing])} after {before}", seen, line=line)
    for entry in expected.count:
        found = _like(entry.of, lines)
        number = len(found)
        if match(entry.is_, number) is not None:
            right = [count for count in range(number) if match(entry.is_, count) is None]
            surplus = _number(found[right[-1]], written, lines) if right else None
            return Finding(False, f"{show(entry.is_)} journal lines {show(entry.of)}", str(number), line=surplus)
    return Finding(True, "the journal as expected")


def _since(stage: StepContext, name: str | None) -> int:
    if name is None:
        return stage.first_line
    if name not in stage.marks:
        raise ScenarioError(
            f"journal.since {name!r}: no earlier step has that name; earlier steps: {', '.join(stage.marks)}"
        )
    return stage.marks[name]


def _like(pattern: Entry, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if fits(pattern, line)]


def _number(wanted: dict[str, Any], written: Sequence[Line], lines: list[dict[str, Any]]) -> int:
    return next(line.number for line, shown in zip(written, lines, strict=True) if shown is wanted)


def _near(pattern: Entry, lines: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the last line of its kind: of its layer and event."""
    kind = [(key, pattern[key]) for key in ("layer", "event") if key in pattern]
    return next((line for line in reversed(lines) if all(line.get(key) == value for key, value in kind)), None)


def _out_of_order(order: tuple[Entry, ...], lines: list[dict[str, Any]]) -> int | None:
    """Return the first pattern that is not found after the one before it, or None."""
    position = 0
    for index, pattern in enumerate(order):
        while position < len(lines) and match(pattern, lines[position]) is not None:
            position += 1
        if position == len(lines):
            return index
        position += 1
    return None


async def event(stage: StepContext, expected: EventExpectation) -> Finding:
    """Return a Kubernetes event, with its repeats."""
    events = (await stage.cluster.kube.list(EVENTS)).items
    alike = [e for e in events if e.get("reason") == expected.reason and _concerns(e, expected)]
    number = sum(int(e.get("count") or (e.get("series") or {}).get("count") or 1) for e in alike)
    wrong = match(expected.count, number)
    fields = expected.model_dump(exclude_unset=True, exclude={"reason", "count"})
    awaited = f"{show(expected.count)} events {expected.reason} {show(fields) if fields else ''}".strip()
    others = sorted({str(e.get("message")) for e in events if e.get("reason") == expected.reason})
    seen = f"{number}" + (f"; messages with that reason: {show(others)}" if others else "")
    return Finding(wrong is None, awaited, seen, _about(expected))


def _concerns(found: Entry, expected: EventExpectation) -> bool:
    about = found.get("involvedObject") or {}
    kind, name, namespace = about.get("kind"), about.get("name"), about.get("namespace")
    if expected.object not in (None, f"{kind}/{name}", f"{kind}/{namespace}/{name}"):
        return False
    if expected.type not in (None, found.get("type")):
        return False
    return expected.message is None or match(expected.message, found.get("message")) is None


def _about(expected: EventExpectation) -> tuple[str, ...]:
    parts = (expected.object or "").split("/")
    kind = parts[0].lower()
    if len(parts) not in (2, 3):
        return ()
    place = parts[1] if len(parts) == 3 else "default"
    return (f"node/{parts[-1]}",) if kind == "node" else (f"{kind}/{place}/{parts[-1]}",)
