"""Plays situations on a cluster of emulated nodes, all at once, each in a namespace of its own."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mews.harness.clusters import open_cluster
from mews.harness.commands.up import UpPrograms, with_programs
from mews.harness.options import DEFAULT_BACKEND, RunOptions
from mews.harness.ports.cluster import ReachableCluster
from mews.harness.scenario.kinds import resource_of
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.errors import ApiError, NotFoundError
from mews.kube.api.objects import Object
from mews.kube.api.resources import EVENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS, Resource
from mews.kube.client.port import DeleteOptions, KubeApi, Patch

TABLE = Path(__file__).with_name("table.yaml")
SETTLE_S = 8.0
_LOOKS, _BETWEEN_S, _PATIENCE = 10, 3.0, 60
_AT_ONCE = 120
_SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: situations}
hardware: three-nodes
stack: {kubecomp: null}
unknownImages: idle
images:
  stays: idle
  fails: {simulate: {duration_s: 0.5, exit_code: 1}}
  three: {simulate: {duration_s: 0.5, exit_code: 3}}
  ends: {simulate: {duration_s: 0.5}}
  unready: {simulate: {stages: [{failing: [readiness]}]}}
"""
_SHOWN = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "ReplicationController"),
    ("v1", "Pod"),
    ("v1", "ConfigMap"),
    ("v1", "ServiceAccount"),
    ("v1", "ResourceQuota"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
)
_SUFFIX = re.compile(r"-(?:[0-9a-f]{8,10}-)?[bcdfghjklmnpqrstvwxz2456789]{5}\b|-\d{8}\b|-[bcdf0-9-hj-np-tv-z]{8,10}\b")
_UNSTEADY = ("observedGeneration", "collisionCount", "currentRevision", "updateRevision", "uncountedTerminatedPods")
_NOT_TOLD = (
    "SuccessfulAttachVolume",
    "Pulling",
    "Pulled",
    "Created",
    "Started",
    "Scheduled",
    "Killing",
    "SandboxChanged",
)
"""Events whose number and order the kubelets decide, which are the same on both sides; and the attach-detach
controller's, which emulated nodes do without."""
_CANCELLED = "Cancelling deletion of Pod"
"""What the taint manager says of a node whose heartbeat came late, as on a busy machine, and then came."""

Verdict = Sequence[str]


@dataclass(frozen=True, slots=True)
class Situation:
    """One row of the table."""

    name: str
    objects: Sequence[Object] = ()
    then: Sequence[Mapping[str, Any]] = ()
    settle: float = SETTLE_S
    nightly: bool = False
    alone: bool = False
    title: str = ""


def situations() -> tuple[Situation, ...]:
    return tuple(Situation(**row) for row in yaml.safe_load(TABLE.read_text("utf-8"))["situations"])


async def play_all(
    chosen: Iterable[Situation],
    options: RunOptions,
    *,
    expected: Mapping[str, Verdict] | None = None,
    scheduler: str = "ours",
    controllers: str = "ours",
) -> dict[str, Verdict]:
    """By name, on a cluster of its own, many at once. ``expected``: what has not come to that is looked at again
    for a while: the real programs share a machine that may be busy. ``scheduler`` and ``controllers`` are ``ours`` or
    ``real``, as `mews up` takes them; a real control plane has its own in any case."""
    scenario = parse_scenario(_SCENARIO, Path("situations"), {})
    if options.cluster == DEFAULT_BACKEND:
        scenario = with_programs(scenario, UpPrograms(scheduler, controllers), options.cluster)
    cluster = await open_cluster(scenario, options)
    try:
        given, played = list(chosen), dict[str, Verdict]()
        for first in range(0, len(given), _AT_ONCE):
            some = given[first : first + _AT_ONCE]
            told = await asyncio.gather(*(_play(cluster, each, (expected or {}).get(each.name)) for each in some))
            played |= {each.name: verdict for each, verdict in zip(some, told, strict=True)}
        return played
    finally:
        await cluster.close()


async def _play(cluster: ReachableCluster, situation: Situation, expected: Verdict | None) -> Verdict:
    kube, space = cluster.kube, situation.name
    await kube.create(NAMESPACES, {"metadata": {"name": space}})
    await _account_made(kube, space)
    refusals = await _apply(kube, space, situation.objects)
    for step in situation.then:
        await asyncio.sleep(step["after"])
        refusals += await _do(cluster, space, step)
    await asyncio.sleep(situation.settle)
    found = [*refusals, *await _shown(kube, space)]
    for _ in range(_LOOKS if expected is not None else 0):
        if found == expected:
            break
        await asyncio.sleep(_BETWEEN_S)
        found = [*refusals, *await _shown(kube, space)]
    if situation.title:
        await _make_room(kube, space)
    return found


async def _account_made(kube: KubeApi, space: str) -> None:
    """A controller makes it, as soon as it comes to that namespace."""
    for _ in range(_PATIENCE):
        with contextlib.suppress(NotFoundError):
            await kube.get(SERVICE_ACCOUNTS, "default", namespace=space)
            return
        await asyncio.sleep(_BETWEEN_S / 3)


async def _make_room(kube: KubeApi, space: str) -> None:
    """A node has a hundred pods at most, and a volume one node."""
    for pod in (await kube.list(PODS, namespace=space)).items:
        with contextlib.suppress(NotFoundError):
            await kube.delete(PODS, pod["metadata"]["name"], namespace=space, options=DeleteOptions(grace_period_s=0))


async def _apply(kube: KubeApi, space: str, objects: Sequence[Object]) -> list[str]:
    refusals = []
    for obj in objects:
        resource = await resource_of(kube, obj["kind"], obj["apiVersion"])
        try:
            await kube.create(resource, obj, namespace=space)
        except ApiError as error:
            refusals.append(f"refused: {error.message}")
    return refusals


async def _do(cluster: ReachableCluster, space: str, step: Mapping[str, Any]) -> list[str]:
    kube = cluster.kube
    try:
        match step:
            case {"apply": objects}:
                return await _apply(kube, space, objects)
            case {"patch": {"kind": kind, "name": name, "body": body}}:
                resource = await resource_of(kube, kind, "")
                await kube.patch(resource, name, body, kind=Patch.STRATEGIC, namespace=space)
            case {"scale": {"kind": kind, "name": name, "replicas": replicas}}:
                scale = {"spec": {"replicas": replicas}}
                await kube.patch(await resource_of(kube, kind, ""), name, scale, namespace=space, subresource="scale")
            case {"delete": {"kind": "Namespace"}}:
                await kube.delete(NAMESPACES, space)
            case {"delete": {"kind": kind, "name": name, **more}}:
                policy = more.get("policy", "Background")
                options = DeleteOptions(propagation=policy)
                await kube.delete(await resource_of(kube, kind, ""), name, namespace=space, options=options)
            case {"evict": name}:
                await kube.evict(space, name)
            case {"power": {"host": host, "on": on}}:
                await cluster.hardware.operate(host, {"do": "machine-power", "on": on}, 10.0)
            case _:
                raise AssertionError(f"{step}: no such step")
    except ApiError as error:
        return [f"refused: {error.message}"]
    return []


# What is compared


async def _shown(kube: KubeApi, space: str) -> list[str]:
    found = []
    for version, kind in _SHOWN:
        resource = await resource_of(kube, kind, version)
        found += [_plain(kind, obj) for obj in await _list(kube, resource, space)]
    try:
        phase = (await kube.get(NAMESPACES, space))["status"]["phase"]
    except NotFoundError:
        phase = "gone"
    return [f"Namespace {phase}", *sorted(found), *await _events(kube, space)]


async def _list(kube: KubeApi, resource: Resource, space: str) -> list[Object]:
    return [obj for obj in (await kube.list(resource, namespace=space)).items if _name(obj) != "kube-root-ca.crt"]


def _name(obj: Object) -> str:
    return _SUFFIX.sub("-*", obj["metadata"]["name"])


def _plain(kind: str, obj: Object) -> str:
    status = {key: value for key, value in (obj.get("status") or {}).items() if key not in _UNSTEADY}
    conditions = sorted(
        f"{c['type']}={c['status']}:{c.get('reason', '')}" for c in status.pop("conditions", None) or ()
    )
    deleting = " deleting" if obj["metadata"].get("deletionTimestamp") else ""
    if kind == "Pod":
        return f"Pod {_name(obj)}{deleting} {status.get('phase')} {_containers(status)} {conditions} {_pending(obj)}"
    told = {
        key: value
        for key, value in sorted(status.items())
        if isinstance(value, int | str | Mapping) and "Time" not in key
    }
    return f"{kind} {_name(obj)}{deleting} {told} {conditions}"


def _containers(status: Mapping[str, Any]) -> list[str]:
    found = []
    for part in ("initContainerStatuses", "containerStatuses"):
        for entry in status.get(part) or ():
            state, told = next(iter((entry.get("state") or {"none": {}}).items()))
            found.append(f"{entry['name']}:{state}:{told.get('reason', '')}:{told.get('exitCode', '')}")
    return found


def _pending(pod: Object) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled" and c["status"] != "True"), "")


async def _events(kube: KubeApi, space: str) -> list[str]:
    found = set()
    for event in (await kube.list(EVENTS, namespace=space)).items:
        about = event["involvedObject"]
        if event.get("reason") not in _NOT_TOLD and not (event.get("message") or "").startswith(_CANCELLED):
            name = _SUFFIX.sub("-*", about.get("name", ""))
            found.add(f"event {event.get('type')} {event.get('reason')} {about.get('kind')} {name}")
    return sorted(found)
