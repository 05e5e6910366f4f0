"""Comparing recordings: a box never differs from itself, and a change of form is always found."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mews.harness.conformance.clause import Clause
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.judge import PASSED, ClauseResult
from mews.harness.conformance.recording import compare

CLAUSE = Clause("2.array", "an array", "chassis.md 2", lambda bench: None)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=12)
BODIES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
)


def result(body: Any, status: int = 200) -> ClauseResult:
    exchange = Exchange("GET", "/x", {}, "", status, {"content-type": "application/json"}, json.dumps(body), 0.1)
    return ClauseResult(CLAUSE, PASSED, exchanges=(exchange,))


def recorded(body: Any, status: int = 200) -> dict[str, list[dict[str, Any]]]:
    return {"2.array": [exchange.as_dict(most=None) for exchange in result(body, status).exchanges]}


@settings(max_examples=60, deadline=None)
@given(BODIES)
def test_a_box_does_not_differ_from_itself(body):
    assert compare([result(body)], recorded(body)) == []


@settings(max_examples=40, deadline=None)
@given(BODIES)
def test_another_status_is_always_found(body):
    [difference] = compare([result(body, 500)], recorded(body))
    assert (difference.place, difference.here, difference.there) == ("status", "500", "200")


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=6), LEAVES, min_size=1, max_size=4))
def test_a_member_that_is_missing_is_always_found(record):
    name = sorted(record)[0]
    rest = {key: value for key, value in record.items() if key != name}
    assert any(name in each.place for each in compare([result([rest])], recorded([record])))


def test_a_list_of_another_length_is_the_same_and_an_empty_one_says_nothing():
    one = [{"devid": "000100", "hostport": "1"}]
    many = [{"devid": f"00{number}00", "hostport": str(number)} for number in range(10, 30)]
    assert compare([result(many)], recorded(one)) == []
    assert compare([result([])], recorded(one)) == []
    assert compare([result([{"devid": "000100", "hostport": 1}])], recorded(one)) != []
