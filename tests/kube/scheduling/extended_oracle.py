"""Drawn cases of extended resources put to a scheduler: ours in virtual time, the real one on a real control plane."""

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
from mews.kube.api.objects import Object, annotations_of, condition_of, name_of, node_name_of, uid_of
from mews.kube.api.resource_claims import DELETE_PROTECTION
from mews.kube.api.resources import (
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICE_ACCOUNTS,
)
from mews.kube.client.http import HttpKube
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import Clock, stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.releases.cluster_release import ClusterRelease
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.gated_features import features_of
from mews.kube.scheduling.messages import DELETED
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from tests.kube.emulated.controllers.puppet import raise_stage
from tests.kube.scheduling.extended_cases import ExtendedCase

_PATIENCE_S = 90.0
_SETTLES_S, _WAKES_S = 0.5, 4.0
OF_EXTENDED = "resource.kubernetes.io/extended-resource-claim"
_NODES = re.compile(r"\d+ node\(s\) didn't match Pod's node affinity/selector|0/\d+ nodes|\b\d+ Preemption")
_MADE = re.compile(r"p-extended-resources-[a-z0-9]{5}")


class ExtendedVerdict(Struct):
    """What became of a case's pod: where it went or why not, what its claims are, what its status says of them."""

    node: str
    reason: str
    words: str
    claims: list[Any]
    noted: Any


async def _make(kube: KubeApi, clock: Clock, case: ExtendedCase) -> None:
    namespace = f"case-{case.number}"
    await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
    await kube.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace=namespace)
    for name, announced in case.announced.items():
        await raise_stage(kube, clock, name=name, labels=case.labels)
        amounts = {"status": {"capacity": announced, "allocatable": announced}}
        await kube.patch(NODES, name, amounts, kind=Patch.MERGE, subresource="status")
    for each in case.slices:
        await kube.create(RESOURCE_SLICES, each)
    for each in case.classes:
        await kube.create(DEVICE_CLASSES, each)
    for each in case.claims:
        await kube.create(RESOURCE_CLAIMS, each, namespace=namespace)


async def _judged(kube: KubeApi, case: ExtendedCase) -> ExtendedVerdict:
    namespace = f"case-{case.number}"
    pod = await kube.create(PODS, case.pod, namespace=namespace)
    if case.left is not None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid_of(pod), "controller": True}
        marks = {"annotations": {OF_EXTENDED: "true"}, "finalizers": [DELETE_PROTECTION]}
        metadata = {"name": "left", "ownerReferences": [owner], **marks}
        made = await kube.create(RESOURCE_CLAIMS, {"metadata": metadata, **case.left}, namespace=namespace)
        await kube.replace(RESOURCE_CLAIMS, {**made, **case.left}, subresource="status")
        await asyncio.sleep(_SETTLES_S)
    ungated = [{"op": "remove", "path": "/spec/schedulingGates"}]
    await kube.patch(PODS, "p", ungated, kind=Patch.JSON, namespace=namespace)
    now = asyncio.get_running_loop().time
    ends_s = now() + _PATIENCE_S
    while True:
        pod = await kube.get(PODS, "p", namespace=namespace)
        refused = condition_of(pod, "PodScheduled") or {}
        waits = refused.get("reason") == "SchedulingGated"
        # That a claim was deleted wakes a pod that other plugins let pass; the others keep this verdict.
        final = DELETED not in str(refused.get("message")) or now() > ends_s - _PATIENCE_S + _WAKES_S
        if node_name_of(pod) or (refused.get("status") == "False" and not waits and final):
            break
        assert now() < ends_s, f"nothing is said of the pod of case {case.number}"
        await asyncio.sleep(0.1)
    await asyncio.sleep(_SETTLES_S if not node_name_of(pod) else 0.0)
    claims = (await kube.list(RESOURCE_CLAIMS, namespace=namespace)).items
    words = "" if node_name_of(pod) else _NODES.sub("-", str(refused.get("message")))
    return ExtendedVerdict(
        node_name_of(pod),
        "" if node_name_of(pod) else str(refused["reason"]),
        _MADE.sub("made", words.replace(namespace, "case")),
        [_shown(claim) for claim in claims if node_name_of(pod)],
        _noted(pod),
    )


def _shown(claim: Object) -> dict[str, Any]:
    """What must be the same of a claim; names and uids are made up by each server."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    allocation = {key: value for key, value in (status.get("allocation") or {}).items() if key != "allocationTimestamp"}
    return {
        "name": _MADE.sub("made", name_of(claim)),
        "from": metadata.get("generateName", ""),
        "annotations": annotations_of(claim),
        "owners": [{k: v for k, v in each.items() if k != "uid"} for each in metadata.get("ownerReferences", ())],
        "finalizers": metadata.get("finalizers", []),
        "spec": claim["spec"],
        "allocation": allocation,
        "reserved": [entry["name"] for entry in status.get("reservedFor", ())],
    }


def _noted(pod: Object) -> Any:
    noted = pod["status"].get("extendedResourceClaimStatus")
    return noted and {**noted, "resourceClaimName": _MADE.sub("made", noted["resourceClaimName"])}


async def judged(
    kube: KubeApi, clock: Clock, parts: Sequence[Runnable], cases: Sequence[ExtendedCase]
) -> list[ExtendedVerdict]:
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


def ours(cases: Sequence[ExtendedCase], release: ClusterRelease) -> list[ExtendedVerdict]:
    """Our scheduler on our store."""

    async def main() -> list[ExtendedVerdict]:
        clock = virtual_clock()
        kube = InProcessKube(fresh_store(clock.now, stream(1, "store"), attended=True, release=release))
        context = Context(kube, clock, stream(1, "scheduler"), logging.getLogger("scheduler"))
        profile = SchedulerProfile("default-scheduler", default_plugins(devices=features_of(release)))
        return await judged(kube, clock, [Scheduler(context, SchedulerConfig((profile,)))], cases)

    return run_virtual(main)


def theirs(cases: Sequence[ExtendedCase], release: ClusterRelease, folder: Path) -> list[ExtendedVerdict]:
    """The real scheduler on the real control plane."""
    servers = Servers(release=release)

    async def main() -> list[ExtendedVerdict]:
        await asyncio.to_thread(servers.ready)
        identity, kubeconfig = servers.identity, folder / "kubeconfig"
        cluster = {"server": servers.url, "certificate-authority": str(identity.certificate)}
        write_kubeconfig(kubeconfig, server=cluster, user={"token": identity.token})
        program = kube_scheduler(folder, kubeconfig, release=release)
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
