"""Drawn cases put to a scheduler: ours in virtual time, the real one on a real control plane."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.scheduler import kube_scheduler
from mews.harness.kubeconfig_file import write_kubeconfig
from mews.harness.ports.fence import Fence
from mews.kube.api.objects import Object, condition_of, name_of, node_name_of
from mews.kube.api.resource_claims import DELETE_PROTECTION, allocation_of
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.allocator import Allocator, Taken
from mews.kube.scheduling.devices.errors import AllocationError
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.devices.inventory import DeviceInventory, NodePlace
from mews.kube.scheduling.messages import DEALLOCATED
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.device_cases import DeviceCase

_PATIENCE_S = 90.0
_PARTS = re.compile(r"1 cannot allocate all claims, 1 timed out trying to allocate devices")
_NODES = re.compile(r"\d+ node\(s\) didn't match Pod's node affinity/selector|0/\d+ nodes|\b\d+ Preemption")

_TOGETHER = "2 cannot allocate all claims"
"""The real scheduler of 1.34 tries permutations, and gives up after ten seconds."""


class Verdict(Struct):
    """What became of a case's pod; ``words`` of one that was refused, ``allocations`` of its claims by name."""

    node: str
    reason: str = ""
    words: str = ""
    allocations: dict[str, Any] = {}

    def said(self, *, ordered: bool) -> tuple[bool, str, str]:
        """What must be the same, wherever the pod went; in another order of pools another error may come first."""
        words = "" if self.reason == "SchedulerError" and not ordered else self.words
        return bool(self.node), self.reason, _PARTS.sub(_TOGETHER, words)

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
        if refused.get("status") == "False" and DEALLOCATED not in str(refused.get("message")):
            words = _NODES.sub("-", str(refused.get("message")))
            return Verdict("", str(refused["reason"]), words.replace(f"case-{case.number}", "case"))
        assert asyncio.get_running_loop().time() < ends_s, f"nothing is said of the pod of case {case.number}"
        await asyncio.sleep(0.2)
    claims = (await kube.list(RESOURCE_CLAIMS, namespace=namespace)).items
    return Verdict(node_name_of(pod), allocations={name_of(claim): _timeless(claim) for claim in claims})


def _timeless(claim: Object) -> dict[str, Any]:
    return {key: value for key, value in (allocation_of(claim) or {}).items() if key != "allocationTimestamp"}


async def judged(kube: KubeApi, clock: Clock, parts: Sequence[Runnable], cases: Sequence[DeviceCase]) -> list[Verdict]:
    """What became of each case, all in one cluster."""
    for case in cases:
        await _make(kube, clock, case)
    running = [asyncio.create_task(each.run()) for each in parts]
    try:
        return [await _judged(kube, case) for case in cases]
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def ours(cases: Sequence[DeviceCase], features: DeviceFeatures = DEFAULT_FEATURES) -> list[Verdict]:
    """Our scheduler on our store."""

    async def main() -> list[Verdict]:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True))
        context = Context(kube, clock, stream(1, "scheduler"), logging.getLogger("scheduler"))
        profile = SchedulerProfile("default-scheduler", default_plugins(devices=features))
        return await judged(kube, clock, [Scheduler(context, SchedulerConfig((profile,)))], cases)

    return run_virtual(main)


def theirs(cases: Sequence[DeviceCase], folder: Path) -> list[Verdict]:
    """The real scheduler on the real control plane."""
    servers = Servers()

    async def main() -> list[Verdict]:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        program = kube_scheduler(folder, kubeconfig)
        assert program is not None
        kube = HttpKube(servers.url, token=identity.token, ssl=identity.client_context())
        try:
            return await judged(kube, Clock.wall(), [program(Fence())], cases)
        finally:
            await kube.close()

    try:
        return asyncio.run(main())
    finally:
        servers.stop()


def is_allowed(case: DeviceCase, verdict: Verdict, features: DeviceFeatures) -> bool:
    """Whether an allocation is one that the search could find: among the devices that it gives, it is found again."""
    given: dict[tuple[str, str], set[str]] = {}
    for allocation in verdict.allocations.values():
        for result in ((allocation or {}).get("devices") or {}).get("results") or ():
            given.setdefault((result["driver"], result["pool"]), set()).add(result["device"])
    slices = [_left(each, given) for each in case.slices]
    classes = {name_of(each): each for each in case.classes}
    allocator = Allocator(
        DeviceInventory.of(slices, features),
        Taken(),
        class_of=classes.get,
        features=features,
        new_share=lambda: "share",
    )
    labels = {"kubernetes.io/hostname": verdict.node, **case.labels}
    claims = [each for each in _in_order(case) if name_of(each) not in case.allocated]
    try:
        found = allocator.allocate(NodePlace(verdict.node, labels), claims)
    except AllocationError:  # of a device that in that order was not asked about
        return not case.ordered
    if found is None:
        return False
    if not case.ordered:
        return _once_each(verdict)
    return all(
        verdict.allocations[name_of(claim)] == allocation for claim, allocation in zip(claims, found, strict=True)
    )


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
    return [known[entry["resourceClaimName"]] | {} for entry in case.pod["spec"]["resourceClaims"]]


def _left(resource_slice: Object, given: dict[tuple[str, str], set[str]]) -> Object:
    spec = resource_slice["spec"]
    kept = given.get((spec["driver"], spec["pool"]["name"]), set())
    return {**resource_slice, "spec": {**spec, "devices": [each for each in spec["devices"] if each["name"] in kept]}}
