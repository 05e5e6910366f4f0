import random
from collections import Counter

import pytest

from mews.harness.api_faults.registry import parse_api_fault
from mews.harness.catalogue.files import shipped
from mews.harness.errors import BadInputError
from mews.harness.fuzz.api_faults import API_KINDS, LASTING, SHORT, draw_api_fault
from mews.harness.fuzz.choices import DrawnDisruption
from mews.harness.fuzz.faults import KINDS
from mews.harness.fuzz.menu import MOST, WORDS, Menu, Moments
from mews.harness.fuzz.search import kinds_of
from mews.harness.fuzz.shrinking import simpler_than
from mews.harness.scenario.disruption import Disruption
from mews.harness.scenario.loader import load_scenario

H3API_LACKS = {"layout-busy", "layout-half-done", "token-ends"}
"""Faults that only dialects with layouts and tokens can express."""
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
            word, _, fault = choice.kind.partition(" ")
            if word == "api-fault":
                spec = choice.entries[0]["fault"]["add"]
                assert choice.passing == (fault in SHORT and spec["count"] <= 5)
            else:
                assert choice.passing == (word == "kill" or fault in PASSING)
        for entry in plan.entries:
            Disruption.model_validate(entry)
    assert {f"fault {kind}" for kind in {*KINDS} - H3API_LACKS} <= kinds
    assert not {f"fault {kind}" for kind in H3API_LACKS} & kinds
    assert {f"api-fault {kind}" for kind in API_KINDS} <= kinds
    assert set(WORDS) - {"fault", "api-fault", "kill"} <= kinds
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


def test_each_sort_of_component_has_faults_of_the_api_as_often_as_any_other(menu):
    hit = Counter(
        menu.draw("api-fault conflict", random.Random(seed)).entries[0]["fault"]["component"].partition("/")[0]
        for seed in range(600)
    )
    assert set(hit) == {name.partition("/")[0] for name in menu.clients}
    assert "controller-manager" in hit
    assert max(hit.values()) < 2 * min(hit.values())


@pytest.mark.parametrize("kind", API_KINDS)
def test_every_fault_of_the_api_that_is_drawn_ends(kind):
    for seed in range(50):
        spec = draw_api_fault(kind, random.Random(seed))
        parse_api_fault(spec)
        assert ("expires_s" in spec) == (kind in LASTING) != ("count" in spec)


def test_a_world_with_faults_that_last_goes_on_until_all_clocks_have_run_out(menu):
    for seed in range(200):
        plan = menu.plan(random.Random(seed))
        lasting = any(choice.kind.partition(" ")[2] in LASTING for choice in plan.choices)
        assert plan.tail_s >= (200 if lasting else 60)


def test_a_fault_of_the_api_is_shrunk_and_still_ends():
    spec = {"kind": "lagging-watch", "by_s": 10.0, "resource": "pods", "expires_s": 30.0}
    choice = DrawnDisruption(
        "api-fault lagging-watch", ({"at": 0.0, "fault": {"component": "scheduler", "add": spec}},)
    )
    smaller = [each.entries[0]["fault"]["add"] for each in simpler_than(choice)]
    assert {frozenset(each) for each in smaller} == {
        frozenset({"kind", "resource", "expires_s"}),
        frozenset({"kind", "by_s", "expires_s"}),
    }


def test_faults_of_the_api_are_left_out_by_word_and_by_kind():
    scenario = load_scenario(shipped("scenario", "demo"))
    without = Menu.of(scenario, MOMENTS, kinds_of(["api-fault"])).kinds()
    assert not [kind for kind in without if kind.startswith("api-fault")]
    kinds = Menu.of(scenario, MOMENTS, kinds_of(["stale-reads"])).kinds()
    assert "api-fault stale-reads" not in kinds
    assert {"api-fault conflict", "fault stale-list"} <= set(kinds)


def test_what_is_no_kind_cannot_be_left_out():
    with pytest.raises(BadInputError, match=r"--without kil: must be one of kill, .*did you mean kill\?"):
        kinds_of(["kil"])
