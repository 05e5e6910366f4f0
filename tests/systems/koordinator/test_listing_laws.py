"""The laws on what koordlet lists and which GPU the scheduler takes: lines that break them, and lines that must not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mews.systems.koordinator.journal import device_news
from mews.systems.koordinator.names import ALLOCATED, CORE, HINT, MEMORY, PARTITIONS, RATIO, WHOLE
from tests.harness.invariants.law_runs import Said
from tests.systems.koordinator.test_laws import found, pod

GIB = 1 << 30


def gpu(minor: int, *, health: bool = True, pcie: str = "p0", numa: int = 0, **more: Any) -> dict[str, Any]:
    resources = {CORE: "100", MEMORY: "8Gi", RATIO: "100"}
    topology = {"socketID": 0, "nodeID": numa, "pcieID": pcie, "busID": f"b{minor}"}
    row = {"type": "gpu", "minor": minor, "id": f"GPU-{minor}", "health": health, "resources": resources}
    return {**row, "topology": topology, **more}


def nic(minor: int, bus: str) -> dict[str, Any]:
    place = {"socketID": 0, "nodeID": 0, "pcieID": "p0", "busID": bus}
    return {"type": "rdma", "minor": minor, "id": f"nic-{minor}", "health": True, "resources": {}, "topology": place}


def published(t: float, *devices: dict[str, Any], **more: Any) -> Said:
    return (t, "devices", "device-published", {"node": "n1", "devices": list(devices), **more})


def row(uuid: str, bus: str, kind: str = "GPU", minor: int | None = None) -> dict[str, Any]:
    return {"uuid": uuid, "gpuid": uuid, "bdf": bus, "kind": kind, "minor": minor, "healthy": True}


def host(t: float, event: str, **fields: Any) -> Said:
    return (t, "host/n1", event, fields)


TABLE = host(0, "table", devices={"0": row("GPU-0", "b0", minor=0), "1": row("GPU-1", "b1", minor=1)})
WITH_NIC = host(0, "table", devices={"0": row("GPU-0", "b0", minor=0), "n": row("NIC", "b9", "RDMA")})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([TABLE, published(1, gpu(0), gpu(1))], [], id="as they are"),
        pytest.param([TABLE, published(1, gpu(0), gpu(0, id="GPU-1"))], [(1, None), (1, 0), (1, 0)], id="one number"),
        pytest.param([TABLE, published(1, gpu(0), gpu(1, id="GPU-0"))], [(1, None), (1, 0), (1, 0)], id="one name"),
        pytest.param([TABLE, published(1, gpu(0, topology={}))], [(1, 0)], id="without a place"),
        pytest.param([TABLE, published(1, gpu(0, pcie=""))], [(1, 0)], id="without its switch"),
        pytest.param([TABLE, published(1, gpu(0, health=False, topology={}))], [], id="one that is ill"),
        pytest.param(
            [TABLE, host(1, "driver-bound", **row("GPU-0", "b7", minor=0)), published(2, gpu(0))], [(2, 1)], id="moved"
        ),
        pytest.param([TABLE, published(1, gpu(0, resources={CORE: "50"}))], [(1, None)], id="half of one"),
        pytest.param([published(1, gpu(0, topology={}))], [], id="a host without PCI"),
        pytest.param([WITH_NIC, published(1, gpu(0))], [(1, 0)], id="without its adapter"),
        pytest.param([WITH_NIC, published(1, gpu(0), nic(0, "b9"))], [], id="with it"),
        pytest.param([WITH_NIC, host(1, "link-down", **row("NIC", "b9")), published(2, gpu(0))], [], id="it has gone"),
    ],
)
def test_a_device_lists_each_device_where_its_host_has_it(
    said: list[Said], named: list[tuple[int, int | None]]
) -> None:
    assert found(1040, said) == named


def node(t: float, event: str, **fields: Any) -> Said:
    return (t, "node/n1", event, fields)


BEGUN = node(0, "created", allocatable={})


def shows(t: float, count: int) -> list[Said]:
    return [node(t, "allocatable", resource=name, old=None, new=str(100 * count)) for name in (CORE, RATIO)]


LISTED = [BEGUN, published(0, gpu(0)), *shows(0, 1)]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(LISTED, [], id="at once"),
        pytest.param([BEGUN], [(0, None)], id="never"),
        pytest.param([BEGUN, published(1, gpu(0)), *shows(1, 1)], [(0, None)], id="late"),
        pytest.param([*LISTED, (1.0, "devices", "device-withdrawn", {"node": "n1"})], [(4, None)], id="not again"),
        pytest.param([BEGUN, published(0, gpu(0))], [(1, 1)], id="without its sums"),
        pytest.param([*LISTED, published(1, gpu(0, health=False))], [(4, 4)], id="with the sums of before"),
        pytest.param([*LISTED, node(1, "allocatable", resource=CORE, old="100", new="0")], [(4, 1)], id="taken off"),
        pytest.param([*LISTED, host(1, "nvml-visible", **row("GPU-1", "b1"))], [(4, 1)], id="one that came"),
        pytest.param(
            [*LISTED, host(1, "nvml-visible", **row("GPU-1", "b1")), published(2, gpu(0), gpu(1)), *shows(2, 2)],
            [],
            id="one that came, at the next look",
        ),
        pytest.param([*LISTED, host(1, "nvml-hidden", **row("GPU-0", "b0"))], [(4, 1)], id="one that went"),
        pytest.param([*LISTED, host(1, "mig-mode", **row("GPU-0", "b0"), on=True)], [(4, 1)], id="one that is divided"),
        pytest.param([*LISTED, host(1, "mig-mode", **row("GPU-0", "b0"), on=False)], [], id="one that is whole again"),
        pytest.param([*LISTED, host(1, "nvml-hidden", **row("NIC", "b9", "RDMA"))], [], id="an adapter"),
        pytest.param([(0.0, "koordlet/n1", "killed", {}), BEGUN], [], id="its koordlet is away"),
        pytest.param([BEGUN, (0.05, "koordlet/n1", "killed", {})], [], id="its koordlet goes"),
        pytest.param([BEGUN, node(0.05, "deleted")], [], id="the node goes"),
    ],
)
def test_a_node_has_its_device_and_its_sums_at_once(said: list[Said], named: list[tuple[int, int | None]]) -> None:
    assert found(1041, said, until=9.0) == named


def test_a_node_without_a_koordlet_has_no_device() -> None:
    assert found(1041, [(0, "node/n2", "created", {"allocatable": {}})], until=9.0) == []


def created(t: float, uid: str, **requests: int) -> Said:
    asks = {"whole": WHOLE, "core": CORE, "ratio": RATIO, "memory": MEMORY}
    return pod(t, uid, "created", scheduler="koord-scheduler", requests={asks[n]: v for n, v in requests.items()})


def bears(t: float, uid: str, *minors: int, share: int = 100) -> Said:
    amounts = {CORE: str(share), MEMORY: str(8 * GIB * share // 100), RATIO: str(share)}
    given = {"gpu": [{"minor": minor, "id": f"GPU-{minor}", "resources": amounts} for minor in minors]}
    return pod(t, uid, "annotations", annotations={ALLOCATED: json.dumps(given)})


def bound(t: float, uid: str) -> Said:
    return pod(t, uid, "bound", node="n1")


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([created(5, "a", whole=200), bears(5, "a", 0, 1), bound(5, "a")], [], id="two of two"),
        pytest.param([created(5, "a", whole=200), bears(5, "a", 0), bound(5, "a")], [(2, 1), (2, 1)], id="one of two"),
        pytest.param([created(5, "a", core=50, ratio=50), bears(5, "a", 0, share=50), bound(5, "a")], [], id="a half"),
        pytest.param([created(5, "a", core=50), bears(5, "a", 0, share=60), bound(5, "a")], [(2, 1)], id="more"),
        pytest.param([created(5, "a", memory=4 * GIB), bears(5, "a", 0, share=50), bound(5, "a")], [], id="bytes"),
        pytest.param(
            [
                created(5, "a", whole=200),
                pod(5, "a", "annotations", annotations={HINT: "{}"}),
                bears(5, "a", 0),
                bound(5, "a"),
            ],
            [],
            id="with a hint",
        ),
    ],
)
def test_a_pod_is_given_what_it_asks_for(said: list[Said], named: list[tuple[int, int]]) -> None:
    assert found(1042, said) == named


FOUR = published(0, gpu(0), gpu(1), gpu(2, pcie="p1"), gpu(3, pcie="p2", numa=1))


def takes(t: float, uid: str, minor: int, share: int = 100) -> list[Said]:
    return [created(t, uid, whole=share), bears(t, uid, minor, share=share), bound(t, uid)]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(takes(5, "a", 0), [], id="the first"),
        pytest.param(takes(5, "a", 1), [(3, 2)], id="the second"),
        pytest.param(takes(5, "a", 1, 50), [], id="a part of the last"),
        pytest.param(takes(5, "a", 0, 50), [(3, 2)], id="a part of the first"),
        pytest.param([*takes(5, "a", 0), *takes(7, "b", 1)], [], id="beside what is in use"),
        pytest.param([*takes(5, "a", 0), *takes(7, "b", 3)], [(6, 5)], id="far from it"),
        pytest.param([*takes(5, "a", 0), *takes(7, "b", 2)], [(6, 5)], id="on the same NUMA node only"),
        pytest.param([*takes(5, "a", 0), *takes(7, "b", 1), *takes(9, "c", 2)], [], id="the nearest that is free"),
        pytest.param([*takes(5, "a", 1, 50), *takes(7, "b", 1, 50)], [], id="the other half"),
        pytest.param([*takes(5, "a", 1, 50), *takes(7, "b", 1, 60)], [(6, 5)], id="more than is left"),
        pytest.param(
            [*takes(5, "a", 0), pod(7, "a", "phase", phase="Succeeded", reason=""), *takes(7, "b", 3)],
            [],
            id="as another ends",
        ),
        pytest.param([published(4.5, gpu(0)), *takes(5, "a", 1)], [], id="as the Device changes"),
        pytest.param([published(1, *FOUR[3]["devices"], parted=True), *takes(5, "a", 1)], [], id="with partitions"),
    ],
)
def test_a_gpu_is_the_first_of_the_tree(said: list[Said], named: list[tuple[int, int]]) -> None:
    later = (20.0, "node/n9", "created", {"allocatable": {}})
    assert found(1043, [FOUR, *said, later]) == named
    assert found(1043, [FOUR, *said, later], device_choice="minor") == []


def test_pods_of_one_moment_are_judged_as_they_come_one_after_the_other() -> None:
    both = [created(5, "a", whole=50), created(5, "b", whole=50)]
    later = (20.0, "node/n9", "created", {"allocatable": {}})
    same = [bears(5, "a", 1, share=50), bears(5, "b", 1, share=50), bound(5, "a"), bound(5, "b"), later]
    assert found(1043, [FOUR, *both, *same]) == []
    apart = [bears(5, "a", 3, share=50), bears(5, "b", 3, share=50), bound(5, "a"), bound(5, "b"), later]
    assert found(1043, [FOUR, *both, *apart]) == [(5, 3)]


def test_partitions_of_a_device_are_said_with_its_list() -> None:
    device = {"metadata": {"name": "n1"}, "spec": {"devices": []}}
    parted = {**device, "metadata": {"name": "n1", "annotations": {PARTITIONS: "{}"}}}
    fields = {"node": "n1", "devices": []}
    assert list(device_news(None, device)) == [("devices", "device-published", fields)]
    assert list(device_news(device, parted)) == [("devices", "device-published", {**fields, "parted": True})]
    assert list(device_news(parted, parted)) == []
