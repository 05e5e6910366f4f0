"""Claims on a node: prepared before the sandbox, unprepared after the last container; in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.dra import LocalDraLink, LocalDraNode
from mews.kube.api.objects import Object, name_of, phase_of
from mews.kube.api.resource_claims import DELETE_PROTECTION
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.dra.driver import DriverComponent, DriverError
from mews.kube.dra.port import ClaimReference
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.dra.claim_cache import cache_from, checkpoint_text
from mews.kube.emulated.kubelet.dra.errors import DraCheckpointError
from mews.kube.emulated.kubelet.dra.state_store import FileDraState, MemoryDraState
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import Machine
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease, cluster_release

NODE, DRIVER = "n1", "fan.example.com"


class Fans:
    """The driver of the helper's docstring; ``fails`` says why not."""

    name = DRIVER

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.fails = ""
        self.count = 2

    async def devices(self) -> Sequence[Mapping[str, Any]]:
        return [{"name": f"fan-{n}"} for n in range(self.count)]

    async def prepare(self, claim: Object, results: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        self.calls.append(("prepare", name_of(claim)))
        if self.fails:
            raise DriverError(self.fails)
        own = {each["device"]: {"env": [f"{each['request'].upper()}={each['device']}"]} for each in results}
        return {"containerEdits": {"env": ["FANS=on"]}, "devices": own}

    async def unprepare(self, claim: ClaimReference) -> None:
        self.calls.append(("unprepare", claim.name))
        if self.fails:
            raise DriverError(self.fails)


class Node:
    """A node with a kubelet and a driver; claims are allocated by hand."""

    def __init__(self, release: ClusterRelease = STANDARD) -> None:
        self.clock = virtual_clock()
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store"), attended=True, release=release))
        self.dra, self.state, self.fans = LocalDraNode(), MemoryDraState(), Fans()
        pace = Pace()
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.machine = Machine(
            NodeSpec(NODE),
            Containerd(self.clock, stream(1, "containerd"), simulated=SimulatedRuntime(pace)),
            LocalKubeletFolder(),
            MemoryCheckpoint(),
            load_images(),
            pace,
            note=lambda event, **fields: self.lines.append((event, fields)),
            dra=self.dra,
            dra_state=self.state,
        )
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.link: LocalDraLink | None = None

    def context(self, name: str) -> Context:
        return Context(self.kube, self.clock, stream(1, name), logging.getLogger(name))

    def start_kubelet(self) -> None:
        self.tasks["kubelet"] = asyncio.create_task(self.machine.kubelet(self.context("kubelet")).run())

    def start_driver(self) -> None:
        self.link = self.dra.link()
        component = DriverComponent(self.context("driver"), self.fans, link=self.link, node=NODE)
        self.tasks["driver"] = asyncio.create_task(component.run())

    async def stop(self, name: str) -> None:
        task = self.tasks.pop(name)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def kill_driver(self) -> None:
        """As kill -9 does: the socket's file stays."""
        assert self.link is not None
        served = self.dra.sockets()
        self.link.kill()
        await self.stop("driver")
        for path, socket in served.items():
            self.dra.put(path, socket)

    async def claim(self, name: str, *, devices: Sequence[str] = ("fan-0",), pods: Sequence[Object] = ()) -> None:
        """An allocated claim, reserved for those pods."""
        requests = [{"name": f"r{n}", "exactly": {"deviceClassName": "k"}} for n in range(len(devices))]
        body = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}
        made = await self.kube.create(RESOURCE_CLAIMS, body, namespace="default")
        made["metadata"]["finalizers"] = [DELETE_PROTECTION]
        made = await self.kube.replace(RESOURCE_CLAIMS, made)
        results = [
            {"request": f"r{n}", "driver": DRIVER, "pool": NODE, "device": each} for n, each in enumerate(devices)
        ]
        status: dict[str, Any] = {"allocation": {"devices": {"results": results}}}
        made = await self.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")
        for pod in pods:
            await self.reserve(name, pod)

    async def reserve(self, name: str, pod: Object) -> None:
        claim = await self.kube.get(RESOURCE_CLAIMS, name, namespace="default")
        entry = {"resource": "pods", "name": name_of(pod), "uid": pod["metadata"]["uid"]}
        status = {**claim["status"], "reservedFor": [*claim["status"].get("reservedFor", ()), entry]}
        await self.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")

    async def pod(self, name: str, claim: str, *, uses: Mapping[str, Any] | None = None, **spec: Any) -> Object:
        container = {"name": "m", "image": "mews/gpu-hold", "resources": {"claims": [uses or {"name": "e"}]}}
        claims = [{"name": "e", "resourceClaimName": claim}]
        body = {"nodeName": NODE, "containers": [container], "resourceClaims": claims, **spec}
        return await self.kube.create(PODS, {"metadata": {"name": name}, "spec": body}, namespace="default")

    async def phase(self, name: str) -> str:
        return phase_of(await self.kube.get(PODS, name, namespace="default"))

    async def why(self) -> list[str]:
        events = (await self.kube.list(EVENTS, namespace="default")).items
        return [each["message"] for each in events if each["reason"] == "FailedPrepareDynamicResources"]

    def env(self) -> list[dict[str, str]]:
        return [fields["env"] for event, fields in self.lines if event == "container-started"]

    def held(self) -> list[tuple[str, int]]:
        """(claim, pods) as the checkpoint says."""
        return [(info.name, len(info.pods)) for info in cache_from(self.state.text).claims.values()]

    async def delete(self, name: str, grace_s: int | None = None) -> None:
        await self.kube.delete(PODS, name, namespace="default", options=DeleteOptions(grace_period_s=grace_s))


def play(story: Callable[[Node], Awaitable[None]], release: ClusterRelease = STANDARD) -> None:
    async def main() -> None:
        node = Node(release)
        await node.kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace="default")
        await node.kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {}})
        node.start_kubelet()
        await rest(10)
        node.start_driver()
        await rest(5)
        try:
            await story(node)
        finally:
            for name in list(node.tasks):
                await node.stop(name)

    run_virtual(main)


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
