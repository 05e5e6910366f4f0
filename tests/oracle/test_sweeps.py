"""A seeded sample of the worlds of ``python -m tests.oracle``: nothing is broken on purpose, so nothing is found."""

import pytest

from tests.oracle.sweeps import Case, run, singles

PAIRS, SCHEDULES = 30, 30
CHUNK = 6
ALONE = 6
"""Worlds with one fault alone, spread over all faults and scenarios."""
TAIL_S = 60.0
"""No world goes on for longer after its steps: waiting for the longest clocks is for the sweeps."""


def chunks(sort, count):
    cases = [Case(sort, seed) for seed in range(1, count + 1)]
    return [pytest.param(cases[at : at + CHUNK], id=f"{cases[at]}-") for at in range(0, count, CHUNK)]


def found(cases):
    wrong = {}
    for case in cases:
        outcome = run(case, tail_at_most_s=TAIL_S)
        wrong[str(case)] = [*map(str, outcome.violations), *(line.as_json() for line in outcome.crashes)]
    return {name: what for name, what in wrong.items() if what}


@pytest.mark.parametrize("cases", [*chunks("pair", PAIRS), *chunks("schedule", SCHEDULES)])
def test_no_world_without_a_wrong_component_has_a_violation(cases):
    assert found(cases) == {}


def test_no_fault_alone_makes_a_violation_of_a_shipped_scenario():
    every = list(singles([1], long=False))
    assert found(every[:: len(every) // ALONE]) == {}


def test_a_world_is_the_same_each_time():
    def journal():
        return [line.as_json() for line in run(Case("schedule", 19)).lines]

    assert journal() == journal()
