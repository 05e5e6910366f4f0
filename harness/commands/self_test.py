"""``mews conform --self-test``."""

from __future__ import annotations

import json as json_text
from collections import Counter
from collections.abc import Sequence

from mews.emulator.wrongs.registry import WRONGS
from mews.harness import terminal
from mews.harness.clock import today
from mews.harness.commands.outputs import check_outputs, write_output
from mews.harness.conformance.matrix import Judged, judge_all


def self_test(dialects: Sequence[str], *, changes: bool, json: str | None) -> int:
    """Judge chassis of our own, each with one wrong: print which clause names it.

    1 where something legal is called wrong, or a device is left elsewhere without a word; else 0.
    """
    quiet = check_outputs({"--json": json})
    found = judge_all(
        tuple(WRONGS.values()),
        dialects,
        changes=changes,
        today=today(),
        on_judged=lambda each: None if quiet else show(each),
    )
    if json is not None:
        write_output("--json", json, json_text.dumps([as_dict(each) for each in found], indent=2) + "\n")
    if not quiet:
        terminal.out(f"{summary(found)}\n")
    return int(any(false_alarm(each) or (each.left and not each.reported) for each in found))


def show(judged: Judged) -> None:
    """A line."""
    clauses = ", ".join(clause for clause, _ in judged.clauses) or judged.outcome.unable
    terminal.out(f"{verdict(judged):16} {judged.wrong.name:26} {judged.dialect:14} {clauses}\n")


def verdict(judged: Judged) -> str:
    """``named by one``, ``named by several``, ``not named``, and for what is legal ``accepted`` or ``false alarm``."""
    if judged.wrong.legal:
        return "false alarm" if false_alarm(judged) else "accepted"
    if judged.outcome.unable:
        return "named by option"
    return "not named" if not judged.clauses else f"named {judged.named}"


def false_alarm(judged: Judged) -> bool:
    """Return whether something legal is called wrong."""
    return judged.wrong.legal and bool(judged.clauses)


def summary(found: Sequence[Judged]) -> str:
    """Return how many of each."""
    return ", ".join(f"{count} {word}" for word, count in Counter(map(verdict, found)).items())


def as_dict(judged: Judged) -> dict[str, object]:
    """Return them for JSON."""
    return {
        "wrong": judged.wrong.name,
        "dialect": judged.dialect,
        "allow_changes": judged.changes,
        "verdict": verdict(judged),
        "clauses": [clause for clause, _ in judged.clauses],
        "left_changed": judged.left,
        "reported": judged.reported,
        "seconds": round(judged.outcome.seconds, 3),
    }
