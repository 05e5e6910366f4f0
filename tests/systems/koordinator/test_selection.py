"""The best set of devices, against every set there is."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Sequence
from itertools import combinations

import pytest
from msgspec.structs import replace

from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import DeviceLink, DevicePlace, NodeDevice, NodeDeviceReport
from mews.systems.koordinator.experiment.nodes import cube_mesh, nvswitch, pcie_only
from mews.systems.koordinator.names import HINT, JOINT
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.selection import Bandwidth, Choice, DeviceCandidate, best_set, set_key
from mews.systems.koordinator.usage import NodeUse, PodUse

NODES = {"cube-mesh": cube_mesh(), "nvswitch": nvswitch(), "pcie": pcie_only()}


def every_set(
    candidates: Sequence[DeviceCandidate], count: int, choice: Choice, bandwidth: Bandwidth, cover: frozenset[str]
) -> tuple[DeviceCandidate, ...] | None:
    """The best of all sets, by looking at each."""
    sets = [one for one in combinations(candidates, count) if cover <= {each.group for each in one}]
    return min(sets, key=lambda one: set_key(one, choice, bandwidth), default=None)


@pytest.mark.parametrize("choice", ["minor", "leastAllocated", "bandwidth"])
@pytest.mark.parametrize("name", NODES)
def test_the_best_set_is_the_best_of_all_sets(name: str, choice: Choice) -> None:
    report, rng = NODES[name], random.Random(name)
    bandwidth = Bandwidth(report.links, "gpu")
    for _ in range(60):
        gpus = rng.sample(report.of_type("gpu"), rng.randint(1, 8))
        candidates = [DeviceCandidate(gpu, {}, rng.choice((0, 0, 250_000, 500_000))) for gpu in gpus]
        count = rng.randint(1, len(gpus))
        groups = sorted({each.group for each in candidates})
        cover = frozenset(rng.sample(groups, rng.randint(0, min(len(groups), count))))
        expected = every_set(candidates, count, choice, bandwidth, cover)
        actual = best_set(candidates, count, choice, bandwidth, cover)
        assert (actual is None) == (expected is None)
        if actual is not None and expected is not None:
            assert set_key(actual, choice, bandwidth) == set_key(expected, choice, bandwidth)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_set_is_the_best_of_all_sets_on_matrices_of_chance(seed: int) -> None:
    rng = random.Random(seed)
    links = [DeviceLink("gpu", (a, b), rng.randint(0, 5) * 10) for a, b in combinations(range(8), 2)]
    report = replace(pcie_only(), links=tuple(links))
    bandwidth = Bandwidth(report.links, "gpu")
    candidates = [DeviceCandidate(gpu, {}, rng.choice((0, 500_000))) for gpu in report.of_type("gpu")]
    for count in range(1, 9):
        expected = every_set(candidates, count, "bandwidth", bandwidth, frozenset())
        actual = best_set(candidates, count, "bandwidth", bandwidth)
        assert actual is not None and expected is not None
        assert set_key(actual, "bandwidth", bandwidth) == set_key(expected, "bandwidth", bandwidth)


def given(report: NodeDeviceReport, requests: dict[str, int], annotations: dict[str, str] | None = None, **uses: int):  # type: ignore[no-untyped-def]
    use = NodeUse.of(report)
    for name, minor in uses.items():
        gpu = report.of_type("gpu")[minor]
        use = use.plus(PodUse(name, name, (DeviceAllocation("gpu", minor, gpu.resources, gpu.id),)))
    ask = ask_of(requests, annotations or {})
    assert ask is not None
    return policy.allocate(ask, use)


def minors(allocations, kind: str = "gpu") -> list[int]:  # type: ignore[no-untyped-def]
    assert not isinstance(allocations, policy.NoDevices), allocations
    return [each.minor for each in allocations if each.type == kind]


def test_two_of_the_cube_mesh_are_a_pair_with_two_links() -> None:
    assert minors(given(cube_mesh(), {"nvidia.com/gpu": 2})) == [0, 3]


def test_two_of_the_cube_mesh_avoid_a_slow_pair_when_the_first_is_taken() -> None:
    assert minors(given(cube_mesh(), {"nvidia.com/gpu": 2}, a=0)) == [1, 2]


def test_four_of_the_cube_mesh_are_a_quad_whose_every_pair_has_a_link() -> None:
    assert minors(given(cube_mesh(), {"nvidia.com/gpu": 4})) == [0, 1, 2, 3]


def test_two_of_a_server_without_nvlinks_are_below_one_switch() -> None:
    assert minors(given(pcie_only(), {"nvidia.com/gpu": 2}, a=0)) == [2, 3]


def test_eight_of_sixteen_are_chosen_within_a_second() -> None:
    candidates = [DeviceCandidate(gpu) for gpu in pcie_only(16).of_type("gpu")]
    begun = time.process_time()
    found = best_set(candidates, 8, "bandwidth", Bandwidth(pcie_only(16).links, "gpu"))
    assert found is not None
    assert [each.minor for each in found] == list(range(8))
    assert time.process_time() - begun < 1


SAME_PCIE = {JOINT: '{"deviceTypes":["gpu","rdma"],"requiredScope":"SamePCIe"}'}


def test_a_gpu_and_its_adapter_are_below_one_switch() -> None:
    found = given(cube_mesh(), {"nvidia.com/gpu": 1, "koordinator.sh/rdma": 100}, SAME_PCIE, a=0, b=1)
    assert (minors(found), minors(found, "rdma")) == ([2], [1])


def test_four_gpus_below_two_switches_get_an_adapter_of_each() -> None:
    found = given(cube_mesh(), {"nvidia.com/gpu": 4, "koordinator.sh/rdma": 100}, SAME_PCIE)
    assert (minors(found), minors(found, "rdma")) == ([0, 1, 2, 3], [0, 1])


def test_devices_that_must_be_below_one_switch_and_cannot_are_refused() -> None:
    report = cube_mesh()
    nics = tuple(d for d in report.devices if d.type == "gpu" or d.minor == 0)
    found = given(replace(report, devices=nics), {"nvidia.com/gpu": 1, "koordinator.sh/rdma": 100}, SAME_PCIE, a=0, b=1)
    assert isinstance(found, policy.NoDevices)
    assert found.reason == policy.JOINT_VIOLATION


def test_devices_that_should_be_near_are_given_elsewhere_when_they_cannot() -> None:
    near = {JOINT: '{"deviceTypes":["gpu","rdma"]}'}
    report = cube_mesh()
    nics = tuple(d for d in report.devices if d.type == "gpu" or d.minor == 3)
    found = given(replace(report, devices=nics), {"nvidia.com/gpu": 1, "koordinator.sh/rdma": 100}, near)
    assert (minors(found), minors(found, "rdma")) == ([0], [3])


def test_all_within_one_numa_node_where_the_hint_says_so() -> None:
    scope = {HINT: '{"gpu":{"requiredTopologyScope":"NUMANode"}}'}
    assert minors(given(cube_mesh(), {"nvidia.com/gpu": 2}, scope, a=0, b=1, c=2)) == [4, 7]


def test_an_exclusive_pod_gets_a_device_that_nobody_uses() -> None:
    alone = {HINT: '{"gpu":{"exclusivePolicy":"DeviceLevel"}}'}
    assert minors(given(cube_mesh(), {"koordinator.sh/gpu": 10}, alone, a=0)) == [1]


def placeless(device: NodeDevice) -> NodeDevice:
    return dataclasses.replace(device, place=DevicePlace())


def test_below_a_switch_that_is_not_known_a_pod_is_alone_only_where_nobody_uses_any_device_of_the_type() -> None:
    alone = {HINT: '{"gpu":{"exclusivePolicy":"PCIeLevel"}}'}
    mesh = cube_mesh()
    unknown = replace(mesh, devices=tuple(map(placeless, mesh.devices)), links=())
    assert minors(given(unknown, {"koordinator.sh/gpu": 10}, alone)) == [0]
    assert isinstance(given(unknown, {"koordinator.sh/gpu": 10}, alone, a=7), policy.NoDevices)
    first, *others = mesh.devices
    one_unknown = replace(mesh, devices=(placeless(first), *others))
    assert isinstance(given(one_unknown, {"koordinator.sh/gpu": 10}, alone, a=0), policy.NoDevices)
    assert minors(given(mesh, {"koordinator.sh/gpu": 10}, alone, a=0)) == [3]
