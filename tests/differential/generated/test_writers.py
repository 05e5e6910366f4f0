"""Drawn writes of several managers leave the same object and the same owners on both servers."""

from __future__ import annotations

import pytest

from tests.differential.generated import writers
from tests.differential.model import Answer
from tests.differential.recorded import WRITER_SEEDS, pairs_of
from tests.differential.report import difference


def _compared(answer: Answer) -> Answer:
    """Without warnings: those about a pod's template (duplicate ports) are not given here."""
    return {name: value for name, value in answer.items() if name != "warnings"}


@pytest.mark.wall
def test_several_managers_come_to_the_same_object_and_owners() -> None:
    pairs = pairs_of("writers", writers.cases(WRITER_SEEDS))
    assert len(pairs) > 7 * len(WRITER_SEEDS)
    different = [pair for pair in pairs if _compared(pair.real) != _compared(pair.ours)]
    assert not different, f"{len(different)} of {len(pairs)}, first {different[0].id}\n{difference(different[0])}"


def test_sequences_are_the_same_for_the_same_seed() -> None:
    assert writers.cases(range(5)) == writers.cases(range(5))
    assert writers.cases(range(5)) != writers.cases(range(5, 10))
