"""Where lives of workloads are told: on any API server with controllers; and what is left of them in a form that can
be compared."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from mews.kube.api.objects import (
    Object,
    is_deleting,
    name_of,
)
from mews.kube.api.resources import (
    AUTOSCALERS,
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICE_ACCOUNTS,
    STATEFUL_SETS,
    Resource,
)
from mews.kube.client.port import KubeApi, Patch

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
        PERSISTENT_VOLUME_CLAIMS,
        DISRUPTION_BUDGETS,
        RESOURCE_QUOTAS,
        AUTOSCALERS,
    ),
    *(ENDPOINT_SLICES, ENDPOINTS, SERVICE_ACCOUNTS),
)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_ADDRESS = re.compile(r"10\.0\.0\.\d+")
_RIVALS = re.compile(r"(?<=multiple HPAs: \[)[^]]*")
_EVERY_15_S = ("persistentvolume-controller", "horizontal-pod-autoscaler")
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
            # Pods come sooner or later; volumes and autoscalers are looked at every 15 s since nobody knows when.
            is_chance = event["reason"] == "NoPods" or event["source"]["component"] in _EVERY_15_S
            count = "some" if is_chance else event["count"]
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
    """Without times, uids, addresses, random ends of names and random order."""
    for pattern, word in ((_TIME, "<time>"), (_UID, "<uid>"), (_ADDRESS, "<ip>"), (_SUFFIX, "-*")):
        text = pattern.sub(word, text)
    return _RIVALS.sub(lambda match: " ".join(sorted(match[0].split())), text)  # upstream's order is a map's


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
