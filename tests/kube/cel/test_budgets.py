"""What one evaluation may take: work that Kubernetes' cost does not see, and slices of time."""

import pytest

from mews.kube.cel.budgets import PACE, SLICE, WORK_LIMIT, weight, work_of
from mews.kube.cel.evaluation import CostExceededError
from mews.kube.cel.expressions import program

NAMES = {"b": [str(each) for each in range(2000)], "s": "x" * 100_000}


@pytest.mark.parametrize(
    "rule",
    [
        "b.all(a, b == b + [])",
        "b.all(a, sets.contains(b, b))",
        "b.all(a, b.indexOf('none') < 0)",
        "b.all(a, b.min() <= a)",
        "s.replace('x', s).size() > 0",
        "b.map(a, s).join(s) != ''",
        "b.all(a, '%s'.format([b]) != a)",
    ],
)
def test_a_rule_that_does_more_than_it_is_charged_for_is_ended(rule):
    with pytest.raises(CostExceededError, match="actual cost limit exceeded"):
        program(rule).evaluate(NAMES)


@pytest.mark.parametrize("rule", ["b.all(a, a in b)", "b == b.map(a, a)", "b.isSorted() || true", "b.sum().size() > 0"])
def test_an_ordinary_rule_over_many_members_is_not(rule):
    names = {"b": [str(each) for each in range(400)]}
    assert program(rule.replace(".sum()", "")).evaluate(names)[0] is True


def test_what_is_shared_counts_as_often_as_it_is_met():
    once = [0] * 10
    assert weight([once, once], 1000) == 1 + 2 + 2 * (1 + 10)
    deep = once
    for _ in range(60):
        deep = [deep, deep]
    assert weight(deep, WORK_LIMIT) > WORK_LIMIT
    assert work_of("size", [deep], WORK_LIMIT) == 0


class Counting:
    def __init__(self):
        self.steps = []

    def go_on(self, steps):
        self.steps.append(steps)


def test_a_long_evaluation_asks_between_slices_and_comes_to_the_same():
    pace, rule = Counting(), "b.all(a, b.exists(c, c == '7') || true)"
    alone = program(rule).evaluate(NAMES)
    token = PACE.set(pace)
    try:
        assert program(rule).evaluate(NAMES) == alone
    finally:
        PACE.reset(token)
    assert len(pace.steps) > alone[1] // SLICE
    assert sum(pace.steps) == alone[1]


def test_the_pace_ends_an_evaluation_by_its_own_error():
    class EnoughError(Exception):
        pass

    class Ending:
        def go_on(self, steps):
            raise EnoughError

    token = PACE.set(Ending())
    try:
        with pytest.raises(EnoughError):
            program("b.all(a, b.exists(c, c == 'none') || true)").evaluate(NAMES)
    finally:
        PACE.reset(token)
