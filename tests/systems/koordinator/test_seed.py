"""Each block of the seed's document, read or applied as it stands, with its numbers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from mews.kube.api.errors import ApiError, InvalidError
from mews.kube.api.quantities import whole
from mews.kube.api.resources import NODES, PODS
from mews.systems.koordinator.admission import mutated
from mews.systems.koordinator.allocations import parse_allocations
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport, as_object, parse
from mews.systems.koordinator.names import CORE, DEVICES, MEMORY, RATIO, WHOLE
from mews.systems.koordinator.requests import parse_demands
from mews.systems.koordinator.usage import node_sums
from tests.systems.koordinator import seed
from tests.systems.koordinator.cluster import GIB, DeviceWorld, a_while, gpus, play

EIGHT = gpus("n", 1)[0]


def demand_of(text: str) -> Any:
    requests = yaml.safe_load(text)["resources"]["requests"]
    (found,) = parse_demands({name: whole(value) for name, value in requests.items()})
    return found


@pytest.mark.parametrize(
    ("text", "count", "each"),
    [
        (seed.NVIDIA, 2, {CORE: 100, RATIO: 100, MEMORY: 8 * GIB}),
        (seed.NVIDIA_TRANSLATED, 2, {CORE: 100, RATIO: 100, MEMORY: 8 * GIB}),
        (seed.HALF, 1, {CORE: 50, RATIO: 50, MEMORY: 4 * GIB}),
        (seed.HALF_TRANSLATED, 1, {CORE: 50, RATIO: 50, MEMORY: 4 * GIB}),
        (seed.CORE_AND_RATIO, 1, {CORE: 50, RATIO: 60, MEMORY: 8 * GIB * 60 // 100}),
        (seed.CORE_AND_MEMORY, 1, {CORE: 60, RATIO: 50, MEMORY: 4 * GIB}),
        (seed.ADAPTER, 1, {"koordinator.sh/rdma": 100}),
    ],
)
def test_a_request_is_what_the_seed_says_of_it(text: str, count: int, each: dict[str, int]) -> None:
    demand = demand_of(text)
    assert (demand.count, demand.on(EIGHT)) == (count, each)


def test_four_gpus_of_8_gib_are_its_numbers() -> None:
    assert node_sums(gpus("n", 4)) == {CORE: 400, MEMORY: 32 * GIB, RATIO: 400, WHOLE: 400}
    said = yaml.safe_load(seed.CAPACITY)["status"]["capacity"]
    assert [said["kubernetes.io/gpu-core"], said["kubernetes.io/gpu-memory-ratio"]] == [400, 400]
    with pytest.raises(ValueError, match="32GB"):
        whole(said["kubernetes.io/gpu-memory"])


def test_its_numbers_of_a_node_are_refused_by_an_api_server_and_those_of_other_devices_taken() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.add_node("n")
        with pytest.raises(ApiError):
            await world.kube.patch(NODES, "n", yaml.safe_load(seed.CAPACITY), subresource="status")
        await world.kube.patch(NODES, "n", yaml.safe_load(seed.OTHER_CAPACITY), subresource="status")
        status = (await world.kube.get(NODES, "n"))["status"]
        assert status["allocatable"]["kubernetes.io/rdma"] == status["capacity"]["kubernetes.io/fpga"] == "100"

    play(story)


@pytest.mark.parametrize("text", [seed.NVIDIA])
def test_requests_without_limits_are_refused_by_an_api_server(text: str) -> None:
    async def story(world: DeviceWorld) -> None:
        container = {"name": "c", "image": "x", **yaml.safe_load(text)}
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [container]}}
        with pytest.raises(InvalidError, match="Limit must be set for non overcommitable resources"):
            await world.kube.create(PODS, pod, namespace="default")

    play(story)


def test_its_annotation_is_read() -> None:
    found = parse_allocations(seed.ALLOCATION)
    assert [(each.type, each.minor) for each in found] == [("gpu", 0), ("gpu", 1)]
    assert all(each.resources == {CORE: 100, RATIO: 100, MEMORY: 16 * GIB} for each in found)


def test_its_device_is_applied_and_what_it_says_is_held_counts_once_it_is_listed() -> None:
    async def story(world: DeviceWorld) -> None:
        await world.install()
        await world.add_node("node-1")
        await world.kube.create(DEVICES, yaml.safe_load(seed.DEVICE))
        await world.koordinator()
        await a_while()
        stored = parse(await world.kube.get(DEVICES, "node-1"))
        assert [d.resources[MEMORY] for d in stored.devices] == [15472384 * 1024] * 2
        assert parse(as_object(stored)) == stored
        assert world.cache.unknown == {"node-1": ("GPU-36b27e44-b086-46f7-f2dc-73c36dc65991",)}
        await world.ask("a", {"nvidia.com/gpu": 2})
        await world.until_bound("a")

    play(story)


def test_a_device_by_the_tags_of_its_go_types_is_the_same_as_one_by_its_example() -> None:
    """``deviceType`` and ``resource``; what is left out is minor 0, and not healthy."""
    whole_gpu = {"kubernetes.io/gpu-core": "100", "kubernetes.io/gpu-mem": "8Gi", "kubernetes.io/gpu-mem-ratio": "100"}
    listed = [
        {"id": "GPU-a", "deviceType": "gpu", "resource": whole_gpu},
        {"id": "GPU-b", "deviceType": "gpu", "minor": 1, "health": True, "resource": whole_gpu},
    ]

    async def story(world: DeviceWorld) -> None:
        await world.install()
        kind = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n"}}
        await world.kube.create(DEVICES, {**kind, "spec": {"devices": listed}})
        found = parse(await world.kube.get(DEVICES, "n")).devices
        assert [(each.type, each.id, each.minor, each.health) for each in found] == [
            ("gpu", "GPU-a", 0, False),
            ("gpu", "GPU-b", 1, True),
        ]
        assert all(dict(each.resources) == {CORE: 100, MEMORY: 8 * GIB, RATIO: 100} for each in found)

    play(story)


REQUESTS = {
    "nvidia": (seed.NVIDIA, "gpu", [0, 1], {CORE: 100, RATIO: 100, MEMORY: 8 * GIB}),
    "nvidia translated": (seed.NVIDIA_TRANSLATED, "gpu", [0, 1], {CORE: 100, RATIO: 100, MEMORY: 8 * GIB}),
    "half": (seed.HALF, "gpu", [0], {CORE: 50, RATIO: 50, MEMORY: 4 * GIB}),
    "half translated": (seed.HALF_TRANSLATED, "gpu", [0], {CORE: 50, RATIO: 50, MEMORY: 4 * GIB}),
    "core and ratio": (seed.CORE_AND_RATIO, "gpu", [0], {CORE: 50, RATIO: 60, MEMORY: 8 * GIB * 60 // 100}),
    "core and memory": (seed.CORE_AND_MEMORY, "gpu", [0], {CORE: 60, RATIO: 50, MEMORY: 4 * GIB}),
    "adapter": (seed.ADAPTER, "rdma", [0], {"koordinator.sh/rdma": 100}),
}


def pod_of(text: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", **yaml.safe_load(text)}
    return {"metadata": {"name": "a"}, "spec": {"schedulerName": "koord-scheduler", "containers": [container]}}


async def four_and_an_adapter(world: DeviceWorld) -> None:
    adapter = NodeDevice("rdma", 0, "NIC-0", True, {"koordinator.sh/rdma": 100})
    await world.node_with(NodeDeviceReport("n", (*gpus("n", 4), adapter)))
    await world.koordinator(device_choice="minor")


@pytest.mark.parametrize("name", [name for name in REQUESTS if name != "nvidia"])
def test_a_request_by_the_seed_s_names_is_admitted_and_its_node_lists_none_of_it(name: str) -> None:
    """As a real API server does it, and a kubelet would: names below kubernetes.io are no extended resources."""

    async def story(world: DeviceWorld) -> None:
        await four_and_an_adapter(world)
        pod = pod_of(REQUESTS[name][0])
        asked = pod["spec"]["containers"][0]["resources"]["requests"]
        await world.kube.create(PODS, pod, namespace="default")
        await a_while(20)
        assert await world.node_of("a") == ""
        wanted = [each for each in asked if each.startswith("kubernetes.io/")]
        message = await world.message("a")
        assert any(f"Insufficient {each}" in message for each in wanted), message

    play(story)


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_of_the_seed_gets_its_numbers_once_the_webhook_has_rewritten_it(name: str) -> None:
    text, kind, minors, each = REQUESTS[name]

    async def story(world: DeviceWorld) -> None:
        await four_and_an_adapter(world)
        pod = mutated(pod_of(text), scheduler="koord-scheduler", device_plugin=False)
        await world.kube.create(PODS, pod, namespace="default")
        await world.until_bound("a")
        given = await world.allocations("a")
        assert [(one.type, one.minor) for one in given] == [(kind, minor) for minor in minors]
        assert all(dict(one.resources) == each for one in given)

    play(story)
