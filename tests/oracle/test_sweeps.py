"""A seeded sample of the worlds of ``python -m tests.oracle``: nothing is broken on purpose, so nothing is found."""

import pytest

from tests.oracle.play import NOTHING
from tests.oracle.scenes import fault, scene
from tests.oracle.sweeps import Case, case_of, run, schedule, singles
from tests.oracle.worlds import SYSTEMS

PAIRS, SCHEDULES = 30, 30
CHUNK = 6
OTHERS = 3
"""Of each of the other systems, and of all four at once."""
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


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("schedule:946", id="a pod that ended is deleted while its kubelet is away"),
        pytest.param("schedule:84", id="a table shows a device that its host has lost"),
        pytest.param("schedule:1680", id="a lost device comes back at another address"),
        pytest.param("schedule:1610", id="a fault's lines come late"),
        pytest.param("schedule:1265", id="somebody else has put a device there"),
        pytest.param("schedule:1421", id="somebody else puts one there as a move begins"),
        pytest.param("schedule:1104", id="a detach is shown late"),
        pytest.param("schedule:1092", id="chassis and host know a device by two UUIDs"),
        pytest.param("schedule:908", id="pods on other nodes claim what a node shows"),
        pytest.param("schedule:1975", id="the last pod of a node ends as a device is asked for"),
        pytest.param("schedule:1415", id="an old table puts a device where its host no longer has it"),
        pytest.param("schedule:gpushare:16", id="a chassis has lost the UUID of a shared GPU"),
        pytest.param("schedule:koordinator:236", id="a whole GPU by the name of NVIDIA's plugin"),
    ],
)
def test_a_world_that_a_long_sweep_found_is_clean(name):
    assert found([case_of(name)]) == {}


def test_no_fault_alone_makes_a_violation_of_a_shipped_scenario():
    every = list(singles([1], long=False))
    assert found(every[:: len(every) // ALONE]) == {}


@pytest.mark.parametrize("system", [system for system in SYSTEMS if system != "kubecomp"])
def test_no_schedule_of_another_system_has_a_violation_either(system):
    assert found([schedule(system, seed) for seed in range(1, OTHERS + 1)]) == {}


def test_a_mixed_schedule_has_pods_of_all_four_systems():
    made = [action for seed in range(1, 5) for action in run(schedule("mixed", seed)).actions if action.do == "apply"]
    kinds = {action.given["kind"] for action in made}
    asked = {name for action in made if action.given["kind"] == "Pod" for name in limits_of(action.given)}
    assert kinds == {"Pod", "TFJob"}
    assert {"falcon.com/gpu", "aliyun.com/gpu-mem", "koordinator.sh/gpu"} <= asked


def limits_of(pod):
    return pod["spec"]["containers"][0]["resources"]["limits"]


def test_a_pod_is_deleted_after_it_came_and_a_kill_waits_for_who_is_down():
    unstruck = (missed for seed in range(1, 5) for missed in run(schedule("mixed", seed)).unstruck)
    assert [(action, why) for action, why in unstruck if why != NOTHING] == []


def test_a_fault_that_meets_no_operation_is_told_apart_from_one_that_struck():
    outcome = scene([fault(5, kind="lying-result", operation="attach"), fault(6, kind="link-down", device="000C00")])
    assert [(action.given["kind"], why) for action, why in outcome.unstruck] == [("lying-result", NOTHING)]


def test_a_world_is_the_same_each_time():
    def journal():
        return [line.as_json() for line in run(Case("schedule", 19)).lines]

    assert journal() == journal()
