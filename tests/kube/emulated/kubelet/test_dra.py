"""Claims on a node: prepared before the sandbox, unprepared after the last container; in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.objects import name_of
from mews.kube.api.resources import (
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from mews.kube.client.port import Patch
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.dra.claim_cache import cache_from, checkpoint_text
from mews.kube.emulated.kubelet.dra.errors import DraCheckpointError
from mews.kube.emulated.kubelet.dra.state_store import FileDraState
from mews.kube.releases.cluster_release import cluster_release
from tests.kube.emulated.kubelet.dra_node import DRIVER, NODE, Node, play


def test_a_claim_is_prepared_shown_to_its_container_and_given_up_with_its_pod() -> None:
    async def story(node: Node) -> None:
        pod = await node.pod("p", "c")
        await node.claim("c", devices=("fan-0", "fan-1"), pods=[pod])
        await rest(95)
        assert await node.phase("p") == "Running"
        assert node.env() == [{"FANS": "on", "R0": "fan-0", "R1": "fan-1"}]
        assert node.held() == [("c", 1)]
        await node.delete("p")
        await rest(60)
        assert node.fans.calls == [("prepare", "c"), ("unprepare", "c")]
        assert (node.held(), node.dra.files()) == ([], {})

    play(story)


def test_a_container_that_names_one_request_gets_its_devices_alone() -> None:
    async def story(node: Node) -> None:
        pod = await node.pod("p", "c", uses={"name": "e", "request": "r1"})
        await node.claim("c", devices=("fan-0", "fan-1"), pods=[pod])
        await rest(95)
        assert node.env() == [{"FANS": "on", "R1": "fan-1"}]

    play(story)


def test_each_container_gets_the_devices_of_its_own_extended_resources() -> None:
    async def story(node: Node) -> None:
        limits = {"limits": {"example.com/fan": "1"}}
        containers = [{"name": name, "image": "mews/gpu-hold", "resources": limits} for name in ("a", "b")]
        containers.append({"name": "without", "image": "mews/gpu-hold"})
        body = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
        pod = await node.kube.create(PODS, body, namespace="default")
        await node.claim("c", devices=("fan-0", "fan-1"), pods=[pod])
        mappings = [
            {"containerName": name, "resourceName": "example.com/fan", "requestName": f"r{n}"}
            for n, name in enumerate(("a", "b"))
        ]
        noted = {"requestMappings": mappings, "resourceClaimName": "c"}
        await node.kube.patch(
            PODS,
            "p",
            {"status": {"extendedResourceClaimStatus": noted}},
            kind=Patch.MERGE,
            namespace="default",
            subresource="status",
        )
        await node.kube.bind("default", "p", NODE)
        await rest(95)
        assert node.env() == [{"FANS": "on", "R0": "fan-0"}, {"FANS": "on", "R1": "fan-1"}, {}]
        await node.delete("p")
        await rest(60)
        assert node.fans.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story, cluster_release("1.37"))


def test_two_pods_share_a_claim_that_is_prepared_once() -> None:
    async def story(node: Node) -> None:
        pods = [await node.pod("p", "c"), await node.pod("q", "c")]
        await node.claim("c", pods=pods)
        await rest(200)
        assert [await node.phase(name) for name in ("p", "q")] == ["Running", "Running"]
        assert node.held() == [("c", 2)]
        await node.delete("p")
        await rest(60)
        assert node.fans.calls == [("prepare", "c")]
        await node.delete("q")
        await rest(60)
        assert node.fans.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_what_keeps_a_pod_from_its_claim_is_said_and_tried_again() -> None:
    async def story(node: Node) -> None:
        pod = await node.pod("p", "c")
        await rest(5)
        assert await node.why() == [
            "Failed to prepare dynamic resources: prepare dynamic resources: fetch ResourceClaim c: "
            'resourceclaims.resource.k8s.io "c" not found'
        ]
        await node.claim("c")
        await rest(95)
        assert (await node.why())[-1].endswith(f"is not allowed to use ResourceClaim c ({await _uid(node)})")
        await node.reserve("c", pod)
        node.fans.fails = "no air"
        await rest(95)
        assert (await node.why())[-1].endswith("NodePrepareResources failed for ResourceClaim c: no air")
        assert await node.phase("p") == "Pending"
        node.fans.fails = ""
        await rest(95)
        assert await node.phase("p") == "Running"

    play(story)


async def _uid(node: Node) -> str:
    return str((await node.kube.get(RESOURCE_CLAIMS, "c", namespace="default"))["metadata"]["uid"])


def test_a_pod_stays_until_its_claim_is_unprepared() -> None:
    async def story(node: Node) -> None:
        await node.claim("c", pods=[await node.pod("p", "c")])
        await rest(95)
        node.fans.fails = "stuck"
        await node.delete("p")
        await rest(120)
        assert (await node.kube.get(PODS, "p", namespace="default"))["metadata"]["deletionTimestamp"]
        assert node.held() == [("c", 1)]
        node.fans.fails = ""
        await rest(30)
        assert (await node.kube.list(PODS, namespace="default")).items == []

    play(story)


def test_after_a_forced_deletion_the_device_is_given_up_before_another_claim_has_it() -> None:
    async def story(node: Node) -> None:
        await node.claim("c", pods=[await node.pod("p", "c")])
        await rest(95)
        node.fans.fails = "stuck"
        await node.delete("p", grace_s=0)
        await node.claim("d", pods=[await node.pod("q", "d")])
        await rest(30)
        node.fans.fails = ""
        await rest(1)
        assert await node.phase("q") == "Pending"
        await rest(120)
        assert node.held() == [("d", 1)]
        assert await node.phase("q") == "Running"
        order = [call for call in node.fans.calls if call in (("unprepare", "c"), ("prepare", "d"))]
        assert order[-1] == ("prepare", "d")

    play(story)


def test_a_kubelet_that_starts_anew_prepares_nothing_twice_and_finds_what_is_gone() -> None:
    async def story(node: Node) -> None:
        await node.claim("c", pods=[await node.pod("p", "c")])
        await rest(95)
        await node.stop("kubelet")
        await node.delete("p", grace_s=0)
        node.start_kubelet()
        await rest(120)
        assert node.fans.calls == [("prepare", "c"), ("unprepare", "c")]
        assert node.held() == []

    play(story)


async def _slices(node: Node) -> int:
    return len((await node.kube.list(RESOURCE_SLICES)).items)


def test_slices_of_a_driver_that_is_gone_are_wiped_after_half_a_minute() -> None:
    async def story(node: Node) -> None:
        assert await _slices(node) == 1
        await node.kill_driver()
        await rest(28)
        assert await _slices(node) == 1
        await rest(3)
        assert await _slices(node) == 0
        node.start_driver()
        await rest(5)
        assert await _slices(node) == 1
        await node.stop("driver")
        await rest(15)
        node.start_driver()
        await rest(60)
        assert await _slices(node) == 1

    play(story)


def test_a_kubelet_that_starts_wipes_the_slices_of_its_node_alone() -> None:
    async def story(node: Node) -> None:
        pool = {"name": "w", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": "other", "pool": pool, "devices": []}
        await node.kube.create(RESOURCE_SLICES, {"metadata": {"name": "other"}, "spec": spec})
        await node.stop("kubelet")
        before = (await node.kube.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={NODE}")).items
        node.start_kubelet()
        await rest(20)
        after = (await node.kube.list(RESOURCE_SLICES, field_selector=f"spec.nodeName={NODE}")).items
        assert name_of(before[0]) != name_of(after[0])
        assert await _slices(node) == 2

    play(story)


def test_a_driver_owns_its_slice_by_the_node_and_changes_it_in_place() -> None:
    async def story(node: Node) -> None:
        (before,) = (await node.kube.list(RESOURCE_SLICES)).items
        uid = (await node.kube.get(NODES, NODE))["metadata"]["uid"]
        assert [owner["uid"] for owner in before["metadata"]["ownerReferences"]] == [uid]
        assert name_of(before).startswith(f"{NODE}-{DRIVER}-")
        node.fans.count = 3
        await node.stop("driver")
        node.start_driver()
        await rest(5)
        (after,) = (await node.kube.list(RESOURCE_SLICES)).items
        assert name_of(after) == name_of(before)
        assert len(after["spec"]["devices"]) == 3

    play(story)


# The checkpoint


@pytest.mark.parametrize(("entries", "checksum"), [(None, 4010664294), ([], 2361995144)])
def test_checkpoints_are_those_of_a_real_kubelet(entries: list[dict[str, Any]] | None, checksum: int) -> None:
    assert json.loads(checkpoint_text(entries))["Checksum"] == checksum


@pytest.mark.parametrize("text", ["{", "{}", '{"Data":"{}","Checksum":1}', checkpoint_text(None)[:-3]])
def test_a_torn_checkpoint_keeps_a_kubelet_from_starting(text: str) -> None:
    with pytest.raises(DraCheckpointError, match="create ResourceClaim cache"):
        cache_from(text)


def test_a_checkpoint_comes_back_with_nothing_prepared() -> None:
    async def story(node: Node) -> None:
        await node.claim("c", pods=[await node.pod("p", "c")])
        await rest(95)
        cache = cache_from(node.state.text)
        assert cache.text() == node.state.text
        assert [info.prepared for info in cache.claims.values()] == [False]

    play(story)


def test_the_file_is_replaced_as_a_whole_and_its_owners_alone(tmp_path: Path) -> None:
    store = FileDraState(tmp_path)
    assert store.load() == ""
    for text in (checkpoint_text([]), checkpoint_text(None)):
        store.save(text)
        assert store.load() == text
    assert [path.name for path in tmp_path.iterdir()] == ["dra_manager_state"]
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.path.write_bytes(b"\xff")
    with pytest.raises(DraCheckpointError, match="create ResourceClaim cache"):
        store.load()
