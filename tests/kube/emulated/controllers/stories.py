"""Lives of workloads, told on any API server with controllers, and what is left of them in a form that can be compared.

Each story has a namespace of its own, so all of them may be told at once.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mews.kube.api.errors import NotFound
from mews.kube.api.objects import Object, condition_of, is_deleting, name_of
from mews.kube.api.resources import (
    CONFIGMAPS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from mews.kube.client.port import DeleteOptions, KubeApi, Patch
from tests.kube.emulated.controllers.puppet import ENDS, STUCK

PATIENCE_S = 90.0
REST_S = 1.5
"""After something was seen to come about: for what comes with it."""
SHOWN = (
    *(
        DEPLOYMENTS,
        REPLICA_SETS,
        REPLICATION_CONTROLLERS,
        DAEMON_SETS,
        STATEFUL_SETS,
        CONTROLLER_REVISIONS,
        JOBS,
        PODS,
        DISRUPTION_BUDGETS,
        RESOURCE_QUOTAS,
    ),
    *(ENDPOINT_SLICES, ENDPOINTS, SERVICE_ACCOUNTS),
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_ADDRESS = re.compile(r"10\.0\.0\.\d+")
_OWN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generateName", "deletionTimestamp")


@dataclass
class Stage:
    """Where one story is told; ``seen`` has what was there at each of its turns."""

    kube: KubeApi
    namespace: str
    seen: list[tuple[str, list[str]]] = field(default_factory=list)

    async def make(self, resource: Resource, name: str, **body: Any) -> Object:
        metadata = {"name": name, **body.pop("metadata", {})}
        return await self.kube.create(resource, {"metadata": metadata, **body}, namespace=self.namespace)

    async def change(self, resource: Resource, name: str, body: Mapping[str, Any]) -> None:
        await self.kube.patch(resource, name, body, kind=Patch.MERGE, namespace=self.namespace)

    async def get(self, resource: Resource, name: str) -> Object:
        return await self.kube.get(resource, name, namespace=self.namespace)

    async def all(self, resource: Resource) -> list[Object]:
        return (await self.kube.list(resource, namespace=self.namespace)).items

    async def until(self, what: str, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait for it, rest a little, and note what is there."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + PATIENCE_S
        while not await holds():
            if loop.time() > end_s:
                raise AssertionError(f"{self.namespace}: not within {PATIENCE_S:g} s: {what}\n{await self.shown()}")
            await asyncio.sleep(0.1)
        await asyncio.sleep(REST_S)
        self.seen.append((what, await self.shown()))

    async def status(self, resource: Resource, name: str, **numbers: int) -> bool:
        status = (await self.get(resource, name)).get("status") or {}
        return all(status.get(key, 0) == value for key, value in numbers.items())

    async def shown(self) -> list[str]:
        found = [plain(resource, obj) for resource in SHOWN for obj in await self.all(resource)]
        return [
            json.dumps(obj, sort_keys=True) for obj in sorted(found, key=lambda obj: json.dumps(obj, sort_keys=True))
        ]

    async def told(self) -> dict[str, list[str]]:
        """The events by what they are about, in their order."""
        events = sorted(await self.all(EVENTS), key=lambda event: int(name_of(event).rpartition(".")[2], 16))
        found: dict[str, list[str]] = {}
        for event in events:
            about = event["involvedObject"]
            count = event["count"] if event["reason"] != "NoPods" else "some"  # pods come sooner or later
            said = (event["source"]["component"], event["type"], event["reason"], event["message"], count)
            if about["kind"] != "Pod":
                found.setdefault(smooth(f"{about['kind']}/{about['name']}"), []).append(smooth(str(said)))
        return {about: _runs(said) for about, said in sorted(found.items())}


def _runs(said: list[str]) -> list[str]:
    """Pods are made and deleted many at a time, in an order that is nobody's: such runs are sorted."""
    made: list[str] = []
    for _, run in groupby(said, key=lambda each: each.partition("pod: ")[0]):
        made += sorted(run)
    return made


def smooth(text: str) -> str:
    """Without times, uids, addresses and random ends of names."""
    for pattern, word in ((_TIME, "<time>"), (_UID, "<uid>"), (_ADDRESS, "<ip>"), (_SUFFIX, "-*")):
        text = pattern.sub(word, text)
    return text


def plain(resource: Resource, obj: Object) -> Any:
    """An object without what differs from run to run."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _OWN and value}
    metadata["deleting"] = is_deleting(obj)
    kept = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}
    if resource == PODS:
        spec = obj["spec"]
        kept = {key: spec.get(key) for key in ("hostname", "subdomain", "tolerations", "affinity", "nodeName")}
        kept["env"] = [container.get("env") for container in spec["containers"]]
        kept["phase"] = obj["status"]["phase"]
    made = json.loads(smooth(json.dumps({"kind": resource.kind, "metadata": metadata, **kept})))
    for name in ("endpoints", "subsets"):
        if isinstance(made.get(name), list):
            made[name].sort(key=lambda part: json.dumps(part, sort_keys=True))
    if resource == ENDPOINT_SLICES:  # how often it was written is a matter of luck
        made["metadata"].pop("generation", None)
    (made["metadata"].get("annotations") or {}).pop("endpoints.kubernetes.io/last-change-trigger-time", None)
    if not made["metadata"].get("annotations", True):
        del made["metadata"]["annotations"]
    return made


def template(app: str, *, image: str = "x:1", policy: str | None = None, **annotations: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": image}], "terminationGracePeriodSeconds": 1}
    if policy is not None:
        spec["restartPolicy"] = policy
    return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": spec}


def workload(app: str, **spec: Any) -> dict[str, Any]:
    return {"spec": {"selector": {"matchLabels": {"app": app}}, "template": template(app), **spec}}


def image(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": name}]}
    return {"spec": {"template": {"spec": spec}}}


# Deployments and ReplicaSets


async def rolls_out_and_back(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=3))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=3))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"updatedReplicas": 3, "availableReplicas": 3, "replicas": 3}
    await stage.until("updated", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=2, **done))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:1"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    await stage.until("rolled back", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=3, **done))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})
    await stage.until("grown", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=5))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
    await stage.until("empty", lambda: stage.status(DEPLOYMENTS, "web", replicas=0, observedGeneration=5))


async def pauses(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    await stage.change(DEPLOYMENTS, "web", {"spec": {"paused": True}})
    await stage.until("paused", lambda: stage.status(DEPLOYMENTS, "web", observedGeneration=2))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    await stage.change(DEPLOYMENTS, "web", {"spec": {"replicas": 4}})
    await stage.until("grown while paused", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=4))
    await stage.change(DEPLOYMENTS, "web", {"metadata": {"annotations": {"note": "mine"}}})
    await stage.change(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await stage.until("resumed", lambda: stage.status(DEPLOYMENTS, "web", updatedReplicas=4, availableReplicas=4))


async def recreates(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2, strategy={"type": "Recreate"}))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    await stage.kube.patch(DEPLOYMENTS, "web", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
    await stage.until("updated", lambda: stage.status(DEPLOYMENTS, "web", **done))


async def gets_stuck(stage: Stage) -> None:
    body = workload("web", replicas=2, progressDeadlineSeconds=5, revisionHistoryLimit=0)
    body["spec"]["template"] = template("web", **{STUCK: "yes"})
    await stage.make(DEPLOYMENTS, "web", **body)

    async def late() -> bool:
        found = condition_of(await stage.get(DEPLOYMENTS, "web"), "Progressing") or {}
        return found.get("reason") == "ProgressDeadlineExceeded"

    await stage.until("late", late)
    change = {"spec": {"template": {"metadata": {"annotations": {STUCK: None}}}}}
    await stage.change(DEPLOYMENTS, "web", change)
    done = {"observedGeneration": 2, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}
    await stage.until("repaired", lambda: stage.status(DEPLOYMENTS, "web", **done))


async def adopts_and_lets_go(stage: Stage) -> None:
    labels = {"app": "rs"}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    await stage.make(PODS, "mine", metadata={"labels": labels}, spec=spec)
    await stage.make(REPLICA_SETS, "rs", **workload("rs", replicas=2))
    await stage.until("made", lambda: stage.status(REPLICA_SETS, "rs", readyReplicas=2))
    await stage.change(PODS, "mine", {"metadata": {"labels": {"app": "free"}}})

    async def replaced() -> bool:
        return len(await stage.all(PODS)) == 3 and await stage.status(REPLICA_SETS, "rs", readyReplicas=2)

    await stage.until("let go", replaced)


async def controls_replicas(stage: Stage) -> None:
    spec = {"selector": {"app": "rc"}, "template": template("rc"), "replicas": 2}
    await stage.make(REPLICATION_CONTROLLERS, "rc", spec=spec)
    await stage.until("made", lambda: stage.status(REPLICATION_CONTROLLERS, "rc", readyReplicas=2))
    await stage.change(REPLICATION_CONTROLLERS, "rc", {"spec": {"replicas": 3}})
    await stage.until("grown", lambda: stage.status(REPLICATION_CONTROLLERS, "rc", availableReplicas=3))
    await stage.change(REPLICATION_CONTROLLERS, "rc", {"spec": {"replicas": 0}})

    async def none() -> bool:
        return not await stage.all(PODS)

    await stage.until("shrunk", none)


# Jobs


def job(end: str | None, **spec: Any) -> dict[str, Any]:
    body = template("job", policy="Never", **({} if end is None else {ENDS: end}))
    del body["metadata"]["labels"]
    return {"spec": {"template": body, **spec}}


def ended(stage: Stage, kind: str) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return (condition_of(await stage.get(JOBS, "job"), kind) or {}).get("status") == "True"

    return holds


async def completes(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", completions=4, parallelism=2))
    await stage.until("complete", ended(stage, "Complete"))


async def completes_by_index(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", completions=3, parallelism=3, completionMode="Indexed"))
    await stage.until("complete", ended(stage, "Complete"))


async def fails(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Failed", backoffLimit=1))
    await stage.until("failed", ended(stage, "Failed"))


async def fails_by_rule(stage: Stage) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    await stage.make(JOBS, "job", **job("Failed", backoffLimit=3, podFailurePolicy={"rules": [rule]}))
    await stage.until("failed", ended(stage, "Failed"))


async def runs_out_of_time(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job(None, parallelism=2, activeDeadlineSeconds=3))
    await stage.until("failed", ended(stage, "Failed"))


async def is_suspended(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job(None, parallelism=2, completions=2, suspend=True))
    await stage.until("born suspended", ended(stage, "Suspended"))
    await stage.change(JOBS, "job", {"spec": {"suspend": False}})
    await stage.until("running", lambda: stage.status(JOBS, "job", ready=2))
    await stage.change(JOBS, "job", {"spec": {"suspend": True}})
    await stage.until("suspended", ended(stage, "Suspended"))


async def is_not_kept(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", ttlSecondsAfterFinished=1))

    async def gone() -> bool:
        return not await stage.all(JOBS) and not await stage.all(PODS)

    await stage.until("gone", gone)


# Others


async def is_everywhere(stage: Stage) -> None:
    budget = {"selector": {"matchLabels": {"app": "ds"}}, "minAvailable": 1}
    await stage.make(DISRUPTION_BUDGETS, "number", spec=budget)
    await stage.make(DAEMON_SETS, "ds", **workload("ds"))
    await stage.until("made", lambda: stage.status(DAEMON_SETS, "ds", numberAvailable=2))
    await stage.kube.patch(DAEMON_SETS, "ds", image("x:2"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}
    await stage.until("updated", lambda: stage.status(DAEMON_SETS, "ds", **done))


async def goes_one_by_one(stage: Stage) -> None:
    await stage.make(STATEFUL_SETS, "db", **workload("db", replicas=3, serviceName="db"))
    await stage.until("made", lambda: stage.status(STATEFUL_SETS, "db", availableReplicas=3))
    await stage.kube.patch(STATEFUL_SETS, "db", image("x:<2>"), kind=Patch.STRATEGIC, namespace=stage.namespace)
    done = {"observedGeneration": 2, "currentReplicas": 3, "availableReplicas": 3}
    await stage.until("updated", lambda: stage.status(STATEFUL_SETS, "db", **done))
    await stage.change(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
    await stage.until("shrunk", lambda: stage.status(STATEFUL_SETS, "db", replicas=1, observedGeneration=3))


async def is_served(stage: Stage) -> None:
    quota = {"hard": {"pods": "10", "requests.cpu": "4", "count/replicasets.apps": "3"}}
    await stage.make(RESOURCE_QUOTAS, "quota", spec=quota)
    await stage.make(SERVICES, "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80, "name": "http"}]})
    await stage.make(SERVICES, "names", spec={"selector": {"app": "web"}, "clusterIP": "None"})
    body = workload("web", replicas=3)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    await stage.make(REPLICA_SETS, "web", **body)
    budget = {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "50%"}
    await stage.make(DISRUPTION_BUDGETS, "share", spec=budget)

    async def ready() -> bool:
        slices = await stage.all(ENDPOINT_SLICES)
        reached = [e for s in slices for e in s.get("endpoints") or () if e["conditions"]["ready"]]
        return len(reached) == 6 and await stage.status(DISRUPTION_BUDGETS, "share", disruptionsAllowed=2)

    await stage.until("ready", ready)


async def leaves_nothing(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=2))
    await stage.until("made", lambda: stage.status(DEPLOYMENTS, "web", availableReplicas=2))
    options = DeleteOptions(propagation="Foreground")
    await stage.kube.delete(DEPLOYMENTS, "web", namespace=stage.namespace, options=options)
    await stage.until("gone", lambda: _gone(stage, DEPLOYMENTS, "web"))


async def leaves_orphans(stage: Stage) -> None:
    await stage.make(REPLICA_SETS, "rs", **workload("rs", replicas=2))
    await stage.until("made", lambda: stage.status(REPLICA_SETS, "rs", readyReplicas=2))
    options = DeleteOptions(propagation="Orphan")
    await stage.kube.delete(REPLICA_SETS, "rs", namespace=stage.namespace, options=options)
    await stage.until("gone", lambda: _gone(stage, REPLICA_SETS, "rs"))


async def loses_an_owner(stage: Stage) -> None:
    owner = await stage.make(CONFIGMAPS, "owner")
    there = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    never = {**there, "name": "nobody", "uid": "11111111-1111-4111-8111-111111111111"}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    for name, owners in (("one", [there]), ("none", [never]), ("two", [there, never])):
        await stage.make(PODS, name, metadata={"ownerReferences": owners}, spec=spec)

    async def tidy() -> bool:
        pods = {name_of(pod): pod["metadata"].get("ownerReferences", []) for pod in await stage.all(PODS)}
        return sorted(pods) == ["one", "two"] and len(pods["two"]) == 1

    await stage.until("tidy", tidy)
    await stage.kube.delete(CONFIGMAPS, "owner", namespace=stage.namespace)

    async def empty() -> bool:
        return not await stage.all(PODS)

    await stage.until("empty", empty)


async def _gone(stage: Stage, resource: Resource, name: str) -> bool:
    try:
        await stage.get(resource, name)
    except NotFound:
        return True
    return False


STORIES: Sequence[Callable[[Stage], Awaitable[None]]] = (
    *(rolls_out_and_back, pauses, recreates, gets_stuck, adopts_and_lets_go, controls_replicas),
    *(completes, completes_by_index, fails, fails_by_rule, runs_out_of_time, is_suspended, is_not_kept),
    *(is_everywhere, goes_one_by_one, is_served, leaves_nothing, leaves_orphans, loses_an_owner),
)
