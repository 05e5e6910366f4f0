"""Drawn cases put to a scheduler: ours in virtual time, the real one on a real control plane."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.errors import ConflictError
from mews.kube.api.objects import Object, condition_of, name_of, node_name_of
from mews.kube.api.resource_claims import DELETE_PROTECTION, allocation_of, results_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
    taint_rules_of,
)
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.allocator import Allocator, Taken
from mews.kube.scheduling.devices.errors import AllocationError
from mews.kube.scheduling.devices.extended_requests import drafted
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.devices.inventory import DeviceId, DeviceInventory, NodePlace
from mews.kube.scheduling.devices.taint_rules import with_rules
from mews.kube.scheduling.messages import DEALLOCATED, DELETED
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.device_cases import DeviceCase

_PATIENCE_S = 120.0
_AT_ONCE = 8
_NODES = re.compile(r"\d+ node\(s\) didn't match Pod's node affinity/selector|0/\d+ nodes|\b\d+ Preemption")
_MADE = re.compile(r"p-extended-resources-[a-z0-9]{5}")


class Verdict(Struct):
    """What became of a case's pod; ``words`` of one that was refused, ``allocations`` of its claims by name."""

    node: str
    reason: str = ""
    words: str = ""
    allocations: dict[str, Any] = {}

    def said(self, *, ordered: bool = True) -> tuple[bool, str, str]:
        """What must be the same, wherever the pod went; in another order of pools another error may come first."""
        words = "" if self.reason == "SchedulerError" and not ordered else self.words
        return bool(self.node), self.reason, words

    @property
    def met_an_invalid_pool(self) -> bool:
        """Whether the search came upon one before it came to its end."""
        return "is invalid: duplicate device name" in self.words


async def _make(kube: KubeApi, clock: Clock, case: DeviceCase) -> None:
    namespace = f"case-{case.number}"
    await kube.create(NAMESPACES, {"metadata": {"name": namespace, "labels": _ADMINISTERED}})
    await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=namespace)
    for name in case.nodes:
        await raise_stage(kube, clock, name=name, labels=case.labels)
    for each in case.slices:
        await kube.create(RESOURCE_SLICES, each)
    for each in case.classes:
        await kube.create(DEVICE_CLASSES, each)
    for each in case.rules:
        await kube.create(taint_rules_of("v1"), each)
    for each in case.claims:
        made = await kube.create(RESOURCE_CLAIMS, each, namespace=namespace)
        allocation = case.allocated.get(name_of(each))
        if allocation is not None:
            made["metadata"]["finalizers"] = [DELETE_PROTECTION]
            made = await kube.replace(RESOURCE_CLAIMS, made)
            await kube.replace(RESOURCE_CLAIMS, {**made, "status": {"allocation": allocation}}, subresource="status")


_ADMINISTERED = {"resource.kubernetes.io/admin-access": "true"}


async def _judged(kube: KubeApi, case: DeviceCase) -> Verdict:
    namespace = f"case-{case.number}"
    await kube.create(PODS, case.pod, namespace=namespace)
    ends_s = asyncio.get_running_loop().time() + _PATIENCE_S
    while True:
        pod = await kube.get(PODS, "p", namespace=namespace)
        refused = condition_of(pod, "PodScheduled") or {}
        if node_name_of(pod):
            break
        is_going_on = any(word in str(refused.get("message")) for word in (DEALLOCATED, DELETED))
        if refused.get("status") == "False" and not is_going_on:
            words = _NODES.sub("-", str(refused.get("message")))
            return Verdict("", str(refused["reason"]), _MADE.sub("made", words).replace(f"case-{case.number}", "case"))
        await _attach(kube, case, namespace)
        assert asyncio.get_running_loop().time() < ends_s, f"nothing is said of the pod of case {case.number}"
        await asyncio.sleep(0.2)
    claims = (await kube.list(RESOURCE_CLAIMS, namespace=namespace)).items
    return Verdict(node_name_of(pod), allocations={_MADE.sub("made", name_of(each)): _shown(each) for each in claims})


async def _attach(kube: KubeApi, case: DeviceCase, namespace: str) -> None:
    """Say of the devices that were allocated and must be attached that they are, or that they broke."""
    for claim in (await kube.list(RESOURCE_CLAIMS, namespace=namespace)).items:
        waiting = [result for result in results_of(claim) if result.get("bindingConditions")]
        if waiting and not claim["status"].get("devices"):
            claim["status"]["devices"] = [_attached(result, breaks=case.breaks) for result in waiting]
            with contextlib.suppress(ConflictError):
                await kube.replace(RESOURCE_CLAIMS, claim, subresource="status")


def _attached(result: Mapping[str, Any], *, breaks: bool) -> dict[str, Any]:
    kinds = result["bindingFailureConditions" if breaks else "bindingConditions"]
    condition = {"status": "True", "reason": "Looked", "message": "seen", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {key: result[key] for key in ("driver", "pool", "device", "shareID") if key in result}
    return {**status, "conditions": [{"type": kind, **condition} for kind in kinds]}


def _shown(claim: Object) -> dict[str, Any]:
    """The allocation without its time and what is made up for shares."""
    allocation = {key: value for key, value in (allocation_of(claim) or {}).items() if key != "allocationTimestamp"}
    devices = allocation.get("devices") or {}
    for result in devices.get("results", ()):
        if "shareID" in result:
            result["shareID"] = _SHARE
    return allocation


_SHARE = "share"


async def _all_judged(kube: KubeApi, cases: Sequence[DeviceCase]) -> list[Verdict]:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(case: DeviceCase) -> Verdict:
        async with places:
            return await _judged(kube, case)

    return await asyncio.gather(*[one(case) for case in cases])


async def judged(kube: KubeApi, clock: Clock, parts: Sequence[Runnable], cases: Sequence[DeviceCase]) -> list[Verdict]:
    """What became of each case, all in one cluster."""
    for case in cases:
        await _make(kube, clock, case)
    running = [asyncio.create_task(each.run()) for each in parts]
    try:
        return await _all_judged(kube, cases)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def ours(cases: Sequence[DeviceCase], release: ClusterRelease = STANDARD) -> list[Verdict]:
    """Our scheduler on our store."""
    return before_ours(lambda kube, clock, scheduler: judged(kube, clock, [scheduler], cases), release)


def theirs(cases: Sequence[DeviceCase], folder: Path, release: ClusterRelease = STANDARD) -> list[Verdict]:
    """The real scheduler on the real control plane."""
    return before_theirs(lambda kube, clock, scheduler: judged(kube, clock, [scheduler], cases), folder, release)


T = TypeVar("T")
Play = Callable[[KubeApi, Clock, Runnable], Awaitable[T]]


def before_ours(play: Play[T], release: ClusterRelease) -> T:
    """Play with our scheduler on our store."""

    async def main() -> T:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True, release=release))
        context = Context(kube, clock, stream(1, "scheduler"), logging.getLogger("scheduler"))
        profile = SchedulerProfile("default-scheduler", default_plugins(devices=features_of(release)))
        return await play(kube, clock, Scheduler(context, SchedulerConfig((profile,))))

    return run_virtual(main)


def before_theirs(play: Play[T], folder: Path, release: ClusterRelease) -> T:
    """Play with the real scheduler on the real control plane."""
    servers = Servers(release=release)

    async def main() -> T:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        program = kube_scheduler(folder, kubeconfig, release=release)
        assert program is not None
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await play(kube, Clock.wall(), program(Fence()))
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()


def found_on(case: DeviceCase, node: str, features: DeviceFeatures) -> dict[str, Any] | None:
    """The allocations, by claim, that our search finds on that node; None where it finds none.

    Raises AllocationError.
    """
    claims = [each for each in _in_order(case) if name_of(each) not in case.allocated] + _for_extended(case)
    slices = [with_rules(each, case.rules, lambda _: None) for each in case.slices]
    found = _allocator(case, slices, features).allocate(_place(case, node), claims)
    return None if found is None else dict(zip(map(name_of, claims), found, strict=True))


def errors_of(case: DeviceCase, features: DeviceFeatures) -> set[str]:
    """The words with which the attempt may end: an error on any node ends it, and nodes are looked at side by side."""
    found = set()
    for node in case.nodes:
        try:
            found_on(case, node, features)
        except AllocationError as failed:
            found.add(f'running "DynamicResources" filter plugin: {failed}')
    return found


def is_allowed(case: DeviceCase, verdict: Verdict, features: DeviceFeatures) -> bool:
    """Whether an allocation is one that the search could find: among the devices that it gives, it is found again."""
    given: dict[tuple[str, str], set[str]] = {}
    for allocation in verdict.allocations.values():
        for result in ((allocation or {}).get("devices") or {}).get("results") or ():
            given.setdefault((result["driver"], result["pool"]), set()).add(result["device"])
    slices = [_left(each, given) for each in case.slices]
    claims = [each for each in _in_order(case) if name_of(each) not in case.allocated]
    try:
        found = _allocator(case, slices, features).allocate(_place(case, verdict.node), claims)
    except AllocationError:  # of a device that in that order was not asked about
        return not case.ordered
    if found is None:
        return False
    if not case.ordered:
        return _once_each(verdict)
    return all(
        verdict.allocations[name_of(claim)] == allocation for claim, allocation in zip(claims, found, strict=True)
    )


def _allocator(case: DeviceCase, slices: Sequence[Object], features: DeviceFeatures) -> Allocator:
    classes = {name_of(each): each for each in case.classes}
    inventory = DeviceInventory.of(slices, features)
    return Allocator(inventory, _taken(case), class_of=classes.get, features=features, new_share=lambda: _SHARE)


def _taken(case: DeviceCase) -> Taken:
    results = [result for allocation in case.allocated.values() for result in allocation["devices"]["results"]]
    return Taken(frozenset(DeviceId(result["driver"], result["pool"], result["device"]) for result in results))


def _place(case: DeviceCase, node: str) -> NodePlace:
    return NodePlace(node, {"kubernetes.io/hostname": node, **case.labels})


def _once_each(verdict: Verdict) -> bool:
    given = [
        (result["driver"], result["pool"], result["device"])
        for allocation in verdict.allocations.values()
        for result in ((allocation or {}).get("devices") or {}).get("results") or ()
        if not result.get("adminAccess")
    ]
    return len(given) == len(set(given))


def _in_order(case: DeviceCase) -> list[Object]:
    known = {name_of(each): each for each in case.claims}
    names = [entry["resourceClaimName"] for entry in case.pod["spec"].get("resourceClaims", ())]
    return [{**known[name], "metadata": {"name": name, "namespace": "case"}} for name in names]


def _for_extended(case: DeviceCase) -> list[Object]:
    """The claim that is made for the pod's extended resources."""
    wanted = list(case.pod["spec"]["containers"][0].get("resources", {}).get("requests", ()))
    classes = {each["spec"].get("extendedResourceName"): name_of(each) for each in case.classes}
    draft = drafted(case.pod, wanted, classes.get, reuses=True)
    spec = {"devices": {"requests": draft.requests}}
    return [{"metadata": {"name": "made", "namespace": "case"}, "spec": spec}] if draft.requests else []


def _left(resource_slice: Object, given: dict[tuple[str, str], set[str]]) -> Object:
    spec = resource_slice["spec"]
    kept = given.get((spec["driver"], spec["pool"]["name"]), set())
    return {
        **resource_slice,
        "spec": {**spec, "devices": [each for each in spec.get("devices", ()) if each["name"] in kept]},
    }
