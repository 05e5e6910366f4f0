"""DeviceShare in a scheduler: what pods are given, and what nodes are refused for."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from functools import partial
from typing import Any

import pytest

from mews.kube.api.objects import annotations_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.devices import (
    CheckpointEntry,
    DevicePlace,
    GpuPartition,
    NodeDevice,
    NodeDeviceReport,
    NodeVirtualFunction,
)
from mews.systems.koordinator.experiment.nodes import cube_mesh
from mews.systems.koordinator.names import ALLOCATED, GPU_MODEL, HINT, JOINT, MIN_AVAILABLE, PARTITION_POLICY, POD_GROUP
from mews.systems.koordinator.scheduler import SUMMARIES, KoordScheduler
from tests.systems.koordinator.cluster import DeviceWorld, a_while, gpus, play

GPU, CORE, MEMORY, RATIO = (f"koordinator.sh/{name}" for name in ("gpu", "gpu-core", "gpu-memory", "gpu-memory-ratio"))
RDMA = "koordinator.sh/rdma"


def test_a_pod_has_core_memory_and_ratio_in_its_annotation() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 4)))
        await world.koordinator()
        await world.ask("a", {GPU: 50})
        await world.until_bound("a")
        text = annotations_of(await world.get("a"))[ALLOCATED]
        amounts = {CORE: "50", MEMORY: "4Gi", RATIO: "50"}
        assert json.loads(text) == {"gpu": [{"minor": 0, "resources": amounts, "id": "GPU-n-0"}]}

    play(story)


def test_two_pods_share_a_gpu_and_a_third_gets_another() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator(device_choice="minor")
        for name in "abc":
            await world.ask(name, {GPU: 50})
            await world.until_bound(name)
        assert [await world.given(name) for name in "abc"] == [[0], [0], [1]]

    play(story)


def test_the_least_allocated_device_comes_first_where_nothing_else_is_said() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator()
        for name in "abc":
            await world.ask(name, {GPU: 30})
            await world.until_bound(name)
        assert [await world.given(name) for name in "abc"] == [[0], [1], [0]]

    play(story)


def test_by_the_most_allocated_a_node_and_device_that_is_used_comes_first() -> None:
    async def story(world: DeviceWorld, **options: Any) -> None:
        for node in "nm":
            await world.node_with(NodeDeviceReport(node, gpus(node, 2)))
        await world.koordinator(**options)
        for name in "abc":
            await world.ask(name, {GPU: 30})
            await world.until_bound(name)
        nodes = [(await world.get(name))["spec"]["nodeName"] for name in "abc"]
        given = [await world.given(name) for name in "abc"]
        if options:
            assert (len(set(nodes)), given) == (1, [[0], [0], [0]])
        else:
            assert (nodes[0] != nodes[1], given[:2]) == (True, [[0], [0]])

    play(story)
    play(partial(story, device_choice="mostAllocated"))


def test_a_node_whose_second_type_is_well_planned_is_chosen_by_the_first_alone() -> None:
    async def story(world: DeviceWorld, *, planned: bool) -> None:
        nic = NodeDevice("rdma", 0, "N0", True, {RDMA: 100}, DevicePlace(0, 0, "p0"))
        full = dataclasses.replace(nic, health=False)
        await world.node_with(NodeDeviceReport("n", (*gpus("n", 1), full), well_planned=planned))
        await world.koordinator()
        await world.ask("a", {GPU: 100, RDMA: 100}, {JOINT: '{"deviceTypes": ["gpu", "rdma"]}'})
        await a_while()
        # Upstream's label promises room: where there is none, only Reserve sees it, and preemption is not tried.
        assert "Insufficient rdma devices" in await world.message("a")
        assert ("1 Preemption is not helpful" in await world.message("a")) is not planned

    for planned in (True, False):
        play(partial(story, planned=planned))


def test_a_request_that_no_node_can_serve_is_said_so() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 4)))
        await world.koordinator()
        await world.ask("a", {CORE: 50})
        await a_while()
        message = await world.message("a")
        assert "nodes are available: invalid resource device requests: koordinator.sh/gpu-core: 50." in message
        assert "1 Preemption is not helpful for scheduling" in message

    play(story)


def test_an_unhealthy_device_is_given_to_nobody_and_its_pod_keeps_it() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator(device_choice="minor")
        await world.ask("a", {GPU: 50})
        await world.until_bound("a")
        await world.report(NodeDeviceReport("n", gpus("n", 2, unhealthy=[0])))
        await a_while()
        await world.ask("b", {GPU: 50})
        await world.until_bound("b")
        assert await world.given("b") == [1]
        await world.report(NodeDeviceReport("n", gpus("n", 2)))
        await a_while()
        await world.ask("c", {GPU: 60})
        await a_while()
        assert await world.node_of("c") == ""

    play(story)


def test_a_gpu_and_an_adapter_are_given_together() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(cube_mesh())
        await world.koordinator()
        joint = {JOINT: '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'}
        for name in "ab":
            await world.ask(name, {GPU: 100, "koordinator.sh/rdma": 100}, joint)
            await world.until_bound(name)
        found = [sorted((each.type, each.minor) for each in await world.allocations(name)) for name in "ab"]
        assert found == [[("gpu", 0), ("rdma", 0)], [("gpu", 2), ("rdma", 1)]]

    play(story)


def test_a_kind_that_no_code_names_is_given_by_data_alone() -> None:
    async def story(world: DeviceWorld) -> None:
        xpus = tuple(NodeDevice("xpu", minor, f"X{minor}", True, {"example.com/xpu": 100}) for minor in range(2))
        await world.node_with(NodeDeviceReport("n", xpus))
        await world.edit_node("n", lambda n: n["status"]["allocatable"].update({"example.com/xpu": "200"}), status=True)
        await world.koordinator()
        for name in "abc":
            await world.ask(name, {"example.com/xpu": 60})
            await a_while()
        assert [[each.minor for each in await world.allocations(name)] for name in "abc"] == [[0], [1], []]

    play(story)


def test_virtual_functions_are_given_once() -> None:
    async def story(world: DeviceWorld) -> None:
        functions = tuple(NodeVirtualFunction(i, f"0000:01:00.{i}", {"usage": "fast"}) for i in range(2))
        nic = NodeDevice("rdma", 0, "NIC", True, {"koordinator.sh/rdma": 100}, functions=functions)
        await world.node_with(NodeDeviceReport("n", (nic,)))
        await world.koordinator()
        hint = {HINT: '{"rdma":{"vfSelector":{"matchLabels":{"usage":"fast"}}}}'}
        for name in "abc":
            await world.ask(name, {"koordinator.sh/rdma": 1}, hint)
            await a_while()
        given = [[f.bus for each in await world.allocations(name) for f in each.functions] for name in "abc"]
        assert given == [["0000:01:00.0"], ["0000:01:00.1"], []]

    play(story)


def test_an_exclusive_pod_keeps_others_off_its_device() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator(device_choice="minor")
        await world.ask("alone", {GPU: 20}, {HINT: '{"gpu":{"exclusivePolicy":"DeviceLevel"}}'})
        await world.until_bound("alone")
        await world.ask("other", {GPU: 20})
        await world.until_bound("other")
        assert [await world.given(name) for name in ("alone", "other")] == [[0], [1]]

    play(story)


def test_a_hint_that_nobody_knows_is_refused() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator()
        await world.ask("a", {GPU: 20}, {HINT: '{"gpu":{"colour":"red"}}'})
        await a_while()
        assert "device-allocate-hint.gpu.colour: must be one of selector" in await world.message("a")

    play(story)


def test_held_devices_are_not_given_until_their_pod_ends() -> None:
    """By the kubelet's checkpoint, of a pod that another scheduler placed."""

    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 2)))
        await world.koordinator()
        held = await world.add("old", nodeName="n")
        entry = CheckpointEntry(held["metadata"]["uid"], "c", "nvidia.com/gpu", ("GPU-n-0",))
        await world.report(NodeDeviceReport("n", gpus("n", 2), held=(entry,)))
        await a_while()
        await world.ask("a", {"nvidia.com/gpu": 1})
        await world.until_bound("a")
        await world.ask("b", {"nvidia.com/gpu": 1})
        await a_while(30)
        assert (await world.given("a"), await world.node_of("b")) == ([1], "")
        await world.remove("old")
        await world.until_bound("b")
        assert await world.given("b") == [0]

    play(story)


def test_a_held_device_that_is_not_listed_counts_when_it_is() -> None:
    async def story(world: DeviceWorld) -> None:
        entry = CheckpointEntry("fa8983dc", "cuda-container", "nvidia.com/gpu", ("GPU-n-1",))
        await world.node_with(NodeDeviceReport("n", gpus("n", 1), held=(entry,)))
        await world.koordinator()
        await a_while()
        assert world.cache.unknown == {"n": ("GPU-n-1",)}
        await world.report(NodeDeviceReport("n", gpus("n", 2), held=(entry,)))
        await a_while()
        await world.ask("a", {"nvidia.com/gpu": 2})
        await a_while()
        assert await world.node_of("a") == ""

    play(story)


GANG = {POD_GROUP: "g", MIN_AVAILABLE: "2"}


def test_a_gang_of_two_is_on_one_node_with_the_fastest_gpus_for_both() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(cube_mesh())
        await world.koordinator()
        await world.ask("a", {"nvidia.com/gpu": 2}, labels=GANG)
        await a_while(30)
        assert await world.node_of("a") == ""
        assert "gang g has 1 of 2 pods" in await world.message("a")
        await world.ask("b", {"nvidia.com/gpu": 2}, labels=GANG)
        await world.all_bound(["a", "b"])
        assert [await world.given(name) for name in "ab"] == [[0, 3], [1, 2]]

    play(story)


async def _divided(world: DeviceWorld, labels: dict[str, str]) -> list[list[int]]:
    """What pods of two, one and four GPUs get, one after the other."""
    await world.node_with(NodeDeviceReport("n", gpus("n", 8)), labels=labels)
    await world.koordinator()
    for name, hint in (("two", {"nvidia.com/gpu": 2}), ("one", {"nvidia.com/gpu": 1}), ("four", {"nvidia.com/gpu": 4})):
        await world.ask(name, hint)
        await world.until_bound(name)
    return [await world.given(name) for name in ("two", "one", "four")]


@pytest.mark.parametrize("model", ["H100-80GB-HBM3", "H800", "NVIDIA-H20"])
def test_a_node_with_hopper_gpus_behind_switches_is_divided_as_those_are(model: str) -> None:
    async def story(world: DeviceWorld) -> None:
        given = await _divided(world, {GPU_MODEL: model, PARTITION_POLICY: "Honor"})
        assert given == [[0, 1], [2], [4, 5, 6, 7]]
        await world.remove("four")
        await world.ask("three", {"nvidia.com/gpu": 3})
        await a_while(20)
        assert await world.node_of("three") == ""
        assert "Unsupported number of GPU requests" in await world.message("three")

    play(story)


@pytest.mark.parametrize("model", ["H100-PCIe", "H100-NVL", "A100-SXM4-80GB", "L20"])
def test_a_node_with_other_gpus_has_no_table_by_its_model(model: str) -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 8)), labels={GPU_MODEL: model, PARTITION_POLICY: "Honor"})
        await world.koordinator()
        await world.ask("a", {"nvidia.com/gpu": 2})
        await a_while(20)
        assert "missing GPU Partition Table" in await world.message("a")
        await world.kube.patch(NODES, "n", {"metadata": {"labels": {PARTITION_POLICY: None}}})
        await world.until_bound("a")

    play(story)


def test_a_table_of_the_device_s_own_comes_before_that_of_its_model() -> None:
    async def story(world: DeviceWorld) -> None:
        report = NodeDeviceReport("n", gpus("n", 8), partitions=(GpuPartition((3, 6), 1),))
        await world.node_with(report, labels={GPU_MODEL: "H800"})
        await world.koordinator()
        await world.ask("a", {"nvidia.com/gpu": 2})
        await world.until_bound("a")
        assert await world.given("a") == [3, 6]

    play(story)


def test_pods_of_a_gang_that_say_different_numbers_wait_until_they_agree() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 4)))
        await world.koordinator()
        await world.ask("a", {"nvidia.com/gpu": 1}, labels=GANG)
        await world.ask("b", {"nvidia.com/gpu": 1}, labels={**GANG, MIN_AVAILABLE: "3"})
        await a_while(30)
        assert await world.nodes_of("a", "b") == ["", ""]
        assert f"pods of gang g differ in {MIN_AVAILABLE}: 2, 3" in await world.message("b")
        await world.remove("b")
        await world.ask("c", {"nvidia.com/gpu": 1}, labels=GANG)
        await world.all_bound(["a", "c"])

    play(story)


def test_none_of_a_gang_is_bound_where_not_all_fit() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 3)))
        await world.node_with(NodeDeviceReport("m", gpus("m", 3)))
        await world.koordinator()
        for name in "ab":
            await world.ask(name, {"nvidia.com/gpu": 2}, labels=GANG)
        await a_while(200)
        assert await world.nodes_of("a", "b") == ["", ""]
        assert all(not use.pods for use in world.cache.nodes.values())

    play(story)


def test_a_gang_that_its_last_pod_leaves_gives_everything_back() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 4)), cpu="64")
        await world.koordinator(gang_wait_s=5.0)
        await world.ask("a", {"nvidia.com/gpu": 2}, labels=GANG)
        await world.ask("b", {"nvidia.com/gpu": 2}, labels=GANG, schedulingGates=[{"name": "x/y"}])
        await a_while(60)
        assert await world.nodes_of("a", "b") == ["", ""]
        await world.remove("b")
        await a_while(60)
        await world.ask("c", {"nvidia.com/gpu": 4})
        await world.until_bound("c")

    play(story)


def test_preemption_takes_the_devices_of_the_weaker() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
        await world.priority("high", 1000)
        await world.koordinator()
        for name in "ab":
            await world.ask(name, {GPU: 50}, terminationGracePeriodSeconds=0)
            await world.until_bound(name)
        await world.ask("strong", {GPU: 50}, priorityClassName="high")
        await world.until_bound("strong")
        left = [each["metadata"]["name"] for each in (await world.kube.list(PODS)).items]
        assert len(left) == 2 and "strong" in left
        assert await world.over_full() == []

    play(story)


@pytest.mark.parametrize("path", ["", "/n"])
def test_the_books_can_be_read(path: str) -> None:
    async def story(world: DeviceWorld) -> None:

        await world.node_with(NodeDeviceReport("n", gpus("n", 1)))
        context = Context(world.kube, world.clock, stream(1, "x"), logging.getLogger("test"))
        scheduler = KoordScheduler(context, KoordinatorConfig())
        task = asyncio.create_task(scheduler.run())
        await world.ask("a", {GPU: 25})
        await world.until_bound("a")
        reply = await scheduler.handle("GET", SUMMARIES + path, b"")
        found = json.loads(reply.body)
        found = found if path else found["n"]
        assert found["deviceTotal"]["gpu"]["0"] == {CORE: "100", MEMORY: "8Gi", RATIO: "100"}
        assert found["deviceFree"]["gpu"]["0"] == {CORE: "75", MEMORY: "6Gi", RATIO: "75"}
        assert found["deviceUsed"]["gpu"]["0"] == {CORE: "25", MEMORY: "2Gi", RATIO: "25"}
        assert found["allocateSet"]["gpu"] == {"default/a": {"0": {CORE: "25", MEMORY: "2Gi", RATIO: "25"}}}
        text = (await scheduler.handle("GET", "/metrics", b"")).body.decode()
        labels = f'{{node="n",type="gpu",minor="0",resource="{MEMORY}"}}'
        assert f"koordinator_device_capacity{labels} {8 * 2**30}\n" in text
        assert f"koordinator_device_used{labels} {2 * 2**30}\n" in text
        assert 'koordinator_device_pods{node="n",type="gpu"} 1\n' in text
        assert (await scheduler.handle("GET", SUMMARIES + "/nobody", b"")).status == 404
        assert (await scheduler.handle("POST", SUMMARIES, b"")).status == 405
        task.cancel()
        await asyncio.wait([task])

    play(story)
