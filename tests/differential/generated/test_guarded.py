"""Drawn pods and data meet drawn limits, levels and policies alike on both servers."""

from __future__ import annotations

import pytest

from tests.differential.generated import guarded
from tests.differential.report import difference
from tests.differential.sides import compare_settled, lacking

_SEEDS = range(2000, 2012)


@pytest.mark.wall
def test_admission_decides_alike_on_both_servers() -> None:
    if why := lacking():
        pytest.skip(why)
    pairs = compare_settled({"guarded": guarded.cases(_SEEDS)}, {}, namespace="default")
    assert len(pairs) > 16 * len(_SEEDS)
    different = [pair for pair in pairs if not pair.same]
    assert not different, f"{len(different)} of {len(pairs)}, first {different[0].id}\n{difference(different[0])}"


def test_worlds_are_the_same_for_the_same_seed() -> None:
    assert guarded.cases(range(5)) == guarded.cases(range(5))
    assert guarded.cases(range(5)) != guarded.cases(range(5, 10))
