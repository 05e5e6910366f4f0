"""When a node of a trace counts what was moved: after a reading that shows it, at a tick of its kubelet."""

from pathlib import Path

import pytest

from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import load_scenario
from mews.harness.simulation.chassis_moves import ChassisMoves
from mews.harness.simulation.costs import KubeletCosts
from mews.harness.simulation.scenarios import trace_of_scenario

W3 = Path("scenarios/testbed/w3-pool.yaml")
NODE = "host-1"
TICK_S = 10.2


def test_a_reading_is_over_with_its_slowest_chassis_and_shows_of_each_what_it_had_then():
    asked = []
    moves = ChassisMoves(hardware_of(load_scenario(W3)), 1, lambda *given: asked.append(given) or 0.0)
    ends = {"0": 0.0, "1": 0.0}
    begun_s = 100.0
    answered_s = moves.read("pool-0", begun_s)
    for gpuid in ("0-000500", "1-000500"):
        moves.usable_s(NODE, gpuid, 200.0)
        ends[gpuid[0]] = asked[-1][1] - 200.0
        assert asked[-1] == (NODE, pytest.approx(200.0 + ends[gpuid[0]]), pytest.approx(answered_s - begun_s))
    assert min(ends.values()) == 0.0 < max(ends.values()), "one of the two has answered before the other"


@pytest.mark.parametrize("ready_first", [False, True])
def test_nodes_that_are_ready_first_have_told_of_their_devices_within_the_last_second(ready_first):
    told = []
    for seed in range(20):
        costs = KubeletCosts(seed, None, ready_first=ready_first)
        told.append(costs.usable_s(NODE, 0.0, 0.0, 1.0))
    since_s = [(TICK_S - at_s) % TICK_S for at_s in told]
    assert all(each <= 1.0 for each in since_s) is ready_first


def test_scenarios_wait_for_their_nodes():
    plan = trace_of_scenario(W3).plan
    assert plan.ready_first
