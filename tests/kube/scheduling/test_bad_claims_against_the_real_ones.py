"""What is wrong with claims, classes and slices: the same refusals as of the real API server, and the same verdicts as
of the real scheduler for what may be stored all the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.finding import SCHEDULER, of_release
from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object
from mews.kube.api.resources import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi
from mews.kube.clock import stream
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.scheduling.devices.gated_features import features_of
from tests.kube.scheduling.bad_selectors import selectors
from tests.kube.scheduling.device_cases import DeviceCase
from tests.kube.scheduling.device_oracle import ours, theirs
from tests.kube.scheduling.drawn_slices import CASE

_DRIVER = "d.example.com"

Written = tuple[Resource, Object]


def _bodies(*, shares: bool) -> list[Written]:
    found: list[Written] = [
        (DEVICE_CLASSES, {"metadata": {"name": f"k{n}"}, "spec": {"selectors": [{"cel": {"expression": text}}]}})
        for n, text in enumerate(selectors(shares=shares))
    ]
    wrong = {"cel": {"expression": "device.driver =="}}
    requests: list[dict[str, Any]] = [
        {"name": "r", "exactly": {}},
        {"name": "r", "exactly": {"deviceClassName": ""}},
        {"name": "r", "exactly": {"deviceClassName": "K"}},
        {"name": "r"},
        {"name": "r", "firstAvailable": [{"name": "s"}]},
        {"name": "r", "exactly": {"deviceClassName": "k", "selectors": [wrong, {}]}},
        {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "k", "selectors": [wrong]}]},
        {"name": "r", "exactly": {"deviceClassName": "k", "count": -1}},
        {"name": "r", "exactly": {"deviceClassName": "k", "allocationMode": "Some"}},
    ]
    for number, request in enumerate(requests):
        spec = {"devices": {"requests": [request]}}
        found.append((RESOURCE_CLAIMS, {"metadata": {"name": f"c{number}"}, "spec": spec}))
        found.append((RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": f"t{number}"}, "spec": {"spec": spec}}))
    if shares:
        found += [(RESOURCE_SLICES, _shared(number, policy)) for number, policy in enumerate(_POLICIES)]
    return found


_POLICIES: Sequence[dict[str, Any]] = (
    {"default": "1Gi"},
    {"validRange": {"min": "1Gi"}},
    {"validValues": ["1Gi"]},
    {"default": "1Gi", "validRange": {"min": "1Gi"}, "validValues": ["1Gi"]},
    {"default": "1Gi", "validRange": {}},
    {"default": "1Gi", "validRange": {"min": "2Gi", "max": "1Gi", "step": "3Gi"}},
    {"default": "60Gi", "validRange": {"min": "50Gi", "max": "55Gi", "step": "0"}},
    {"default": "2Gi", "validRange": {"min": "1Gi", "max": "30Gi", "step": "2Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "step": "40Gi"}},
    {"default": "1Gi", "validValues": ["2Gi", "50Gi", "8Gi", "8Gi"]},
    {"default": "1", "validValues": [str(n) for n in range(12)]},
)


def _shared(number: int, policy: dict[str, Any]) -> Object:
    shared = {"capacity": {"memory": {"value": "40Gi", "requestPolicy": policy}}}
    devices = [{"name": "d", "allowMultipleAllocations": True, **shared}, {"name": "e", **shared}]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": "n", "pool": pool, "devices": devices}
    return {"metadata": {"name": f"s{number}"}, "spec": spec}


async def _answers(kube: KubeApi, bodies: Sequence[Written]) -> list[str]:
    found = []
    for resource, body in bodies:
        try:
            await kube.create(resource, body, namespace="default" if resource.namespaced else "")
            found.append("")
        except ApiError as refusal:
            found.append(str(refusal))
    return found


def _our_answers(bodies: Sequence[Written], release: ClusterRelease) -> list[str]:
    async def main() -> list[str]:
        kube = InProcessKube(fresh_store(virtual_clock().now, stream(1, "store"), release=release))
        return await _answers(kube, bodies)

    return run_virtual(main)


def _their_answers(bodies: Sequence[Written], release: ClusterRelease) -> list[str]:
    servers = Servers(release=release)

    async def main() -> list[str]:
        await asyncio.to_thread(servers.ready)
        kube = HttpKube(servers.url, token=servers.identity.token, ssl=servers.identity.client_context())
        try:
            return await _answers(kube, bodies)
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()


@pytest.mark.wall
@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_claims_and_classes_are_refused_in_the_words_of_the_real_server(release: str) -> None:
    if of_release(SCHEDULER, release) is None:
        pytest.skip(f"no Kubernetes {release}")
    cluster = cluster_release(release)
    bodies = _bodies(shares=features_of(cluster).consumable_capacity)
    both = zip(bodies, _our_answers(bodies, cluster), _their_answers(bodies, cluster), strict=True)
    assert [(body, mine, real) for body, mine, real in both if mine != real] == []


# What may be stored


def _case(number: int, slices: list[dict[str, Any]], *requests: dict[str, Any], **devices: Any) -> DeviceCase:
    nodes = [f"b{number}-east"]
    driver = f"b{number}.{_DRIVER}"
    offered = [
        {"metadata": {"name": f"b{number}-{index}"}, "spec": {"driver": driver, "nodeName": nodes[0], **each}}
        for index, each in enumerate(slices)
    ]
    own = {"cel": {"expression": f"device.driver == '{driver}'"}}
    device_class = {"metadata": {"name": f"b{number}"}, "spec": {"selectors": [own]}}
    asked = [
        {"name": f"r{n}", "exactly": {"deviceClassName": f"b{number}", **request}} for n, request in enumerate(requests)
    ]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": asked, **devices}}}
    spec = {
        "containers": [{"name": "m", "image": "x"}],
        "nodeSelector": {CASE: str(number)},
        "resourceClaims": [{"name": "e", "resourceClaimName": "c"}],
    }
    pod = {"metadata": {"name": "p"}, "spec": spec}
    return DeviceCase(number, nodes, offered, [device_class], [], [claim], {}, pod, breaks=False, ordered=True)


def _slice(*names: str, generation: int = 1, count: int = 1, pool: str = "p") -> dict[str, Any]:
    described = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return {"pool": described, "devices": [{"name": name} for name in names]}


def _names(number: int) -> list[str]:
    return [f"d{n}" for n in range(number)]


_WRONG = [
    _case(0, [_slice("d0"), _slice("d1", generation=2)], {}),
    _case(1, [_slice("d0", generation=3), _slice("d1", generation=2)], {"count": 2}),
    _case(2, [_slice("d0", count=2)], {}),
    _case(3, [_slice("d0", count=2)], {"allocationMode": "All"}),
    _case(4, [_slice("d0", count=2), _slice("d0", count=2)], {}),
    _case(5, [_slice("d0", count=2), _slice("d0", count=2)], {"allocationMode": "All"}),
    _case(6, [_slice("d0", count=2), _slice("d0", count=2), _slice("d9", pool="q")], {"count": 2}),
    _case(7, [_slice("d0", count=2), _slice("d1", generation=2, count=2)], {"allocationMode": "All"}),
    # There is one device too few, which shows with the last request: all combinations, in 1.34 all permutations.
    _case(8, [_slice(*_names(24))], {"count": 12}, {"count": 8}, {"count": 5}),
    _case(9, [_slice(*_names(12))], {"count": 11}, {"count": 2}),
    _case(10, [_slice(*_names(8))], {"count": 6}, {"count": 3}),
]


@pytest.mark.wall
@pytest.mark.parametrize("release", ["1.34", "1.37"])
def test_wrong_pools_and_endless_searches_end_as_with_the_real_scheduler(release: str, tmp_path: Path) -> None:
    if of_release(SCHEDULER, release) is None:
        pytest.skip(f"no Kubernetes {release}")
    cluster = cluster_release(release)
    both = zip(_WRONG, ours(_WRONG, cluster), theirs(_WRONG, tmp_path, cluster), strict=True)
    assert [(case.number, mine, real) for case, mine, real in both if mine != real] == []


def test_wrong_pools_and_endless_searches_come_to_these_ends() -> None:
    old, new = ([each.words for each in ours(_WRONG, cluster_release(release))] for release in ("1.34", "1.37"))
    late = "timed out trying to allocate devices"
    assert [number for number, words in enumerate(old) if late in words] == [8, 9]
    assert [number for number, words in enumerate(new) if late in words] == [8]
    assert "SchedulerError" not in old[8]
    assert f"node b8-east: {late}" in new[8]
    assert "pool p is invalid: duplicate device name d0" in old[4]
    assert "1 invalid resource pools were encountered" in new[4]
    assert "resource pool b3.d.example.com/p is currently being updated" in old[3]
