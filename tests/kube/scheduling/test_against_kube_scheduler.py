"""The same nodes and pods before the real kube-scheduler and before ours: same nodes, same words.

Where several nodes are equally good the real one rolls dice. Ours is told what it rolled by a Score plugin that counts
less than any difference in score: it can decide between equals and nothing else.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.objects import Object, condition_of, node_name_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.framework import CycleState, Handle
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import PodInfo
from tests.kube.scheduling.oracle import control_plane, missing, until
from tests.kube.scheduling.world import World, live, node, on_host, pod, taint

DEFAULT_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
}
Outcome = tuple[str, str, str, tuple[str, ...]]


class Follow:
    """Scores 1 for the node that the pod has elsewhere."""

    name = "Follow"

    def __init__(self, handle: Handle, where: Mapping[str, str]) -> None:
        self._where = where

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return int(self._where.get(pod.name) == node.name)


def term(app: str, key: str = "zone", **more: Any) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def required(kind: str, *terms: Object) -> Object:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def preferred(kind: str, wish: Object, key: str) -> Object:
    wishes = [{"weight": 100, key: wish}]
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}


def by_name(*names: str) -> Object:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def spread(app: str, when: str = "DoNotSchedule", **more: Any) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, **more}
    constraint["labelSelector"] = {"matchLabels": {"app": app}}
    return {"topologySpreadConstraints": [constraint], "labels": {"app": app}}


def port(address: str) -> Object:
    return {"container": {"ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": address}]}}


def small_pods() -> list[tuple[str, Object]]:
    rng = random.Random(5)
    return [
        (
            f"small-{n:02}",
            {"requests": {"cpu": f"{rng.randrange(100, 900)}m", "memory": f"{rng.randrange(100, 1500)}Mi"}},
        )
        for n in range(12)
    ]


MACHINES = [
    node("a", gpus=2, labels={"zone": "x", "disk": "ssd"}),
    node("b", gpus=4, cpu="16", memory="24Gi", labels={"zone": "y"}),
    node("c", gpus=1, cpu="6", memory="40Gi", labels={"zone": "y"}),
    node("d", cpu="32", memory="64Gi", pods=30),
    node("e", cpu="12", memory="20Gi", labels={"zone": "z"}, taints=[taint("slow", "PreferNoSchedule")]),
    node("f", gpus=8, labels={"zone": "z"}, taints=[taint("dedicated", "NoSchedule", "q")]),
]
PODS_IN_ORDER: list[tuple[str, Object]] = [
    *small_pods(),
    ("one-gpu", {"gpus": 1}),
    ("hermit", {"nodeSelector": on_host("a"), "labels": {"app": "h"}, **required("podAntiAffinity", term("noisy"))}),
    ("noisy", {"nodeSelector": {"zone": "x"}, "labels": {"app": "noisy"}}),
    ("contradiction", by_name("a", "b")),
    ("named", by_name("c")),
    ("named-too-big", {"gpus": 3, **by_name("c")}),
    ("together", required("podAffinity", term("h", namespaceSelector={}))),
    ("elsewhere", required("podAffinity", term("h", namespaces=["kube-system"]))),
    *((f"even-{n}", spread("even")) for n in range(4)),
    *((f"domains-{n}", spread("domains", minDomains=5)) for n in range(4)),
    ("anyway", spread("even", "ScheduleAnyway")),
    ("port-1", {"nodeSelector": on_host("a"), **port("10.0.0.1")}),
    ("port-2", {"nodeSelector": on_host("a"), **port("10.0.0.2")}),
    ("port-3", {"nodeSelector": on_host("a"), **port("0.0.0.0")}),
    ("tolerant", {"gpus": 5, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
    ("tolerant-too", {"gpus": 5, "tolerations": [{"key": "dedicated", "operator": "Exists"}]}),
    ("big-at-first", {"initContainers": [{"name": "i", "image": "x", "resources": {"requests": {"cpu": "40"}}}]}),
    (
        "fond-of-ssd",
        preferred("nodeAffinity", {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, "preference"),
    ),
    ("near", preferred("podAffinity", term("h"), "podAffinityTerm")),
    ("apart", preferred("podAntiAffinity", term("h"), "podAffinityTerm")),
    ("fill", {"gpus": 2, "nodeSelector": on_host("a")}),
    ("important", {"gpus": 2, "nodeSelector": on_host("a"), "priorityClassName": "high"}),
    ("important-too-big", {"requests": {"cpu": "31900m"}, "gpus": 1, "priorityClassName": "high"}),
]


def decided(seen: Object) -> bool:
    return condition_of(seen, "PodScheduled") is not None


def outcome(seen: Object, events: list[Object]) -> Outcome:
    """Node, nominated node, condition message, notes of the events about it."""
    condition = condition_of(seen, "PodScheduled") or {}
    notes = [event["note"] for event in events if event["regarding"]["uid"] == seen["metadata"]["uid"]]
    nominated = str((seen.get("status") or {}).get("nominatedNodeName") or "")
    return (
        node_name_of(seen),
        nominated,
        str(condition.get("message", "")),
        tuple(sorted(set(notes) - _preempted(notes))),
    )


def _preempted(notes: list[str]) -> set[str]:
    """Notes that name uids."""
    return {note for note in notes if note.startswith("Preempted by")}


def real(call: Callable[..., Any]) -> dict[str, Outcome]:
    pods, events = "/api/v1/namespaces/default/pods", "/apis/events.k8s.io/v1/namespaces/default/events"
    call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    for machine in MACHINES:
        path = f"/api/v1/nodes/{machine['metadata']['name']}"
        created = call("POST", "/api/v1/nodes", machine)
        call("PUT", path, {**created, "spec": machine["spec"]})

    def told(name: str) -> bool:
        seen = call("GET", f"{pods}/{name}")
        about = [e for e in call("GET", events)["items"] if e["regarding"]["name"] == name]
        return decided(seen) and bool(about)

    for name, options in PODS_IN_ORDER:
        call("POST", pods, pod(name, **options))
        until(lambda name=name: told(name), within_s=20)  # type: ignore[misc]
    happened = call("GET", events)["items"]
    return {seen["metadata"]["name"]: outcome(seen, happened) for seen in call("GET", pods)["items"]}


def ours(where: Mapping[str, str]) -> dict[str, Outcome]:
    async def story(world: World) -> dict[str, Outcome]:
        await world.priority("high", 1000)
        for machine in MACHINES:
            await world.kube.create(NODES, machine)
            spec = machine["spec"]
            await world.edit_node(machine["metadata"]["name"], lambda n, spec=spec: n.update(spec=spec))  # type: ignore[misc]
        weights = {name: 2 * weight for name, weight in DEFAULT_WEIGHTS.items()} | {"Follow": 1}
        plugins = (*default_plugins(), lambda handle: Follow(handle, where))
        world.scheduler(SchedulerProfile("default-scheduler", plugins, score_weights=weights))
        for name, options in PODS_IN_ORDER:
            await world.add(name, **options)
            await asyncio.sleep(0.2)
        pods = (await world.kube.list(PODS)).items
        return {p["metadata"]["name"]: outcome(p, await world.events(p["metadata"]["name"])) for p in pods}

    return live(story)


@pytest.mark.wall
@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
def test_ours_places_and_words_as_the_real_kube_scheduler_does(tmp_path: Path) -> None:
    with control_plane(tmp_path) as call:
        expected = real(call)
    assert expected == ours({name: node for name, (node, *_) in expected.items()})
