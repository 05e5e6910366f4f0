"""Scores of devices and nodes, as upstream's scorers have them (v1.6.0, deviceshare/scoring.go)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport
from mews.systems.koordinator.names import CORE, MEMORY, RATIO
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.scoring import DEFAULT_WEIGHTS, score, weights_for
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources

LEAST, MOST = "leastAllocated", "mostAllocated"
Strategy = Literal["leastAllocated", "mostAllocated"]


@pytest.mark.parametrize(
    ("asked", "total", "free", "weights", "least", "most"),
    [
        ({RATIO: 50}, {RATIO: 100}, {RATIO: 100}, {RATIO: 1}, 50, 50),
        ({RATIO: 50}, {RATIO: 100}, {RATIO: 50}, {RATIO: 1}, 0, 100),
        ({RATIO: 10}, {RATIO: 100}, {RATIO: 60}, {RATIO: 1}, 50, 50),
        ({RATIO: 80}, {RATIO: 100}, {RATIO: 50}, {RATIO: 1}, 0, 100),  # more than there is
        ({RATIO: 100}, {RATIO: 800}, {RATIO: 800}, {RATIO: 1}, 87, 12),  # both are truncated
        ({CORE: 20, RATIO: 60}, {CORE: 100, RATIO: 100}, {CORE: 100, RATIO: 100}, {CORE: 1, RATIO: 1}, 60, 40),
        ({CORE: 20, RATIO: 60}, {CORE: 100, RATIO: 100}, {CORE: 100, RATIO: 100}, {CORE: 3, RATIO: 1}, 70, 30),
        ({CORE: 20}, {CORE: 100}, {CORE: 100}, {CORE: 1, RATIO: 9}, 80, 20),  # it has no ratio that could count
        ({MEMORY: 5}, {RATIO: 100}, {RATIO: 70}, {RATIO: 1}, 70, 30),  # asked by bytes: what is used counts alone
        ({RATIO: 5}, {CORE: 100}, {CORE: 70}, {RATIO: 1}, 0, 0),
        ({RATIO: 5}, {RATIO: 100}, {RATIO: 200}, {RATIO: 1}, 0, 100),  # upstream takes what cannot be for all used
        ({}, {}, {}, {RATIO: 1}, 0, 0),
    ],
)
def test_a_score_is_what_its_row_says(
    asked: dict[str, int], total: dict[str, int], free: dict[str, int], weights: dict[str, int], least: int, most: int
) -> None:
    assert score(asked, total, free, weights.items(), LEAST) == least
    assert score(asked, total, free, weights.items(), MOST) == most


def test_a_kind_that_upstream_does_not_know_is_scored_by_its_own_resources() -> None:
    assert weights_for("xpu", ["koordinator.sh/xpu", "x/y"], DEFAULT_WEIGHTS) == (("koordinator.sh/xpu", 1), ("x/y", 1))
    own = (("koordinator.sh/xpu", 5),)
    assert weights_for("xpu", ["koordinator.sh/xpu", "x/y"], own) == own
    assert weights_for("gpu", [CORE], DEFAULT_WEIGHTS) == DEFAULT_WEIGHTS


def node_use(*ill: int) -> NodeUse:
    """Four GPUs, the first of which is used by half; two adapters."""
    gpus = [NodeDevice("gpu", n, f"G{n}", n not in ill, gpu_resources(1000), labels={"k": str(n)}) for n in range(4)]
    nics = [NodeDevice("rdma", n, f"N{n}", True, {"koordinator.sh/rdma": 100}) for n in range(2)]
    half = DeviceAllocation("gpu", 0, {CORE: 50, MEMORY: 500, RATIO: 50}, "G0")
    return NodeUse.of(NodeDeviceReport("n", (*gpus, *nics))).plus(PodUse("u", "d/u", (half,)))


@pytest.mark.parametrize(
    ("asked", "strategy", "says", "ill", "found"),
    [
        ({"koordinator.sh/gpu": 50}, LEAST, "", (), 75),
        ({"koordinator.sh/gpu": 50}, MOST, "", (), 25),
        ({"nvidia.com/gpu": 2}, LEAST, "", (), 62),  # one device's share of it counts
        ({"koordinator.sh/gpu": 50, "koordinator.sh/rdma": 100}, LEAST, "", (), 125),  # types are summed
        ({"koordinator.sh/gpu": 50}, LEAST, "", (1, 2), 50),
        ({"koordinator.sh/gpu": 50}, LEAST, "", (0, 1, 2, 3), 0),
        ({"koordinator.sh/gpu": 50}, LEAST, '{"gpu": {"selector": {"matchLabels": {"k": "0"}}}}', (), 0),
        ({"koordinator.sh/gpu": 50}, LEAST, '{"gpu": {"selector": {"matchLabels": {"k": "1"}}}}', (), 50),
    ],
)
def test_a_node_s_score_is_of_the_devices_that_may_be_given(
    asked: dict[str, int], strategy: Strategy, says: str, ill: tuple[int, ...], found: int
) -> None:
    ask = ask_of(asked, {"scheduling.koordinator.sh/device-allocate-hint": says} if says else {})
    assert ask is not None
    assert policy.node_score(ask, node_use(*ill), choice=strategy) == found


def test_where_the_second_type_is_well_planned_the_first_alone_is_scored_and_filtered_by() -> None:
    joint = {"scheduling.koordinator.sh/device-joint-allocate": '{"deviceTypes": ["gpu", "rdma"]}'}
    ask = ask_of({"koordinator.sh/gpu": 50, "koordinator.sh/rdma": 100}, joint)
    assert ask is not None
    use = node_use()
    report = use.report
    full = [replace(each, health=each.type != "rdma") for each in report.devices]
    for planned, score_, passes in ((True, 75, True), (False, 75, False)):
        there = use.reported(NodeDeviceReport("n", tuple(full), well_planned=planned))
        assert policy.node_score(ask, there) == score_
        assert isinstance(policy.filtered(ask, there), policy.NoDevices) is not passes
        assert isinstance(policy.allocate(ask, there), policy.NoDevices)
    both = use.reported(NodeDeviceReport("n", report.devices, well_planned=True))
    assert policy.node_score(ask, both) == 75
    assert policy.node_score(ask, use) == 125
