"""The page on the experiment says what its tables say."""

from __future__ import annotations

import json

from mews.systems.pooldra.experiment.hand_over import CELLS
from mews.systems.pooldra.experiment.report import report
from tests.systems.pooldra.page import DATA, PAGE, page

TABLES = json.loads(DATA.read_text(encoding="utf-8"))


def test_the_page_is_written_from_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(TABLES)


def test_every_cell_has_a_row_and_all_have_the_same_runs() -> None:
    assert [(row["hand_over"], row["load"], row["faults"]) for row in TABLES["cells"]] == list(CELLS)
    assert {row["runs"] for row in TABLES["cells"]} == {TABLES["seeds"]}


def test_ways_that_keep_the_allocation_lose_and_double_nothing() -> None:
    """But for claims that faults fail, or keep until the scheduler's binding timeout ends."""
    kept = [row for row in TABLES["cells"] if row["hand_over"] != "reallocate"]
    assert {row["doubled"] for row in kept} == {0}
    assert {row["lost_per_1000_pods"] for row in kept if row["faults"] == "off"} == {0.0}
    assert max(row["lost_per_1000_pods"] for row in kept) < 1
    assert "binding timeout of 10 minutes" in PAGE.read_text(encoding="utf-8")
    anew = [row for row in TABLES["cells"] if row["hand_over"] == "reallocate"]
    assert any(row["lost_per_1000_pods"] > 0 for row in anew)
    assert {row["failed"] for row in kept} == {0}
    assert sum(row["failed"] for row in anew) == 1


def test_the_report_counts_what_broke_and_has_intervals_where_there_are_any() -> None:
    first, *others = ({**row, "failed": 0} for row in TABLES["cells"])
    first = {**first, "failed": 3, "moves_per_pod": 2.0, "moves_per_pod_low": 1.5, "moves_per_pod_high": 2.5}
    text = report({"cells": [first, *others]}, {"cells": TABLES["seeds"]})
    assert f"3 of {TABLES['seeds'] * len(CELLS)} runs broke a law" in text
    assert "| 2 [1.5, 2.5] |" in text
    assert f"3 of {first['runs']} |" in text
