"""What upstream's webhooks answer and ours: recorded answers in every run, thousands of others where Go is there."""

from __future__ import annotations

import pytest

from mews.systems.koordinator import admission, validation
from tests.systems.koordinator.webhooks.oracle import MUTATING, VALIDATING
from tests.upstream.building import NotBuiltError
from tests.upstream.oracles.model import Oracle

BOTH = pytest.mark.parametrize("oracle", [VALIDATING, MUTATING], ids=lambda oracle: oracle.name)


def test_recorded_verdicts_and_messages_are_ours_word_for_word() -> None:
    found = VALIDATING.compare_recorded()
    assert found.wrong == {}
    assert found.equal == found.cases == 150
    assert min(found.verdicts[verdict] for verdict in ("admitted", "refused")) >= 20


def test_what_is_recorded_of_pods_that_are_made_is_ours_or_of_the_table() -> None:
    found = MUTATING.compare_recorded()
    assert found.wrong == {}
    assert set(found.verdicts) == {"made", "refused", "panic"}
    assert found.equal >= 50


@pytest.mark.parametrize(
    ("where", "name", "instead"),
    [
        (validation, "_of_whole", lambda quantity: iter(())),
        (validation, "_forbidden", lambda detail: f"Forbidden: {detail}"),
        (validation, "labels_of", lambda pod: {}),
        (admission, "_number_of_gpus", lambda found: 0),
        (validation, "whole", lambda quantity: int(admission.whole(quantity)) + 1),
    ],
    ids=["whole GPUs", "words", "labels", "the number of GPUs", "amounts"],
)
def test_a_fault_of_one_line_is_seen_in_the_recorded_answers(
    where: object, name: str, instead: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, instead)
    assert VALIDATING.compare_recorded().wrong or MUTATING.compare_recorded().wrong


def test_the_page_has_the_rows_of_the_table_and_no_other() -> None:
    assert MUTATING.published_rows() == list(MUTATING.rows)


@BOTH
@pytest.mark.nightly
def test_five_thousand_answers_are_upstreams_or_of_the_table(oracle: Oracle) -> None:
    try:
        found = oracle.compare(range(1_000_000, 1_005_000))
    except NotBuiltError as error:
        pytest.skip(f"upstream's webhooks cannot be built here: {error}")
    assert found.wrong == {}
    assert found.equal >= (found.cases if oracle is VALIDATING else found.cases // 2)
