"""Gangs: all or none, on one node, jointly best, against every way of giving."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from msgspec.structs import replace

from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import DeviceLink, NodeDeviceReport
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.experiment.nodes import cube_mesh, nvswitch, pcie_only
from mews.systems.koordinator.gangs import GangMember, gang_of, place_gang
from mews.systems.koordinator.names import HINT, MIN_AVAILABLE, POD_GROUP
from mews.systems.koordinator.policy import NoDevices
from mews.systems.koordinator.requests import ask_of
from mews.systems.koordinator.selection import Bandwidth
from mews.systems.koordinator.usage import NodeUse, PodUse


def member(order: int, **asked: int) -> GangMember:
    requests = {name.replace("__", "/").replace("_", "-"): value for name, value in asked.items()}
    ask = ask_of({("nvidia.com/gpu" if name == "gpu" else name): value for name, value in requests.items()}, {})
    assert ask is not None
    return GangMember(f"uid-{order}", f"default/{order}", ask)


def used(report: NodeDeviceReport, minors: Sequence[int]) -> NodeUse:
    use = NodeUse.of(report)
    for gpu in report.of_type("gpu"):
        if gpu.minor in minors:
            use = use.plus(PodUse(f"other-{gpu.minor}", "x", (DeviceAllocation("gpu", gpu.minor, gpu.resources),)))
    return use


def divisions(minors: Sequence[int], counts: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    if not counts:
        yield []
        return
    for share in combinations(minors, counts[0]):
        for rest in divisions([each for each in minors if each not in share], counts[1:]):
            yield [share, *rest]


def best_way(minors: Sequence[int], counts: Sequence[int], bandwidth: Bandwidth) -> list[tuple[int, ...]]:
    """The best of all ways, by looking at each."""

    def key(shares: list[tuple[int, ...]]) -> tuple[object, ...]:
        union = sorted(minor for share in shares for minor in share)
        whole = bandwidth.quality(union)
        pairs = [bandwidth.between(a, b) for share in shares for a, b in combinations(share, 2)]
        fastest = max((bandwidth.between(a, b) for a, b in combinations(union, 2)), default=0)
        return -whole[0], -whole[1], union, -min(pairs, default=fastest), -sum(pairs), shares

    return min(divisions(minors, counts), key=key)


NODES = {"cube-mesh": cube_mesh(), "nvswitch": nvswitch(), "pcie": pcie_only()}


@pytest.mark.parametrize("counts", [(2, 2), (1, 1), (1, 3), (2, 1, 1), (2, 2, 2), (3, 2), (4, 2)], ids=str)
@pytest.mark.parametrize("name", NODES)
def test_a_gang_gets_the_best_of_all_ways(name: str, counts: tuple[int, ...]) -> None:
    report, rng = NODES[name], random.Random(f"{name} {counts}")
    for taken in ((), (0,), tuple(rng.sample(range(8), 2))):
        free = [minor for minor in range(8) if minor not in taken]
        placed = place_gang([member(i, gpu=count) for i, count in enumerate(counts)], used(report, taken))
        if sum(counts) > len(free):
            assert isinstance(placed, NoDevices)
            continue
        assert not isinstance(placed, NoDevices)
        ours = [tuple(each.minor for each in placed[f"uid-{i}"]) for i in range(len(counts))]
        assert ours == best_way(free, counts, Bandwidth(report.links, "gpu"))


@pytest.mark.parametrize("seed", range(8))
def test_a_gang_gets_the_best_of_all_ways_on_matrices_of_chance(seed: int) -> None:
    rng = random.Random(seed)
    links = tuple(DeviceLink("gpu", pair, rng.randint(0, 4) * 10) for pair in combinations(range(6), 2))
    report = replace(pcie_only(6), links=links)
    counts = rng.choice([(2, 2), (1, 2), (2, 2, 1), (3, 2)])
    placed = place_gang([member(i, gpu=count) for i, count in enumerate(counts)], NodeUse.of(report))
    assert not isinstance(placed, NoDevices)
    ours = [tuple(each.minor for each in placed[f"uid-{i}"]) for i in range(len(counts))]
    assert ours == best_way(range(6), counts, Bandwidth(links, "gpu"))


def test_two_pods_of_two_gpus_get_a_quad_of_the_cube_mesh_and_its_fastest_pairs() -> None:
    placed = place_gang([member(0, gpu=2), member(1, gpu=2)], NodeUse.of(cube_mesh()))
    assert not isinstance(placed, NoDevices)
    assert [[each.minor for each in placed[uid]] for uid in ("uid-0", "uid-1")] == [[0, 3], [1, 2]]


def test_a_gang_that_does_not_fit_gets_nothing() -> None:
    placed = place_gang([member(0, gpu=4), member(1, gpu=4)], used(nvswitch(), [5]))
    assert isinstance(placed, NoDevices)


def test_parts_of_gpus_are_packed_so_that_all_of_a_gang_fit() -> None:
    """First fit in the order of the pods would leave no room for the last."""
    members = [
        GangMember(f"uid-{i}", f"default/{i}", ask)
        for i, ratio in enumerate((40, 40, 60, 60))
        if (ask := ask_of({"koordinator.sh/gpu": ratio}, {})) is not None
    ]
    report = replace(pcie_only(2), links=())
    placed = place_gang(members, NodeUse.of(report))
    assert not isinstance(placed, NoDevices)
    sums = {0: 0, 1: 0}
    for given in placed.values():
        sums[given[0].minor] += given[0].resources["koordinator.sh/gpu-core"]
    assert sums == {0: 100, 1: 100}


def test_a_gang_may_ask_for_adapters_as_well() -> None:
    ask = ask_of({"nvidia.com/gpu": 1, "koordinator.sh/rdma": 100}, {})
    assert ask is not None
    placed = place_gang([GangMember(f"u{i}", str(i), ask) for i in range(4)], NodeUse.of(cube_mesh()))
    assert not isinstance(placed, NoDevices)
    assert sorted(each.minor for given in placed.values() for each in given if each.type == "rdma") == [0, 1, 2, 3]


def test_labels_make_a_gang() -> None:
    assert gang_of({}) is None
    label = gang_of({POD_GROUP: "a", MIN_AVAILABLE: "2"})
    assert label is not None and (label.name, label.min_available) == ("a", 2)
    with pytest.raises(InvalidRequestError, match="must be a number from 1"):
        gang_of({POD_GROUP: "a", MIN_AVAILABLE: "two"})


def test_a_hint_of_one_pod_counts_in_a_gang() -> None:
    hint = {HINT: '{"gpu":{"requiredTopologyScope":"NUMANode"}}'}
    ask = ask_of({"nvidia.com/gpu": 2}, hint)
    assert ask is not None
    placed = place_gang([GangMember("a", "a", ask), GangMember("b", "b", ask)], used(cube_mesh(), [0, 1, 2]))
    assert not isinstance(placed, NoDevices)
    assert sorted(sorted(each.minor for each in given) for given in placed.values()) == [[4, 7], [5, 6]]
