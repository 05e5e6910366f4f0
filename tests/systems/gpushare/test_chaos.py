"""Whatever dies, lags or is refused: no GPU is given twice, annotations say what was given, and what fits runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mews.kube.api.objects import Object
from mews.systems.gpushare import extender, ledger
from tests.systems.gpushare.chaos import OPERATIONS, Operation, play

sequences = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 11), st.integers(0, 11)), min_size=5, max_size=25
)


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(operations=sequences, seed=st.integers(0, 1000))
def test_nothing_is_given_twice_and_nothing_that_fits_is_stuck(operations: list[Operation], seed: int) -> None:
    assert play(operations, seed) == []


RACE: list[Operation] = [("create", 4, 0)] * 10 + [("rest", 0, 0)]


def test_the_same_race_breaks_a_ledger_without_compare_and_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(self: Any, node: str, known: Object | None, entries: Mapping[str, Any]) -> None:
        return None

    monkeypatch.setattr(ledger.NodeLedgers, "_write", forgetful)
    monkeypatch.setattr(extender.NodeLedgers, "_write", forgetful)
    lagging: list[Operation] = [("lag", 2, 0), *RACE]
    assert any(play(lagging, seed) for seed in range(4))


def test_ours_stands_the_same_race() -> None:
    found: Iterable[list[str]] = [play([("lag", 2, 0), *RACE], seed) for seed in range(4)]
    assert [wrong for wrong in found if wrong] == []
