"""What a cluster of real nodes leaves to Kubernetes, and the little that it does."""

from __future__ import annotations

from mews.harness.clusters.real.idle_part import IdlePart
from mews.harness.journal import LINES_KEPT, Journal


def test_a_cluster_that_stays_up_forgets_the_oldest_lines_and_records() -> None:
    part = IdlePart()
    part.journal, part.records = Journal(lambda: 0.0), Journal(lambda: 0.0)
    part.keep_alive()
    for journal in (part.journal, part.records):
        for number in range(2 * LINES_KEPT + 1):
            journal.write("component", "device-manager/host-1", "announced", number=number)
        assert len(journal.lines()) == LINES_KEPT
        assert journal.lines()[-1].fields["number"] == 2 * LINES_KEPT
        assert len(journal) == 2 * LINES_KEPT + 1


def test_until_then_all_lines_are_kept() -> None:
    journal = Journal(lambda: 0.0)
    for _ in range(2 * LINES_KEPT + 1):
        journal.write("component", "device-manager/host-1", "announced")
    assert len(journal.lines()) == 2 * LINES_KEPT + 1
