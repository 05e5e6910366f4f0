"""The health of devices by claims, from the driver's stream to the pod's status; and podresources of claims."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from mews.kube.api.resources import PODS, RESOURCE_SLICES
from mews.kube.clock import Pace, rest
from mews.kube.deviceplugin.port import ClaimDevice, DynamicResource, PluginError
from mews.kube.dra.driver import unwell
from mews.kube.dra.port import ClaimReference, DeviceHealth, PreparedClaim, PreparedDevice
from mews.kube.emulated.kubelet.dra.claim_cache import ClaimCache, ClaimInfo, checkpoint_text
from mews.kube.emulated.kubelet.dra.health_cache import MOST_DEVICES, HealthCache
from mews.kube.emulated.kubelet.dra.health_status import with_health
from mews.kube.emulated.kubelet.dra.state_store import MemoryDraState
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease, cluster_release
from tests.kube.emulated.kubelet.dra_node import DRIVER, NODE, Fans, MonitoredFans, Node, play

LATEST = cluster_release("1.37")
D = "d.example.com"


async def shown(node: Node, pod: str = "p") -> list[tuple[str, str, str]]:
    """(device, health, message) of a pod's first container."""
    status = (await node.kube.get(PODS, pod, namespace="default"))["status"]["containerStatuses"][0]
    resources = [each for entry in status.get("allocatedResourcesStatus") or () for each in entry["resources"]]
    return [(each["resourceID"].rpartition("-fan-")[2], each["health"], each.get("message", "")) for each in resources]


async def running(node: Node, *, devices: Sequence[str] = ("fan-0", "fan-1")) -> None:
    await node.claim("c", devices=devices, pods=[await node.pod("p", "c")])
    await rest(95)


# In the pod's status


def test_the_status_of_a_pod_follows_the_health_of_its_devices() -> None:
    fans = MonitoredFans()

    async def story(node: Node) -> None:
        await running(node)
        assert await shown(node) == [("0", "Healthy", ""), ("1", "Healthy", "")]
        fans.conditions["fan-1"] = unwell("it does not turn")
        await rest(2)
        assert await shown(node) == [("0", "Healthy", ""), ("1", "Unhealthy", "it does not turn")]
        assert ("device-health", {"driver": DRIVER, "device": f"{NODE}/fan-1", "health": "Unhealthy"}) in node.lines

    play(story, LATEST, fans)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (STANDARD, []),
        (cluster_release("1.35"), []),
        (cluster_release("1.36"), [("0", "Unhealthy", "worn")]),
        (cluster_release("1.34", {"ResourceHealthStatus": True}), [("0", "Unhealthy", "")]),
        (cluster_release("1.37", {"ResourceHealthStatusMessage": False}), [("0", "Unhealthy", "")]),
        (cluster_release("1.37", {"ResourceHealthStatus": False, "ResourceHealthStatusMessage": False}), []),
    ],
)
def test_the_feature_gates_say_what_a_pod_shows(release: ClusterRelease, expected: list[tuple[str, str, str]]) -> None:
    fans = MonitoredFans()
    fans.conditions = {"fan-0": unwell("worn")}

    async def story(node: Node) -> None:
        await running(node, devices=["fan-0"])
        assert await shown(node) == expected
        assert bool(node.health_state.text) is bool(expected)

    play(story, release, fans)


def test_a_driver_without_health_leaves_its_devices_unknown() -> None:
    async def story(node: Node) -> None:
        await running(node, devices=["fan-0"])
        assert await shown(node) == [("0", "Unknown", "")]

    play(story, LATEST, Fans())


def test_a_device_that_the_driver_leaves_out_is_unknown_after_half_a_minute() -> None:
    fans = MonitoredFans()

    async def story(node: Node) -> None:
        await running(node)
        del fans.conditions["fan-1"]
        await rest(25)
        assert (await shown(node))[1] == ("1", "Healthy", "")
        await rest(20)
        assert await shown(node) == [("0", "Healthy", ""), ("1", "Unknown", "")]

    play(story, LATEST, fans)


def test_what_a_dead_driver_reported_is_forgotten_and_seen_at_the_next_sync() -> None:
    fans = MonitoredFans()

    async def story(node: Node) -> None:
        await running(node, devices=["fan-0"])
        await node.kill_driver()
        await rest(91)
        assert await shown(node) == [("0", "Unknown", "")]
        node.start_driver()
        await rest(8)
        assert await shown(node) == [("0", "Healthy", "")]

    play(story, LATEST, fans)


def test_health_is_there_again_after_a_kubelets_restart() -> None:
    fans = MonitoredFans()
    fans.conditions["fan-0"] = unwell("worn")

    async def story(node: Node) -> None:
        await running(node, devices=["fan-0"])
        await node.stop("kubelet")
        kept = json.loads(node.health_state.text)[DRIVER]["Devices"][f"{NODE}/fan-0"]
        assert (kept["Health"], kept["Message"], kept["HealthCheckTimeout"]) == ("Unhealthy", "worn", 30 * 10**9)
        fans.conditions["fan-0"] = unwell("torn")
        node.start_kubelet()
        await rest(10)
        assert await shown(node) == [("0", "Unhealthy", "torn")]

    play(story, LATEST, fans)


class Reporter:
    """A driver whose stream is the test's: each item is a report, None ends the stream, an error is raised."""

    reports_health = True

    def __init__(self) -> None:
        self.items: asyncio.Queue[tuple[DeviceHealth, ...] | PluginError | None] = asyncio.Queue()
        self.opened = 0

    async def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        self.opened += 1
        while (item := await self.items.get()) is not None:
            if isinstance(item, PluginError):
                raise item
            yield item

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        return {each.uid: PreparedClaim((PreparedDevice("pool", "gpu", ()),)) for each in claims}

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        return {each.uid: "" for each in claims}


@pytest.mark.parametrize(
    ("end", "opened"),
    [
        (None, 2),
        (PluginError("Internal", "boom"), 2),
        (PluginError("Unimplemented", "unknown service"), 1),
    ],
)
def test_a_stream_that_ends_is_opened_again_unless_there_is_no_such_call(end: PluginError | None, opened: int) -> None:
    async def story(node: Node) -> None:
        reporter = Reporter()
        await node.dra.link().serve(D, reporter)
        await rest(2)
        reporter.items.put_nowait((DeviceHealth("pool", "gpu", "Healthy"),))
        await rest(1)
        assert json.loads(node.health_state.text)[D]["Devices"]["pool/gpu"]["Health"] == "Healthy"
        reporter.items.put_nowait(end)
        await rest(4)
        assert (json.loads(node.health_state.text), reporter.opened) == ({}, 1)
        await rest(2)
        assert reporter.opened == opened

    play(story, LATEST)


def test_health_is_reported_again_before_a_kubelet_would_forget_it() -> None:
    async def story(node: Node) -> None:
        reports = node.component.watch_health()
        first, at_s = await anext(reports), asyncio.get_running_loop().time()
        assert await anext(reports) == first
        assert asyncio.get_running_loop().time() - at_s == 10.0

    play(story, LATEST, MonitoredFans())


def test_what_an_unregistered_driver_reported_is_forgotten() -> None:
    async def story(node: Node) -> None:
        reporter = Reporter()
        await node.dra.link().serve(D, reporter)
        await rest(2)
        reporter.items.put_nowait((DeviceHealth("pool", "gpu", "Healthy"),))
        await rest(1)
        path = f"{D}-reg.sock"
        node.dra.take(path, node.dra.sockets()[path])
        await rest(2)
        assert json.loads(node.health_state.text) == {}

    play(story, LATEST)


# The cache (pkg/kubelet/cm/dra/healthinfo_test.go)


class Time:
    def __init__(self, store: MemoryDraState | None = None) -> None:
        self.now_s = 1_000.0
        self.store = store or MemoryDraState()
        self.cache = self.restarted()

    def restarted(self) -> HealthCache:
        return HealthCache(lambda: self.now_s, Pace(), self.store, logging.getLogger("test"))

    def health(self, device: str = "a") -> str:
        return self.cache.of(D, "p", device).health


def healthy(device: str = "a", **more: Any) -> DeviceHealth:
    return DeviceHealth("p", device, "Healthy", **more)


@pytest.mark.parametrize(("said_s", "believed_s"), [(0.0, 30.0), (5.0, 5.0), (100.0, 100.0)])
def test_a_report_is_believed_for_as_long_as_it_says(said_s: float, believed_s: float) -> None:
    time = Time()
    time.cache.update(D, [healthy(timeout_s=said_s)])
    time.now_s += believed_s
    assert time.health() == "Healthy"
    time.now_s += 0.1
    assert time.health() == "Unknown"


def test_only_what_is_another_now_is_news() -> None:
    time = Time()
    assert time.cache.update(D, [healthy(), healthy("b")]) == [healthy(), healthy("b")]
    assert time.cache.update(D, [healthy(), healthy("b")]) == []
    worse = DeviceHealth("p", "b", "Unhealthy", "worn")
    assert time.cache.update(D, [healthy(), worse]) == [worse]
    assert time.cache.update(D, [healthy(message="hot"), worse]) == [healthy(message="hot")]
    assert time.cache.update(D, [healthy(message="hot", timeout_s=9.0), worse]) == [
        healthy(message="hot", timeout_s=9.0)
    ]


def test_what_a_report_leaves_out_becomes_unknown_once_and_is_forgotten() -> None:
    time = Time()
    time.cache.update(D, [healthy(), healthy("b", message="hot")])
    time.now_s += 20
    assert time.cache.update(D, [healthy()]) == []
    time.now_s += 20
    assert time.cache.update(D, [healthy()]) == [DeviceHealth("p", "b", "Unknown")]
    assert time.cache.update(D, [healthy()]) == []
    assert list(json.loads(time.store.text)[D]["Devices"]) == ["p/a"]


def test_an_unknown_device_that_is_left_out_is_forgotten_without_news() -> None:
    time = Time()
    time.cache.update(D, [healthy(), DeviceHealth("p", "b")])
    time.now_s += 31
    assert time.cache.update(D, [healthy()]) == []
    assert list(json.loads(time.store.text)[D]["Devices"]) == ["p/a"]


def test_a_driver_cannot_fill_the_cache_without_bound() -> None:
    time = Time()
    time.cache.update(D, [healthy(str(n)) for n in range(MOST_DEVICES + 5)])
    assert [time.health(str(n)) for n in (MOST_DEVICES - 1, MOST_DEVICES)] == ["Healthy", "Unknown"]
    time.cache.update(D, [DeviceHealth("p", "0", "Unhealthy")])
    assert time.health("0") == "Unhealthy"


@pytest.mark.parametrize(
    ("message", "kept"),
    [("m" * 1024, "m" * 1024), ("m" * 1025, "m" * 1021 + "..."), ("é" * 600, "é" * 510 + "...")],
)
def test_long_messages_are_shortened(message: str, kept: str) -> None:
    time = Time()
    time.cache.update(D, [healthy(message=message)])
    assert time.cache.of(D, "p", "a").message == kept


def test_the_file_brings_reports_back_with_their_age() -> None:
    time = Time()
    time.cache.update(D, [healthy(message="hot", timeout_s=10.0)])
    time.now_s += 9
    time.cache = time.restarted()
    assert time.cache.of(D, "p", "a") == healthy(message="hot", timeout_s=10.0)
    time.now_s += 2
    assert time.health() == "Unknown"


@pytest.mark.parametrize("text", ["{", "[]", '{"d.example.com":{}}', '{"d.example.com":{"Devices":{"p/a":{}}}}'])
def test_a_torn_file_leaves_the_cache_empty(text: str) -> None:
    store = MemoryDraState()
    store.text = text
    assert Time(store).health() == "Unknown"


def test_a_driver_that_is_gone_takes_its_own_reports_alone() -> None:
    time = Time()
    time.cache.update(D, [healthy()])
    time.cache.update("e.example.com", [healthy()])
    time.cache.clear("e.example.com")
    assert time.health() == "Healthy"
    assert list(json.loads(time.store.text)) == [D]


# Which devices a container shows


def entry(requests: Sequence[Mapping[str, str]], devices: Sequence[PreparedDevice]) -> list[tuple[str, list[str]]]:
    """What a container with these ``resources.claims`` shows: (name, resource ids)."""
    cache = ClaimCache()
    cache.add(ClaimInfo("u", "made", "default", drivers={D: tuple(devices)}))
    pod: dict[str, Any] = {
        "metadata": {"namespace": "default", "name": "p", "uid": "q"},
        "spec": {
            "containers": [{"name": "m", "resources": {"claims": list(requests)}}],
            "initContainers": [{"name": "i", "resources": {"claims": list(requests)}}],
            "resourceClaims": [{"name": name, "resourceClaimTemplateName": "t"} for name in ("e", "late")],
        },
        "status": {"resourceClaimStatuses": [{"name": "e", "resourceClaimName": "made"}]},
    }
    status = {"containerStatuses": [{"name": "m"}], "initContainerStatuses": [{"name": "i"}]}
    after = with_health(pod, status, cache, lambda *key: DeviceHealth("p", "d"), messages=True)
    assert after["initContainerStatuses"] == [{"name": "i"}]
    found = after["containerStatuses"][0].get("allocatedResourcesStatus") or ()
    return [(each["name"], [device["resourceID"] for device in each["resources"]]) for each in found]


ONE, TWO = PreparedDevice("p", "one", ("r",), ("v/c=1", "v/c=common")), PreparedDevice("p", "two", ("s",))


@pytest.mark.parametrize(
    ("requests", "devices", "expected"),
    [
        ([{"name": "e"}], [ONE, TWO], [("claim:e", ["v/c=1", f"{D}/p/two"])]),
        ([{"name": "e", "request": "s"}], [ONE, TWO], [("claim:e/s", [f"{D}/p/two"])]),
        ([{"name": "e", "request": "r/sub"}], [ONE, TWO], [("claim:e/r/sub", ["v/c=1"])]),
        ([{"name": "e", "request": "r"}, {"name": "e", "request": "s"}], [ONE, TWO],
         [("claim:e/r", ["v/c=1"]), ("claim:e/s", [f"{D}/p/two"])]),
        ([{"name": "e", "request": "x"}], [ONE, PreparedDevice("p", "any")], [("claim:e/x", [f"{D}/p/any"])]),
        ([{"name": "e"}], [ONE, ONE], [("claim:e", ["v/c=1"])]),
        ([{"name": "late"}], [ONE], []),
        ([], [ONE], []),
    ],
)  # fmt: skip
def test_a_container_shows_the_devices_of_its_requests(
    requests: Sequence[Mapping[str, str]], devices: Sequence[PreparedDevice], expected: list[tuple[str, list[str]]]
) -> None:
    assert entry(requests, devices) == expected


@pytest.mark.parametrize(("messages", "expected"), [(True, {"message": "hot"}), (False, {})])
def test_a_release_without_messages_shows_none(messages: bool, expected: dict[str, str]) -> None:
    cache = ClaimCache()
    cache.add(ClaimInfo("u", "c", "default", drivers={D: (TWO,)}))
    claims = [{"name": "e", "resourceClaimName": "c"}]
    spec = {"containers": [{"name": "m", "resources": {"claims": [{"name": "e"}]}}], "resourceClaims": claims}
    pod: dict[str, Any] = {"metadata": {"namespace": "default"}, "spec": spec}
    health = DeviceHealth("p", "two", "Unhealthy", "hot")
    after = with_health(pod, {"containerStatuses": [{"name": "m"}]}, cache, lambda *key: health, messages=messages)
    (device,) = after["containerStatuses"][0]["allocatedResourcesStatus"][0]["resources"]
    assert device == {"resourceID": f"{D}/p/two", "health": "Unhealthy", **expected}


# podresources


def test_podresources_shows_the_claims_of_each_container() -> None:
    async def story(node: Node) -> None:
        resources = node.folder.pod_resources()
        pod = await node.pod("p", "c")
        await rest(5)
        assert [each.claims for each in await resources.list()] == [()]
        await node.claim("c", devices=("fan-0", "fan-1"), pods=[pod])
        await rest(95)
        uid = _claim_uid(node)
        ids = [f"k8s.{DRIVER}/claim={uid}-fan-{n}" for n in (0, 1)]
        devices = (
            ClaimDevice(DRIVER, NODE, "fan-0", (ids[0],)),
            ClaimDevice(DRIVER, NODE, "fan-1", (ids[0], ids[1])),
        )
        expected = (("m", (DynamicResource("c", "default", devices),)),)
        assert [each.claims for each in await resources.list()] == [expected]
        assert (await resources.get("p", "default")).claims == expected
        assert await resources.allocatable() == ()
        await node.delete("p")
        await rest(60)
        assert await resources.list() == ()

    play(story)


def _claim_uid(node: Node) -> str:
    (info,) = json.loads(json.loads(node.state.text)["Data"])["ClaimInfoStateList"]
    return str(info["ClaimUID"])


def test_podresources_shows_no_claims_without_its_gate() -> None:
    async def story(node: Node) -> None:
        await running(node)
        assert [each.claims for each in await node.folder.pod_resources().list()] == [()]

    play(story, cluster_release("1.34", {"KubeletPodResourcesDynamicResources": False}))


def test_one_request_of_a_claim_shows_the_whole_claim() -> None:
    async def story(node: Node) -> None:
        pod = await node.pod("p", "c", uses={"name": "e", "request": "r1"})
        await node.claim("c", devices=("fan-0", "fan-1"), pods=[pod])
        await rest(95)
        ((_, (claim,)),) = (await node.folder.pod_resources().get("p", "default")).claims
        assert [each.device for each in claim.devices] == ["fan-0", "fan-1"]

    play(story)


def test_podresources_shows_no_claims_of_a_container_where_one_is_not_known() -> None:
    async def story(node: Node) -> None:
        both = [{"name": "e", "resourceClaimName": "c"}, {"name": "f", "resourceClaimName": "d"}]
        pod = await node.pod("p", "c", resourceClaims=both, containers=[
            {"name": "m", "image": "mews/gpu-hold", "resources": {"claims": [{"name": "e"}, {"name": "f"}]}},
            {"name": "n", "image": "mews/gpu-hold", "resources": {"claims": [{"name": "e"}]}},
        ])  # fmt: skip
        for name, device in (("c", "fan-0"), ("d", "fan-1")):
            await node.claim(name, devices=[device], pods=[pod])
        await rest(95)
        resources = node.folder.pod_resources()

        async def claims() -> list[tuple[str, list[str]]]:
            entry = await resources.get("p", "default")
            return [(name, [each.claim for each in found]) for name, found in entry.claims]

        assert await claims() == [("m", ["c", "d"]), ("n", ["c"])]
        await node.stop("kubelet")
        entries = json.loads(json.loads(node.state.text)["Data"])["ClaimInfoStateList"]
        node.state.text = checkpoint_text([each for each in entries if each["ClaimName"] == "c"])
        node.start_kubelet()
        await rest(10)
        assert await claims() == [("n", ["c"])]

    play(story)


# The helper's slice


async def _slice(node: Node) -> Any:
    (found,) = (await node.kube.list(RESOURCE_SLICES)).items
    return found


BROKEN = {"key": "example.com/broken", "value": "1", "effect": "NoSchedule"}


@pytest.mark.parametrize("release", [STANDARD, LATEST])
def test_a_slice_is_written_once_whatever_the_api_makes_of_its_taints(release: ClusterRelease) -> None:
    async def story(node: Node) -> None:
        writes: list[Any] = []
        kube, replace = node.kube, node.kube.replace

        async def counted(resource: Any, body: Any, **options: Any) -> Any:
            writes.extend([body] if resource is RESOURCE_SLICES else [])
            return await replace(resource, body, **options)

        kube.replace = counted  # type: ignore[method-assign]
        node.fans.taints["fan-0"] = [BROKEN]
        await rest(30)
        assert ("taints" in (await _slice(node))["spec"]["devices"][0]) is (release is LATEST)
        assert len(writes) == 1

    play(story, release)


def test_a_taint_keeps_its_time_when_another_comes() -> None:
    async def story(node: Node) -> None:
        node.fans.taints["fan-0"] = [BROKEN]
        await rest(3)
        first = (await _slice(node))["spec"]["devices"][0]["taints"]
        await rest(30)
        node.fans.taints["fan-1"] = [BROKEN]
        await rest(3)
        after = (await _slice(node))["spec"]["devices"]
        assert after[0]["taints"] == first
        assert after[1]["taints"][0]["timeAdded"] > first[0]["timeAdded"]
        node.fans.taints["fan-0"] = [{**BROKEN, "value": "2"}]
        await rest(3)
        assert (await _slice(node))["spec"]["devices"][0]["taints"][0]["timeAdded"] > first[0]["timeAdded"]

    play(story, LATEST)
