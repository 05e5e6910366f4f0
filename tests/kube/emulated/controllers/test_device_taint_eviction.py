"""The device-taint-eviction-controller in virtual time (upstream device_taint_eviction_test.go)."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import NotFoundError, ServerError
from mews.kube.api.objects import Object, condition_of, is_deleting, name_of, seconds, timestamp, uid_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    EVENTS,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
    taint_rules_of,
)
from mews.kube.client.port import DeleteOptions, Patch
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.controllers.catalogue import DEVICE_TAINTS
from mews.kube.emulated.controllers.devicetaints.controller import RecentUids
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.releases.cluster_release import ClusterRelease, cluster_release
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.devices.gated_features import features_of
from tests.kube.emulated.controllers.telling import Mortal
from tests.kube.emulated.controllers.test_controllers import running

RELEASE = cluster_release("1.37")
OLD = cluster_release("1.34", {"DRADeviceTaints": True}, {"resource.k8s.io/v1alpha3": True})
RULES = taint_rules_of("v1")
TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}
NONE = {**TAINT, "effect": "None"}
EVICTED, SPARED = "Marking for deletion", "Cancelling deletion"


def tolerating(seconds_: int) -> dict[str, Any]:
    return {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds_}


class Calls:
    """The API as the controller reaches it: its calls about pods are counted, and ``before`` may act or fail first."""

    def __init__(self, kube: InProcessKube) -> None:
        self._kube = kube
        self.counted = Counter[str]()
        self.before: Callable[[str, int], Awaitable[None]] | None = None

    def __getattr__(self, verb: str) -> Any:
        if verb not in ("get", "patch", "delete"):
            return getattr(self._kube, verb)

        async def call(resource: Resource, *args: Any, **options: Any) -> Any:
            if resource == PODS:
                self.counted[verb] += 1
                if self.before is not None:
                    await self.before(verb, self.counted[verb])
            return await getattr(self._kube, verb)(resource, *args, **options)

        return call


class World:
    """A cluster, of 1.37 unless said, with that one controller."""

    def __init__(self, devices: DeviceFeatures | None = None, release: ClusterRelease = RELEASE) -> None:
        self.clock = virtual_clock()
        self.store = fresh_store(self.clock.now, stream(1, "store"), release=release)
        self.kube = InProcessKube(self.store)
        self.calls = Calls(self.kube)
        self.devices = features_of(release) if devices is None else devices
        self.rules = taint_rules_of(self.devices.taint_rules or "v1")

    def controller(self) -> Runnable:
        context = Context(self.calls, self.clock, stream(1, "controllers"), logging.getLogger("controllers"))  # type: ignore[arg-type]
        return ControllerManager(context, Pace(), controllers=[DEVICE_TAINTS], devices=self.devices)

    def stamp(self) -> str:
        return timestamp(self.clock.now())

    # ----------------------------------------------------------------------------------------------------------- making

    async def slice(self, *taints: Any, name: str = "s", generation: int = 1) -> None:
        """Publish gpu-0 with the taints, and gpu-1."""
        devices = [{"name": "gpu-0", **({"taints": list(taints)} if taints else {})}, {"name": "gpu-1"}]
        pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": "d", "pool": pool, "nodeName": "n", "devices": devices}
        body = {"metadata": {"name": name}, "spec": spec}
        try:
            current = await self.kube.get(RESOURCE_SLICES, name)
        except NotFoundError:
            await self.kube.create(RESOURCE_SLICES, body)
        else:
            await self.kube.replace(RESOURCE_SLICES, {**current, "spec": spec})

    async def rule(self, taint: Any = TAINT, name: str = "r", **selector: str) -> None:
        spec = {"deviceSelector": {"driver": "d", **selector}, "taint": taint}
        await self.kube.create(self.rules, {"metadata": {"name": name}, "spec": spec})

    async def pod(self, name: str = "p", *claims: str, namespace: str = "default", **spec: Any) -> Object:
        entries = [{"name": claim, "resourceClaimName": claim} for claim in claims or ("c",)]
        body = {"containers": [{"name": "m", "image": "x"}], "resourceClaims": entries, "nodeName": "n", **spec}
        return await self.kube.create(PODS, {"metadata": {"name": name}, "spec": body}, namespace=namespace)

    async def claim(
        self, *users: Object, name: str = "c", device: str = "gpu-0", tolerations: Any = (), namespace: str = "default"
    ) -> None:
        """Make an allocated claim that those pods may use."""
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "k"}}]}}
        made = await self.kube.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec}, namespace=namespace)
        result: dict[str, Any] = {"request": "r", "driver": "d", "pool": "p", "device": device}
        if tolerations:
            result["tolerations"] = list(tolerations)
        reserved = [{"resource": "pods", "name": name_of(user), "uid": uid_of(user)} for user in users]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
        await self.kube.replace(RESOURCE_CLAIMS, {**made, "status": status}, subresource="status")

    async def delete(self, resource: Resource, name: str) -> None:
        namespace = "default" if resource.namespaced else None
        options = DeleteOptions(grace_period_s=0)
        await self.kube.delete(resource, name, namespace=namespace, options=options)

    # ---------------------------------------------------------------------------------------------------------- looking

    async def get(self, name: str = "p", namespace: str = "default") -> Object:
        return await self.kube.get(PODS, name, namespace=namespace)

    async def deleting(self, name: str = "p") -> bool:
        return is_deleting(await self.get(name))

    async def events(self) -> list[tuple[str, str, int]]:
        found = (await self.kube.list(EVENTS)).items
        return sorted((event["involvedObject"]["name"], event["message"], event["count"]) for event in found)

    async def condition(self, name: str = "r") -> tuple[str, str, str]:
        """Reason, message and time."""
        found = condition_of(await self.kube.get(RULES, name), "EvictionInProgress") or {}
        return found.get("reason", ""), found.get("message", ""), found.get("lastTransitionTime", "")


def play(
    story: Callable[[World], Awaitable[None]],
    devices: DeviceFeatures | None = None,
    release: ClusterRelease = RELEASE,
) -> None:
    async def main() -> None:
        world = World(devices, release)
        async with running(world.controller()):
            await rest(0.5)  # the time of a taint has no fractions
            await story(world)

    run_virtual(main)


# ------------------------------------------------------------------------------------------------------------- evicting


def test_a_pod_is_evicted_with_one_call_of_each_kind_in_the_words_of_upstream() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod())
        await world.slice(TAINT)
        await rest(1)
        pod = await world.get()
        assert is_deleting(pod)
        assert condition_of(pod, "DisruptionTarget") == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByDeviceTaintManager",
            "message": "Device Taint manager: deleting due to NoExecute taint",
            "lastProbeTime": None,
            "lastTransitionTime": pod["metadata"]["creationTimestamp"],
        }
        assert world.calls.counted == {"get": 1, "patch": 1, "delete": 1}
        [event] = (await world.kube.list(EVENTS, namespace="default")).items
        about = {"kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "p", "uid": uid_of(pod)}
        assert event["involvedObject"] == about
        assert (event["type"], event["reason"]) == ("Normal", "DeviceTaintManagerEviction")
        assert event["source"] == {"component": "device-taint-eviction-controller"}
        assert await world.events() == [("p", EVICTED, 1)]

    play(story)


@pytest.mark.parametrize("source", ["slice", "rule"])
@pytest.mark.parametrize("order", list(itertools.permutations(("pod", "claim", "taint"))))
@pytest.mark.parametrize("started", [False, True])
def test_the_order_in_which_things_come_does_not_matter(order: Sequence[str], source: str, started: bool) -> None:
    async def main() -> None:
        world = World()
        pod = await world.pod(nodeName=None)
        controller = asyncio.create_task(world.controller().run()) if started else None
        await rest(0.5)
        for each in order:
            if each == "pod":
                await world.kube.bind("default", "p", "n")
            elif each == "claim":
                await world.claim(pod)
            else:
                await (world.slice(TAINT) if source == "slice" else world.rule())
            await rest(0.1 if started else 0)
        controller = controller or asyncio.create_task(world.controller().run())
        await rest(1)
        assert await world.events() == [("p", EVICTED, 1)]
        assert await world.deleting()
        controller.cancel()
        await asyncio.gather(controller, return_exceptions=True)

    run_virtual(main)


def test_a_slice_of_a_newer_generation_hides_a_taint_until_it_is_deleted() -> None:
    async def story(world: World) -> None:
        await world.slice(name="newer", generation=2)
        await world.slice(TAINT)
        await world.claim(await world.pod())
        await rest(1)
        assert not await world.deleting()
        await world.delete(RESOURCE_SLICES, "newer")
        await rest(1)
        assert await world.deleting()

    play(story)


def test_a_claim_that_is_made_anew_for_the_pod_evicts_it() -> None:
    async def story(world: World) -> None:
        pod = await world.pod()
        await world.claim()
        await world.slice(TAINT)
        await rest(1)
        await world.delete(RESOURCE_CLAIMS, "c")
        await world.claim(pod)
        await rest(1)
        assert await world.events() == [("p", EVICTED, 1)]

    play(story)


def test_a_pod_that_takes_the_name_of_another_is_judged_by_itself() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(5)])
        await world.slice(TAINT)
        await rest(1)
        await world.delete(PODS, "p")
        await world.pod()
        await rest(10)
        assert not await world.deleting()
        assert await world.events() == []

    play(story)


def test_a_tolerated_taint_evicts_when_its_time_is_over_and_not_before() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(30), tolerating(60)])
        since_s = world.clock.now()
        await world.slice({**TAINT, "timeAdded": world.stamp()})
        await rest(29)
        assert world.calls.counted == {}
        await rest(1)
        assert await world.deleting()
        assert world.clock.now() - since_s == pytest.approx(30)

    play(story)


def test_a_taint_whose_toleration_does_not_fit_any_longer_evicts_at_once() -> None:
    async def story(world: World) -> None:
        fitting = {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 3600}
        await world.claim(await world.pod(), tolerations=[fitting])
        await world.slice(TAINT)
        await rest(1)
        assert not await world.deleting()
        await world.slice({**TAINT, "value": "w"})
        await rest(1)
        assert await world.deleting()

    play(story)


# ----------------------------------------------------------------------------------------------------------- cancelling


async def _untainted(world: World) -> None:
    await world.slice()


async def _softened(world: World) -> None:
    await world.slice({**TAINT, "effect": "NoSchedule"})


async def _moved(world: World) -> None:
    await world.delete(RESOURCE_SLICES, "s")
    await world.slice(name="newer", generation=2)


async def _unpublished(world: World) -> None:
    await world.delete(RESOURCE_SLICES, "s")


async def _deallocated(world: World) -> None:
    claim = await world.kube.get(RESOURCE_CLAIMS, "c", namespace="default")
    await world.kube.replace(RESOURCE_CLAIMS, {**claim, "status": {}}, subresource="status")


async def _unclaimed(world: World) -> None:
    await world.delete(RESOURCE_CLAIMS, "c")


async def _released(world: World) -> None:
    claim = await world.kube.get(RESOURCE_CLAIMS, "c", namespace="default")
    status = {"allocation": claim["status"]["allocation"]}
    await world.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")


@pytest.mark.parametrize(
    "undo",
    [_untainted, _softened, _moved, _unpublished, _deallocated, _unclaimed, _released],
    ids=lambda undo: undo.__name__,
)
def test_an_eviction_whose_cause_is_gone_is_cancelled(undo: Callable[[World], Awaitable[None]]) -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(60)])
        await world.slice(TAINT)
        await rest(1)
        await undo(world)
        await rest(600)
        assert not await world.deleting()
        assert await world.events() == [("p", SPARED, 1)]
        assert world.calls.counted == {}

    play(story)


def test_a_taint_that_goes_and_comes_cancels_and_evicts() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(60)])
        taint = {**TAINT, "timeAdded": world.stamp()}
        await world.slice(taint)
        await rest(1)
        await world.slice()
        await world.slice(taint)
        await rest(60)
        assert await world.events() == [("p", SPARED, 1), ("p", EVICTED, 1)]

    play(story)


def test_a_pod_that_is_deleted_before_is_forgotten_without_a_word() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(60)])
        await world.slice(TAINT)
        await rest(1)
        await world.delete(PODS, "p")
        await rest(600)
        assert await world.events() == []
        assert world.calls.counted == {}

    play(story)


@pytest.mark.parametrize(("change", "seen_to"), [("none", False), ("labels", False), ("spec", True)])
def test_a_pod_that_is_seen_to_again_while_it_goes_is_cancelled_as_upstream_has_it(change: str, seen_to: bool) -> None:
    """After any change of a rule upstream sees to the pods of all claims that are not tainted."""

    async def story(world: World) -> None:
        pod = await world.pod("p", "c", "d")
        await world.claim(pod)
        await world.claim(pod, name="d", device="gpu-1")
        await world.rule(pool="other")
        await world.slice(TAINT)
        await rest(1)
        assert await world.deleting()
        changes = {"labels": {"metadata": {"labels": {"a": "b"}}}, "spec": {"spec": {"taint": {"value": "w"}}}}
        if change in changes:
            await world.kube.patch(RULES, "r", changes[change], kind=Patch.MERGE)
            await rest(1)
        await world.slice()
        await rest(1)
        expected = [("p", SPARED, 1)] if seen_to else []
        assert await world.events() == [*expected, ("p", EVICTED, 1)]
        assert world.calls.counted["get"] == 1

    play(story)


def test_a_pod_that_goes_already_is_not_evicted_again() -> None:
    async def story(world: World) -> None:
        pod = await world.pod()
        await world.claim(pod)
        await world.rule()
        await rest(1)
        assert await world.deleting()
        claim = await world.kube.get(RESOURCE_CLAIMS, "c", namespace="default")
        another = {"resource": "pods", "name": "q", "uid": "1"}
        status = {**claim["status"], "reservedFor": [*claim["status"]["reservedFor"], another]}
        await world.kube.replace(RESOURCE_CLAIMS, {**claim, "status": status}, subresource="status")
        await rest(30)
        assert world.calls.counted == {"get": 1, "patch": 1, "delete": 1}
        assert (await world.condition())[1] == "1 pod evicted since starting the controller."

    play(story)


# ------------------------------------------------------------------------------------------------------------- trouble


def test_a_pod_that_goes_right_before_its_eviction_is_not_counted() -> None:
    async def story(world: World) -> None:
        async def before(verb: str, _count: int) -> None:
            if verb == "get":
                await world.delete(PODS, "p")

        world.calls.before = before
        await world.claim(await world.pod())
        await world.rule()
        await rest(30)
        assert world.calls.counted == {"get": 1}
        assert await world.events() == []
        assert (await world.condition())[:2] == ("NotStarted", "")

    play(story)


def test_a_pod_that_is_being_deleted_counts_as_evicted_without_an_event() -> None:
    async def story(world: World) -> None:
        async def before(verb: str, _count: int) -> None:
            if verb == "get":
                await world.kube.delete(PODS, "p", namespace="default")

        world.calls.before = before
        await world.claim(await world.pod())
        await world.rule()
        await rest(30)
        assert world.calls.counted == {"get": 1}
        assert await world.events() == []
        assert (await world.condition())[:2] == ("Completed", "1 pod evicted since starting the controller.")

    play(story)


@pytest.mark.parametrize(
    ("failing", "counted"),
    [
        ("get", {"get": 2, "patch": 1, "delete": 1}),
        ("patch", {"get": 2, "patch": 2, "delete": 1}),
        ("delete", {"get": 2, "patch": 1, "delete": 2}),
    ],
)
def test_a_call_that_fails_is_retried_and_the_condition_is_not_written_twice(
    failing: str, counted: dict[str, int]
) -> None:
    async def story(world: World) -> None:
        async def before(verb: str, count: int) -> None:
            if verb == failing and count == 1:
                raise ServerError("no")

        world.calls.before = before
        await world.claim(await world.pod())
        await world.slice(TAINT)
        await rest(0.004)
        assert not await world.deleting()
        await rest(0.5)
        assert await world.deleting()
        assert world.calls.counted == counted
        assert await world.events() == [("p", EVICTED, 1 if failing == "get" else 2)]

    play(story)


@pytest.mark.parametrize("moment", ["get", "patch", "delete"])
def test_a_pod_that_takes_the_name_meanwhile_is_spared(moment: str) -> None:
    async def story(world: World) -> None:
        async def before(verb: str, count: int) -> None:
            if verb == moment and count == 1:
                await world.delete(PODS, "p")
                await world.pod()

        world.calls.before = before
        await world.claim(await world.pod())
        await world.slice(TAINT)
        await rest(60)
        pod = await world.get()
        assert not is_deleting(pod)
        assert condition_of(pod, "DisruptionTarget") is None
        assert world.calls.counted["get"] == 1

    play(story)


def test_a_condition_of_another_disruption_is_replaced_where_it_stands() -> None:
    async def story(world: World) -> None:
        pod = await world.pod()
        old = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "Other",
            "lastTransitionTime": "2001-01-01T00:00:00Z",
        }
        status = {**pod["status"], "conditions": [old, {"type": "Ready", "status": "True"}]}
        await world.kube.replace(PODS, {**pod, "status": status}, subresource="status")
        await world.claim(pod)
        await world.slice(TAINT)
        await rest(1)
        first, ready = (await world.get())["status"]["conditions"]
        assert first["reason"] == "DeletionByDeviceTaintManager"
        assert first["lastTransitionTime"] == "2001-01-01T00:00:00Z"
        assert ready["type"] == "Ready"

    play(story)


@pytest.mark.parametrize("moment", ["get", "patch", "delete"])
def test_an_eviction_in_which_the_controller_dies_is_finished_by_the_next(moment: str) -> None:
    async def main() -> None:
        world = World()
        first = asyncio.create_task(world.controller().run())

        async def before(verb: str, _count: int) -> None:
            if verb == moment and not first.done():
                first.cancel()
                await asyncio.sleep(0)

        world.calls.before = before
        await world.claim(await world.pod())
        await world.slice(TAINT)
        await rest(30)
        assert first.cancelled()
        assert not await world.deleting()
        async with running(world.controller()):
            await rest(1)
        assert await world.deleting()
        assert world.calls.counted["patch"] == (2 if moment == "patch" else 1)

    run_virtual(main)


@pytest.mark.parametrize("lives_s", [0.4, 7.0])
def test_a_controller_that_dies_again_and_again_evicts_every_pod(lives_s: float) -> None:
    async def main() -> None:
        world = World()
        controllers = asyncio.create_task(Mortal(world.controller, lives_s).run())
        for number in range(4):
            pod = await world.pod(f"p{number}", f"c{number}")
            waits = [tolerating(5 * number)] if number else []
            await world.claim(pod, name=f"c{number}", tolerations=waits)
        await world.slice(TAINT)
        await world.rule()
        await rest(40)
        controllers.cancel()
        await asyncio.gather(controllers, return_exceptions=True)
        assert [await world.deleting(f"p{number}") for number in range(4)] == [True] * 4

    run_virtual(main)


# --------------------------------------------------------------------------------------------------------------- rules


def test_a_rule_says_that_it_evicts_then_that_it_has() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod())
        began = world.stamp()
        await world.rule()
        await rest(1)
        assert await world.deleting()
        assert await world.condition() == ("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.", began)
        await rest(8)
        assert (await world.condition())[2] == began
        await rest(2)
        reason, message, at = await world.condition()
        assert (reason, message) == ("Completed", "1 pod evicted since starting the controller.")
        assert seconds(at) - seconds(began) == 10

    play(story)


def test_a_rule_without_pods_has_not_started_and_is_written_once() -> None:
    async def story(world: World) -> None:
        await world.rule()
        await rest(1)
        rule = await world.kube.get(RULES, "r")
        assert (await world.condition())[:2] == ("NotStarted", "")
        [written] = [each for each in rule["metadata"]["managedFields"] if "f:status" in each["fieldsV1"]]
        assert (written["manager"], written["operation"]) == (DEVICE_TAINTS, "Apply")
        await rest(60)
        assert await world.kube.get(RULES, "r") == rule

    play(story)


def test_a_condition_that_another_wrote_is_taken_over() -> None:
    async def story(world: World) -> None:
        await world.rule()
        await rest(1)
        [condition] = (await world.kube.get(RULES, "r"))["status"]["conditions"]
        theirs = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": "r"},
            "status": {"conditions": [{**condition, "message": "mine"}]},
        }
        options: dict[str, Any] = {"subresource": "status", "field_manager": "somebody", "force": True}
        await world.kube.patch(RULES, "r", theirs, kind=Patch.APPLY, **options)
        await world.kube.patch(RULES, "r", {"spec": {"taint": {"effect": "NoSchedule"}}}, kind=Patch.MERGE)
        await rest(1)
        assert (await world.condition())[0] == "OtherEffect"

    play(story)


def test_a_pod_that_waits_keeps_its_rule_in_progress() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(35)])
        began_s = world.clock.now()
        await world.rule({**TAINT, "timeAdded": world.stamp()})
        pending = ("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
        await rest(34)
        assert (await world.condition())[:2] == pending
        await rest(1)
        assert await world.deleting()
        assert (await world.condition())[:2] == pending
        await rest(11)
        reason, _, at = await world.condition()
        assert (reason, seconds(at) - began_s) == ("Completed", pytest.approx(45, abs=1))

    play(story)


def test_pods_of_several_namespaces_are_counted() -> None:
    async def story(world: World) -> None:
        await world.kube.create(NAMESPACES, {"metadata": {"name": "other"}})
        await world.claim(await world.pod())
        await world.claim(await world.pod("q", "d"), name="d", device="gpu-1")
        await world.claim(await world.pod(namespace="other"), namespace="other")
        await world.rule(NONE)
        await world.rule({**NONE, "effect": "NoSchedule"}, name="soft")
        await rest(1)
        assert (await world.condition())[:2] == (
            "NoEffect",
            "0 published devices selected. 3 allocated devices selected. 3 pods would be evicted in 2 different "
            "namespaces if the effect was NoExecute. This information will not be updated again. Recreate the "
            "DeviceTaintRule to trigger an update.",
        )
        assert (await world.condition("soft"))[0] == "OtherEffect"
        assert world.calls.counted == {}
        await world.rule(name="evicts", device="gpu-0")
        await rest(1)
        text = "2 pods need to be evicted in 2 different namespaces."
        assert (await world.condition("evicts"))[:2] == ("PodsPendingEviction", text)
        assert not await world.deleting("q")
        await rest(11)
        text = "2 pods evicted since starting the controller."
        assert (await world.condition("evicts"))[:2] == ("Completed", text)

    play(story)


@pytest.mark.parametrize("waits_s", [0, 30])
def test_a_dry_run_that_becomes_an_eviction_is_updated_at_once(waits_s: int) -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(waits_s)] if waits_s else [])
        await world.rule(NONE)
        await rest(2)
        assert (await world.condition())[0] == "NoEffect"
        updated = world.stamp()
        await world.kube.patch(RULES, "r", {"spec": {"taint": {"effect": "NoExecute"}}}, kind=Patch.MERGE)
        await rest(0.1)
        assert await world.deleting() is (waits_s == 0)
        pending = ("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
        assert await world.condition() == (*pending, updated)
        await rest(waits_s + 11)
        assert await world.deleting()
        assert (await world.condition())[0] == "Completed"
        await world.delete(RULES, "r")
        await world.rule()
        await rest(1)
        assert (await world.condition())[:2] == ("NotStarted", "")

    play(story)


def test_a_pod_of_two_claims_is_evicted_once_and_counted_for_both_rules() -> None:
    async def story(world: World) -> None:
        pod = await world.pod("p", "c", "d")
        await world.claim(pod)
        await world.claim(pod, name="d", device="gpu-1")
        later = timestamp(world.clock.now() + 40)
        await world.rule({**TAINT, "timeAdded": later}, name="later", device="gpu-1")
        await rest(0.1)
        await world.rule(name="now", device="gpu-0")
        await rest(0.1)
        assert await world.deleting()
        assert await world.events() == [("p", EVICTED, 1)]
        pending = ("PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
        assert [(await world.condition(name))[:2] for name in ("now", "later")] == [pending, pending]
        await rest(12)
        done = ("Completed", "1 pod evicted since starting the controller.")
        assert [(await world.condition(name))[:2] for name in ("now", "later")] == [done, done]
        await rest(60)
        assert await world.events() == [("p", EVICTED, 1)]

    play(story)


def test_two_claims_of_one_rule_count_a_pod_once() -> None:
    async def story(world: World) -> None:
        pod = await world.pod("p", "c", "d")
        await world.claim(pod)
        await world.claim(pod, name="d", device="gpu-1")
        await world.rule()
        await rest(0.1)
        assert (await world.condition())[1] == "1 pod needs to be evicted in 1 namespace."
        await rest(11)
        assert (await world.condition())[1] == "1 pod evicted since starting the controller."

    play(story)


def test_a_rule_that_is_deleted_spares_the_pods_that_waited() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(20)])
        await world.rule()
        await rest(1)
        await world.delete(RULES, "r")
        await rest(60)
        assert await world.events() == [("p", SPARED, 1)]
        assert world.calls.counted == {}

    play(story)


# ------------------------------------------------------------------------------------------------------------- releases


def test_nothing_runs_where_taints_are_off() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod())
        await world.slice(TAINT)
        await world.rule()
        await rest(60)
        assert not await world.deleting()
        assert await world.condition() == ("", "", "")

    play(story, DEFAULT_FEATURES)


def test_rules_are_left_alone_where_they_are_off() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod())
        await world.rule()
        await rest(20)
        assert not await world.deleting()
        assert await world.condition() == ("", "", "")
        await world.slice(TAINT)
        await rest(1)
        assert await world.deleting()

    play(story, features_of(cluster_release("1.37", {"DRADeviceTaintRules": False})))


# --------------------------------------------------------------------------------------------------------------- memory


def test_of_many_uids_the_one_that_was_of_no_use_for_longest_is_forgotten() -> None:
    uids = RecentUids(2)
    uids.add("a")
    uids.add("b")
    assert "a" in uids
    uids.add("c")
    assert ["a" in uids, "b" in uids, "c" in uids] == [True, False, True]


# ------------------------------------------------------------------------------------------------------------- of 1.34


def test_a_rule_of_1_34_evicts_and_has_no_status() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod())
        await world.slice()
        await world.rule()
        await rest(1)
        assert await world.deleting()
        assert "status" not in await world.kube.get(world.rules, "r")
        assert await world.events() == [("p", EVICTED, 1)]

    play(story, release=OLD)


def test_a_rule_of_1_34_follows_a_class_but_not_to_its_end() -> None:
    async def story(world: World) -> None:
        await world.claim(await world.pod(), tolerations=[tolerating(20)])
        await world.slice()
        await world.kube.create(DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": by("false")})
        await world.rule(deviceClassName="k")
        await rest(5)
        assert await world.events() == []
        await world.kube.patch(DEVICE_CLASSES, "k", {"spec": by("true")}, kind=Patch.MERGE)
        await rest(1)
        await world.kube.patch(DEVICE_CLASSES, "k", {"spec": by("false")}, kind=Patch.MERGE)
        await rest(1)
        assert await world.events() == [("p", SPARED, 1)]
        await world.kube.patch(DEVICE_CLASSES, "k", {"spec": by("true")}, kind=Patch.MERGE)
        await rest(1)
        await world.delete(DEVICE_CLASSES, "k")
        await rest(20)
        assert await world.deleting()

    play(story, release=OLD)


def by(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": expression}}]}


@pytest.mark.parametrize(("release", "evicted"), [(OLD, False), (RELEASE, True)], ids=["1.34", "1.37"])
def test_until_1_36_a_user_that_is_gone_hides_those_after_it(release: ClusterRelease, evicted: bool) -> None:
    async def story(world: World) -> None:
        gone, pod = await world.pod("gone"), await world.pod()
        await world.claim(gone, pod)
        await world.delete(PODS, "gone")
        await world.slice(TAINT)
        await rest(1)
        assert await world.deleting() is evicted

    play(story, release=release)


@pytest.mark.parametrize(("release", "told"), [(OLD, []), (RELEASE, [("p", SPARED, 1)])], ids=["1.34", "1.37"])
def test_in_1_34_a_pod_that_is_being_deleted_is_never_spared(release: ClusterRelease, told: Any) -> None:
    async def story(world: World) -> None:
        pod = await world.pod("p", "c", "d")
        await world.claim(pod)
        await world.claim(pod, name="d", device="gpu-1")
        await world.slice(TAINT)
        await rest(1)
        await world.rule(device="gpu-1")
        await rest(1)
        await world.delete(world.rules, "r")
        await world.slice()
        await rest(1)
        assert await world.deleting()
        assert await world.events() == sorted([*told, ("p", EVICTED, 1)])

    play(story, release=release)


WITH_EXTENDED = cluster_release("1.34", {"DRADeviceTaints": True, "DRAExtendedResource": True})


@pytest.mark.parametrize(("release", "evicted"), [(WITH_EXTENDED, False), (RELEASE, True)], ids=["1.34", "1.37"])
def test_until_1_36_claims_for_extended_resources_evict_nobody(release: ClusterRelease, evicted: bool) -> None:
    async def story(world: World) -> None:
        one = {"example.com/gpu": "1"}
        asking = {"name": "m", "image": "x", "resources": {"requests": one, "limits": one}}
        pod = await world.pod(resourceClaims=[], containers=[asking])
        mapping = {"containerName": "m", "resourceName": "example.com/gpu", "requestName": "r"}
        named = {"resourceClaimName": "c", "requestMappings": [mapping]}
        pod["status"]["extendedResourceClaimStatus"] = named
        pod = await world.kube.replace(PODS, pod, subresource="status")
        assert pod["status"]["extendedResourceClaimStatus"] == named
        await world.claim(pod)
        claim = await world.kube.get(RESOURCE_CLAIMS, "c", namespace="default")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(pod), "controller": True}
        claim["metadata"]["ownerReferences"] = [owner]
        await world.kube.replace(RESOURCE_CLAIMS, claim)
        await world.slice(TAINT)
        await rest(1)
        assert await world.deleting() is evicted

    play(story, release=release)
