"""Scores that go by devices of extended resources (upstream noderesources/resource_allocation_test.go)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.objects import Object
from mews.kube.api.resources import RESOURCE_SLICES
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.allocator import Taken
from mews.kube.scheduling.devices.class_counts import counted
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.devices.inventory import DeviceId, DeviceInventory, NodePlace
from mews.kube.scheduling.framework import CycleState, Handle
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.plugins.resources_fit import NodeResourcesFit, Strategy
from mews.kube.scheduling.podinfo import pod_info
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.test_devices import DRIVER, device, offer
from tests.kube.scheduling.test_extended_resources import GPU, NEW, Cluster, Refusing, furnish

_LOG = logging.getLogger("test")
EAST = NodePlace("east", {"zone": "a"})


def in_zone(zone: str) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}


IN_ZONE_A, IN_ZONE_B = in_zone("a"), in_zone("b")
ALL: Object = {"metadata": {"name": "k"}, "spec": {}}


def taken(*names: str, shared: str = "") -> Taken:
    devices = frozenset(DeviceId(DRIVER, "p", name) for name in names)
    return Taken(devices, {DeviceId(DRIVER, "p", shared): {"m": Decimal(1)}} if shared else {})


def count(slices: Iterable[Object], held: Taken, device_class: Object = ALL) -> tuple[int, int]:
    """(devices, taken ones) on the node east."""
    return counted(DeviceInventory.of(slices, NEW), held, device_class, EAST)


A, B = device("a", attributes={"big": True}), device("b", attributes={"big": False})


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([offer(A, B)], 2),
        ([offer(A, B, allNodes=True)], 2),
        ([offer(A, nodeSelector=IN_ZONE_A)], 1),
        ([offer(A, nodeSelector=IN_ZONE_B)], 0),
        ([offer(A, nodeName="west")], 0),
        ([offer(A), offer(B, name="t", pool="q", nodeName="west")], 1),
        ([offer({**A, "nodeName": "east"}, {**B, "nodeName": "west"}, perDeviceNodeSelection=True)], 1),
        ([offer({**A, "allNodes": True}, {**B, "nodeSelector": IN_ZONE_A}, perDeviceNodeSelection=True)], 2),
        ([offer(A, count=2)], 1),
        ([offer(A), offer(B, name="t", generation=2)], 2),
        ([], 0),
    ],
)
def test_all_devices_that_a_node_can_reach_count_be_their_pool_complete_or_not(
    slices: list[Object], expected: int
) -> None:
    assert count(slices, taken()) == (expected, 0)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (f'device.driver == "{DRIVER}"', (2, 1)),
        (f'device.attributes["{DRIVER}"].big', (1, 1)),
        (f'!device.attributes["{DRIVER}"].big', (1, 0)),
        (f'device.attributes["{DRIVER}"].missing', (0, 0)),
        ("1 +", (0, 0)),
    ],
)
def test_the_devices_that_a_class_selects_count(expression: str, expected: tuple[int, int]) -> None:
    selecting = {"metadata": {"name": "k"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    assert count([offer(A, B)], taken("a"), selecting) == expected


def test_a_device_that_is_taken_in_part_is_taken() -> None:
    assert count([offer(A, B)], taken("a", shared="b")) == (2, 2)
    assert count([offer(A, B)], taken("elsewhere")) == (2, 0)


def placed(strategy: Strategy, resources: dict[str, int], release: ClusterRelease) -> list[str]:
    """The nodes of six pods with a GPU each: west has four GPUs, and east six."""
    found: list[str] = []

    async def main() -> None:
        clock = virtual_clock()
        kube = Refusing(fresh_store(clock.now, stream(1, "store"), attended=True, release=release))
        await furnish(kube, 6)
        four: list[dict[str, Any]] = [device(f"w-{n}") for n in range(4)]
        await kube.create(RESOURCE_SLICES, offer(*four, name="t", pool="q", nodeName="west"))
        for name in ("east", "west"):
            await raise_stage(kube, clock, name=name, labels={})
        plugins = default_plugins(devices=features_of(release), strategy=strategy, resources=resources)
        config = SchedulerConfig((SchedulerProfile("default-scheduler", plugins),))
        contexts = [Context(kube, clock, stream(1, name), _LOG) for name in ("controllers", "scheduler")]
        parts = (
            ControllerManager(contexts[0], Pace(), controllers=["resourceclaim-controller"]),
            Scheduler(contexts[1], config),
        )
        tasks = [asyncio.create_task(part.run()) for part in parts]
        await rest(1)
        cluster = Cluster(kube)
        for number in range(6):
            await cluster.pod(f"p{number}")
            found.append((await cluster.said(f"p{number}"))[0])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(main)
    return found


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy.MOST_ALLOCATED, ["west"] * 4 + ["east"] * 2),
        (Strategy.LEAST_ALLOCATED, ["east", "west", "east"]),  # then both are half taken
    ],
)
def test_nodes_are_chosen_by_the_devices_that_are_taken(strategy: Strategy, expected: list[str]) -> None:
    assert placed(strategy, {GPU: 1000}, cluster_release("1.37"))[: len(expected)] == expected


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_node_without_the_resource_and_without_devices_is_scored_by_the_rest(strategy: Strategy) -> None:
    handle = cast(Handle, SimpleNamespace())
    fit = NodeResourcesFit(
        handle, strategy=strategy, resources={GPU: 1, "cpu": 1}, ignored_resource_groups=["example.com"]
    )
    asking = {"name": "m", "resources": {"requests": {GPU: "1"}}}
    pod = pod_info({"metadata": {"name": "p"}, "spec": {"containers": [asking]}})
    empty = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "200m", "pods": "9"}}}
    assert fit.score(CycleState(), pod, NodeInfo("n", empty)) == 50


def test_1_34_does_not_count_devices_in_scores() -> None:
    old = cluster_release("1.34", {"DRAExtendedResource": True})
    assert placed(Strategy.MOST_ALLOCATED, {GPU: 1000}, old) != ["west"] * 4 + ["east"] * 2
