from hypothesis import given, settings
from hypothesis import strategies as st

from mews.harness.fuzz.choices import DrawnDisruption, WorldPlan
from mews.harness.fuzz.shrinking import MOST, shrink, simpler_than
from mews.harness.fuzz.world import Problem, World

PROBLEM = Problem("law", "broken", 3, 7)


def kill(name, at_s=20.0, away_s=0.0):
    if not away_s:
        return DrawnDisruption("kill", ({"at": at_s, "restart": name},))
    return DrawnDisruption("kill", ({"at": at_s, "kill": name}, {"at": at_s + away_s, "start": name}))


def slow(at_s=3.217, **spec):
    entry = {"at": at_s, "fault": {"chassis": "A", "add": {"kind": "slow-operation", **spec}}}
    return DrawnDisruption("fault slow-operation", (entry,))


def shrunk(choices, is_broken, tail_s=400.0, order=0):
    played = []

    def play(plan):
        played.append(plan)
        return World((PROBLEM,) if is_broken(plan) else (), frozenset(), 1.0, 1)

    small = shrink(play, WorldPlan(1, tuple(choices), tail_s, order), PROBLEM)
    assert small.worlds == len(played)
    assert len({plan.key() for plan in played}) == len(played), "no world is played twice"
    return small


def killed(plan):
    return {entry.get("kill") or entry.get("restart") for entry in plan.entries}


def test_nothing_is_left_that_is_not_needed():
    choices = [slow(), kill("a"), kill("b"), slow(count=5), kill("c"), kill("d")]
    small = shrunk(choices, lambda plan: {"a", "c"} <= killed(plan))
    assert [entry for choice in small.plan.choices for entry in choice.entries] == [
        {"at": 0.0, "restart": "a"},
        {"at": 0.0, "restart": "c"},
    ]
    assert small.plan.tail_s == 60.0
    assert small.whole


def test_an_order_stays_only_where_it_matters():
    assert shrunk([kill("a")], lambda plan: "a" in killed(plan), order=17).plan.order == 0
    assert shrunk([kill("a")], lambda plan: plan.order == 17, order=17).plan == WorldPlan(1, (), 60.0, 17)


def test_a_fault_loses_the_parameters_that_do_not_matter():
    small = shrunk([slow(count=5, extra_s=90.0)], lambda plan: any("extra_s" in str(each) for each in plan.entries))
    assert small.plan.entries[0]["fault"]["add"] == {"kind": "slow-operation", "extra_s": 90.0}


def test_a_component_stays_away_no_longer_than_it_must():
    def away_long_enough(plan):
        at_s = {key: entry["at"] for entry in plan.entries for key in ("kill", "start") if key in entry}
        return len(at_s) == 2 and at_s["start"] - at_s["kill"] >= 4

    small = shrunk([kill("a", away_s=120.0)], away_long_enough)
    down, up = small.plan.entries
    assert up["at"] - down["at"] == 5.0


def test_a_tail_that_matters_stays():
    assert shrunk([kill("a")], lambda plan: plan.tail_s > 100).plan.tail_s == 400.0


def test_shrinking_ends_however_much_could_still_be_tried():
    many = [slow(at_s=number + 0.123, count=number + 1) for number in range(300)]
    small = shrunk(many, lambda plan: len(plan.choices) == 300)
    assert small.worlds == MOST
    assert not small.whole


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 9), min_size=1, max_size=4), st.integers(4, 10))
def test_whatever_is_needed_is_what_is_left(needed, size):
    choices = [kill(str(number)) for number in range(size)]
    wanted = {str(number) for number in needed if number < size} or {"0"}
    small = shrunk(choices, lambda plan: wanted <= killed(plan))
    assert killed(small.plan) == wanted
    assert len(small.plan.choices) == len(wanted)


def test_what_is_simpler_is_never_the_same():
    for choice in (kill("a"), kill("a", 3.0, 45.0), slow(count=5), slow(at_s=0.0)):
        assert choice not in list(simpler_than(choice))
