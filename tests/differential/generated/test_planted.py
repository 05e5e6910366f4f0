"""The generated cases notice when a rule of the embedded server is missing."""

from __future__ import annotations

import random

import pytest

from tests.differential.generated import fields, planted
from tests.differential.generated.planted import furnished, judged, notices, rule_functions

_CASES, _PLANTED, _FOUND = 12_000, 20, 18


@pytest.mark.nightly
def test_of_twenty_removed_rules_eighteen_are_noticed() -> None:
    store = furnished()
    cases = [case for case in fields.drawn(1, _CASES) if case.base.updates]
    verdicts = judged(store, cases)
    rules = rule_functions()
    drawn = random.Random(1).sample(sorted(rules), _PLANTED)
    missed = [name for name in drawn if notices(store, verdicts, rules[name]) is None]
    assert len(missed) <= _PLANTED - _FOUND, f"not noticed: {missed}"


def test_verdicts_are_the_same_while_no_rule_is_missing() -> None:
    store = furnished()
    cases = [case for case in fields.drawn(2, 300) if case.base.updates]
    judged(store, cases)  # what rules remember is worked out here, and not again
    assert judged(store, cases) == judged(store, cases)


def test_a_rule_that_is_off_finds_nothing_and_comes_back() -> None:
    rule = rule_functions()["names.label_value_errors"]
    with planted.without(rule):
        assert not list(rule("p", "not a value!"))
    assert list(rule("p", "not a value!"))
