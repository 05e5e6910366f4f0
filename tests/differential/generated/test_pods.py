"""Drawn pods are taken, filled in, refused and changed alike on both servers, and drawn objects shown alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.generated import pods, rows
from tests.differential.recorded import ROW_SEEDS, pairs_of
from tests.differential.report import difference
from tests.differential.sides import compare, lacking

_SEEDS = range(60)


@pytest.mark.wall
def test_drawn_pods_are_judged_and_changed_alike() -> None:
    if why := lacking():
        pytest.skip(why)
    pairs = compare({"pods": pods.cases(_SEEDS)}, {}, namespace="default")
    pairs = [replace(pair, real=pods.compared(pair.real), ours=pods.compared(pair.ours)) for pair in pairs]
    taken = [pair for pair in pairs if pair.real["status"] < 300]
    assert len(taken) > len(pairs) / 5, "hardly any of the drawn pods are good ones"
    different = [pair for pair in pairs if not pair.same]
    assert not different, f"{len(different)} of {len(pairs)}, first {different[0].id}\n{difference(different[0])}"


@pytest.mark.wall
def test_objects_of_drawn_statuses_are_shown_alike() -> None:
    pairs = pairs_of("rows", rows.cases(ROW_SEEDS))
    shown = [pair for pair in pairs if pair.case.name.endswith("show")]
    assert sum(pair.real["status"] == 200 for pair in shown) > 70
    different = [pair for pair in pairs if not pair.same]
    assert not different, f"{len(different)} of {len(pairs)}, first {different[0].id}\n{difference(different[0])}"


def test_pods_are_the_same_for_the_same_seed() -> None:
    names = [(case.name, case.body) for case in pods.cases(range(5))]
    assert names == [(case.name, case.body) for case in pods.cases(range(5))]
    assert names != [(case.name, case.body) for case in pods.cases(range(5, 10))]
