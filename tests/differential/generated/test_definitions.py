"""Drawn definitions are taken or refused alike by both servers, in the same words, and so are drawn objects."""

from __future__ import annotations

import pytest

from tests.differential.generated import definitions
from tests.differential.report import difference
from tests.differential.sides import compare, lacking

_SEEDS = range(5000, 5060)
_SHARE = 0.98


@pytest.mark.wall
def test_drawn_definitions_and_objects_are_judged_alike() -> None:
    if why := lacking():
        pytest.skip(why)
    pairs = compare({"definitions": definitions.cases(_SEEDS)}, {}, namespace="default")
    different = [pair for pair in pairs if definitions.compared(pair.real) != definitions.compared(pair.ours)]
    taken = [pair for pair in pairs if pair.real["status"] in (200, 201)]
    assert len(taken) > len(_SEEDS) / 2
    shown = (
        f"{len(different)} of {len(pairs)}, first {different[0].id}\n{difference(different[0])}" if different else ""
    )
    assert len(different) <= (1 - _SHARE) * len(pairs), shown


def test_definitions_are_the_same_for_the_same_seed() -> None:
    assert definitions.cases(range(5)) == definitions.cases(range(5))
    assert definitions.cases(range(5)) != definitions.cases(range(5, 10))
