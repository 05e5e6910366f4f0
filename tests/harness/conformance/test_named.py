"""Each wrong is named by the one clause that is about it, what is legal by none, and no device is left elsewhere
without a word. The wrongs are those of `mews proxy --list`; ``named.csv`` says which clause names each."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mews.emulator.wrongs.registry import WRONGS
from mews.harness.conformance.matrix import Judged, judge_wrong
from tests.harness.conformance.judging import DAY

pytestmark = pytest.mark.wall

NAMED = {
    (row["wrong"], row["dialect"]): row
    for row in csv.DictReader((Path(__file__).parent / "named.csv").read_text(encoding="utf-8").splitlines())
}
SLOW = frozenset(
    {
        "slow-attach", "monitor-never-ends", "monitor-gone", "not-training", "202-without-location",
        "202-without-retry-after", "task-never-begins", "task-never-ends", "odd-unavailable",
    }
)  # fmt: skip
PAIRS = [(name, dialect) for name, wrong in WRONGS.items() for dialect in wrong.dialects]


def nightly(name: str, dialect: str, *, changes: bool) -> bool:
    """By day each wrong in one dialect, the first that has it: reading only where that shows it, else with changes; and
    one in five in the other way, too."""
    is_first = dialect == WRONGS[name].dialects[0]
    is_shown = changes != bool(NAMED[name, dialect]["reading"])
    return name in SLOW or not is_first or not (is_shown or sorted(WRONGS).index(name) % 5 == 0)


def cases(*, changes: bool) -> list:
    return [
        pytest.param(
            name, dialect, changes, marks=[pytest.mark.nightly] if nightly(name, dialect, changes=changes) else []
        )
        for name, dialect in PAIRS
    ]


def told(judged: Judged) -> str:
    return "; ".join(f"{clause}: {reason}" for clause, reason in judged.clauses) + judged.outcome.unable


@pytest.mark.parametrize(("name", "dialect", "changes"), cases(changes=False) + cases(changes=True))
def test_a_wrong_is_named_by_its_clause_and_no_device_is_left_without_a_word(
    name, dialect, changes, monkeypatch, tmp_path
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    judged = judge_wrong(WRONGS[name], dialect, changes=changes, today=DAY)
    row = NAMED[name, dialect]
    wanted = set(row["with changes" if changes else "reading"].split())
    assert {clause for clause, _ in judged.clauses} == wanted, told(judged)
    assert judged.reported or not judged.left
    assert judged.outcome.verdict != "passed" or not judged.left
    for result in judged.outcome.results:
        if result.clause.id in wanted:
            assert result.evidence is not None, "a finding shows its exchange"


def test_every_wrong_has_its_row_and_no_other():
    assert set(NAMED) == set(PAIRS)


def test_what_is_legal_is_named_by_no_clause():
    assert all(not row["reading"] and not row["with changes"] for (name, _), row in NAMED.items() if WRONGS[name].legal)


def test_at_least_sixty_wrongs_are_named_nine_in_ten_of_them_by_one_clause():
    wrong = [row for (name, _), row in NAMED.items() if not WRONGS[name].legal]
    by_one = [row for row in wrong if len(row["with changes"].split()) == 1]
    assert len({row["wrong"] for row in wrong}) >= 60
    assert len(by_one) >= 0.9 * len(wrong)


def test_a_device_that_is_left_elsewhere_is_seen_and_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    left, right = (judge_wrong(WRONGS[name], "h3api", changes=True, today=DAY) for name in ("detach-lies", "odd-space"))
    assert (left.left, left.reported, left.named) == (True, True, "by one")
    assert (right.left, right.reported, right.named) == (False, False, "not")
