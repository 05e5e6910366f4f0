"""What a journal remembers."""

from __future__ import annotations

from mews.harness.journal import Journal


def test_a_journal_that_stays_up_forgets_its_oldest_lines_and_no_number() -> None:
    journal = Journal(lambda: 0.0)
    journal.keep_latest(3)
    for number in range(10):
        journal.write("step", "a", str(number))
    assert len(journal) == 10
    assert [line.event for line in journal.lines()] == ["4", "5", "6", "7", "8", "9"]
    assert [line.event for line in journal.lines(9)] == ["9"]
    assert [line.event for line in journal.find("step", "5")] == ["5"]
