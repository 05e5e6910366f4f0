import random

import pytest

from mews.harness.catalogue.files import shipped
from mews.harness.errors import BadInput
from mews.harness.fuzz.faults import KINDS
from mews.harness.fuzz.menu import MOST, WORDS, Menu, Moments
from mews.harness.fuzz.search import kinds_of
from mews.harness.scenario.disruption import Disruption
from mews.harness.scenario.loader import load_scenario

MOMENTS = Moments((("", 0.0), ("a pod wants five", 4.0)))


@pytest.fixture(scope="module")
def menu():
    return Menu.of(load_scenario(shipped("scenario", "demo")), MOMENTS)


def test_all_that_can_befall_the_demo_is_drawn_and_can_be_played(menu):
    kinds = set()
    for seed in range(400):
        plan = menu.plan(random.Random(seed))
        assert 1 <= len(plan.choices) <= MOST
        for choice in plan.choices:
            kinds.add(choice.kind)
            assert choice.passing == (choice.kind.startswith("kill ") or choice.kind.partition(" ")[2] in PASSING)
        for entry in plan.entries:
            Disruption.model_validate(entry)
    assert {f"fault {kind}" for kind in KINDS} <= kinds
    assert set(WORDS) - {"fault", "kill"} <= kinds
    assert {"kill kubelet", "kill scheduler", "kill chassis", "kill reconfig-manager"} <= kinds


PASSING = {
    *("slow-operation", "dropped-connection", "http-error", "timeout", "stale-list", "partial-list"),
    *("management-reboot", "events-out-of-order"),
}


def test_half_of_the_worlds_have_nothing_that_lasts(menu):
    passing = sum(menu.plan(random.Random(seed)).passing for seed in range(300))
    assert 120 < passing < 260


def test_a_seed_draws_one_plan(menu):
    assert menu.plan(random.Random(5)).key() == menu.plan(random.Random(5)).key()
    assert menu.plan(random.Random(5)).key() != menu.plan(random.Random(6)).key()


def test_a_changed_plan_is_another_one_and_no_larger_than_allowed(menu):
    rng = random.Random(1)
    plan = menu.plan(rng)
    for _ in range(100):
        other = menu.changed(plan, rng)
        assert 1 <= len(other.choices) <= MOST
        assert all(entry.get("at", 0) >= 0 for entry in other.entries)
        plan = other


def test_what_is_left_out_is_not_drawn():
    without = kinds_of(["kill", "xid", "copy"])
    menu = Menu.of(load_scenario(shipped("scenario", "demo")), MOMENTS, without)
    drawn = {choice.kind for seed in range(300) for choice in menu.plan(random.Random(seed)).choices}
    assert not [kind for kind in drawn if kind.startswith("kill") or kind in ("fault xid", "copy")]
    assert "fault ecc-errors" in drawn


def test_what_is_no_kind_cannot_be_left_out():
    with pytest.raises(BadInput, match=r"--without kil: must be one of kill, .*did you mean kill\?"):
        kinds_of(["kil"])
