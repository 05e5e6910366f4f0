"""What users do to a live cluster, as steps of a scenario: objects made, changed and deleted, and steps by hand.

Who did something is read off ``metadata.managedFields``: components of the cluster and of the systems write under their
own names, everybody else is a user. What controllers make of users' objects is not recorded, as they make it again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec import Struct

from mews.harness.live.packing import PackedObjects, identity_of
from mews.harness.watch_feed import LISTED, Feed, WatchRecord
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, clone, condition_of, is_deleting, name_of, namespace_of, uid_of
from mews.kube.api.resources import CRDS, NODES, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.systems import registry

log = logging.getLogger(__name__)

KINDS = (
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Job",
    "LimitRange",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "RuntimeClass",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
)
"""Built-in kinds that are recorded; of other kinds all are that are defined by a CustomResourceDefinition."""

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "mews")
BY_STEPS = "mews-steps"
"""The field manager of what is written by a session's steps."""
_OF_THE_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_EVICTED = "EvictionByEvictionAPI"
_ESTABLISHING_S = 1.0


class RecordedAction(Struct, frozen=True):
    """One step, done ``t`` seconds from the start of the journal."""

    t: float
    step: Mapping[str, Any]


@cache
def _ours() -> tuple[str, ...]:
    """Return how the names begin under which components write: in process, and those of the systems in pods."""
    return ("mews-", *(f"{name}-" for name in registry.names()))


def users_managers(obj: Object) -> dict[str, Any]:
    """Manager -> what it has of the object apart from its status, of those that are users."""
    found: dict[str, Any] = {}
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        manager = str(entry.get("manager", ""))
        if manager not in COMPONENTS and not manager.startswith(_ours()) and not entry.get("subresource"):
            found[manager] = (entry.get("time"), entry.get("fieldsV1"))
    return found


def is_users(obj: Object) -> bool:
    """Return whether a user made it, rather than a component or the controller of something."""
    owners = obj.get("metadata", {}).get("ownerReferences") or ()
    return bool(users_managers(obj)) and not any(owner.get("controller") for owner in owners)


def is_sessions(obj: Object) -> bool:
    """Return whether a user made it, by hand or by a step."""
    managers = {entry.get("manager") for entry in obj.get("metadata", {}).get("managedFields") or ()}
    return is_users(obj) or BY_STEPS in managers


def sessions_fields(obj: Object) -> dict[str, Any]:
    """Return what users and steps own of the object apart from its status, as ``fieldsV1`` has it."""
    found: dict[str, Any] = {}
    users = users_managers(obj)
    for entry in obj.get("metadata", {}).get("managedFields") or ():
        if (entry.get("manager") in users or entry.get("manager") == BY_STEPS) and not entry.get("subresource"):
            _merge(found, entry.get("fieldsV1") or {})
    return found


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        _merge(into.setdefault(key, {}), value)


def placement_of(node: Object) -> dict[str, Any]:
    """Return what users made of a node: its labels of theirs, its taints but Kubernetes' own, whether it is
    cordoned."""
    owned = sessions_fields(node).get("f:metadata", {}).get("f:labels", {})
    labels = {key: value for key, value in (node["metadata"].get("labels") or {}).items() if f"f:{key}" in owned}
    spec = _placement(node)["spec"]
    return {**({"labels": labels} if labels else {}), **spec}


def as_applied(obj: Object, resource: Resource) -> Object:
    """Return the object as somebody could apply it: without what the server and the controllers put there."""
    made: Object = {"apiVersion": resource.api_version, "kind": resource.kind}
    made |= {key: clone(value) for key, value in obj.items() if key not in ("apiVersion", "kind", "status")}
    metadata = {key: value for key, value in made["metadata"].items() if key not in _OF_THE_SERVER}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations
    made["metadata"] = metadata
    spec = made.get("spec")
    if resource.kind == "Pod" and isinstance(spec, dict):
        _without_admitted(spec)
    if resource.kind in ("Job", "Service", "PersistentVolumeClaim") and isinstance(spec, dict):
        _without_assigned(resource.kind, made)
    return made


def as_written(obj: Object, resource: Resource) -> Object:
    """Return the object as its user wrote it, where kubectl left that in an annotation, else ``as_applied``."""
    text = (obj["metadata"].get("annotations") or {}).get(_LAST_APPLIED)
    try:
        written = json.loads(text) if text else None
    except ValueError:
        written = None
    if not isinstance(written, dict) or not isinstance(written.get("metadata"), dict):
        return as_applied(obj, resource)
    metadata = {**written["metadata"], "name": name_of(obj)}
    metadata.pop("generateName", None)
    if not metadata.get("annotations"):
        metadata.pop("annotations", None)
    if resource.namespaced:
        metadata["namespace"] = namespace_of(obj)
    return {**{key: value for key, value in written.items() if key != "status"}, "metadata": metadata}


def _without_admitted(spec: dict[str, Any]) -> None:
    """A pod's spec without the token's volume and the tolerations that admission adds to every pod."""
    volumes = [
        each for each in spec.get("volumes") or () if not str(each.get("name", "")).startswith("kube-api-access-")
    ]
    spec.pop("volumes", None)
    if volumes:
        spec["volumes"] = volumes
    for container in (*spec.get("containers", ()), *(spec.get("initContainers") or ())):
        mounts = _without_token(container.get("volumeMounts"))
        container.pop("volumeMounts", None)
        if mounts:
            container["volumeMounts"] = mounts
    tolerations = [
        each
        for each in spec.get("tolerations") or ()
        if not (each.get("tolerationSeconds") == 300 and str(each.get("key", "")).startswith("node.kubernetes.io/"))
    ]
    spec.pop("tolerations", None)
    if tolerations:
        spec["tolerations"] = tolerations
    for name in ("priority", "preemptionPolicy", "enableServiceLinks"):
        spec.pop(name, None)
    if spec.get("serviceAccountName") == "default":
        spec.pop("serviceAccountName"), spec.pop("serviceAccount", None)


def _without_token(named: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    return [each for each in named or () if not str(each.get("name", "")).startswith("kube-api-access-")]


def _without_assigned(kind: str, made: Object) -> None:
    """Without addresses, selectors and volumes that the server gave it."""
    spec = made["spec"]
    if kind == "Service" and spec.get("clusterIP") != "None":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
    if kind == "Job" and not spec.get("manualSelector"):
        spec.pop("selector", None)
        labels = spec.get("template", {}).get("metadata", {}).get("labels") or {}
        for name in [
            name for name in labels if name.removeprefix("batch.kubernetes.io/") in ("controller-uid", "job-name")
        ]:
            labels.pop(name)


def merge_patch(old: Any, new: Any) -> Any:
    """Return the JSON merge patch (RFC 7396) from one mapping to the other."""
    patch: dict[str, Any] = {}
    for key in sorted({*old, *new}):
        if key not in new:
            patch[key] = None
        elif key not in old:
            patch[key] = new[key]
        elif isinstance(old[key], dict) and isinstance(new[key], dict):
            deeper = merge_patch(old[key], new[key])
            if deeper:
                patch[key] = deeper
        elif old[key] != new[key]:
            patch[key] = new[key]
    return patch


def steps_for(resource: Resource, old: Object | None, new: Object | None) -> list[dict[str, Any]]:
    """Return the steps by which a user got from one to the other; none where it was somebody else's doing."""
    if new is not None and old is not None and uid_of(old) != uid_of(new):
        return [*steps_for(resource, old, None), *steps_for(resource, None, new)]
    if resource == NODES:
        return [] if old is None or new is None else _patch(resource, old, new, _placement)
    if old is None:
        return [] if new is None or not is_users(new) else [{"apply": as_written(new, resource)}]
    if not is_sessions(old):
        return []
    if new is None or (is_deleting(new) and not is_deleting(old)):
        return [] if is_deleting(old) else _deletion(resource, new or old)
    return _patch(resource, old, new, lambda obj: as_applied(obj, resource))


def _patch(resource: Resource, old: Object, new: Object, seen: Any) -> list[dict[str, Any]]:
    if users_managers(old) == users_managers(new):
        return []
    body = merge_patch(seen(old), seen(new))
    if not body:
        return []
    return [{"patch": {**_target(resource, new), "body": body}}]


def _placement(node: Object) -> Object:
    """Return what of a node operators change, without the taints that Kubernetes sets itself."""
    spec, metadata = node.get("spec") or {}, node["metadata"]
    taints = [taint for taint in spec.get("taints") or () if not taint["key"].startswith("node.kubernetes.io/")]
    seen: Object = {"metadata": {"labels": metadata.get("labels") or {}}, "spec": {}}
    if taints:
        seen["spec"]["taints"] = taints
    if spec.get("unschedulable"):
        seen["spec"]["unschedulable"] = True
    return seen


def _deletion(resource: Resource, obj: Object) -> list[dict[str, Any]]:
    if resource.kind == "Pod":
        disrupted = condition_of(obj, "DisruptionTarget")
        if disrupted is not None:
            evicted = disrupted.get("reason") == _EVICTED
            return [{"evict": {"pod": name_of(obj), "namespace": namespace_of(obj)}}] if evicted else []
    finished = condition_of(obj, "Complete") or condition_of(obj, "Failed")
    if finished and (obj.get("spec") or {}).get("ttlSecondsAfterFinished") is not None:
        return []
    return [{"delete": {**_target(resource, obj), "wait": False, "missingOk": True}}]


def _target(resource: Resource, obj: Object) -> dict[str, Any]:
    namespace = {"namespace": namespace_of(obj)} if resource.namespaced else {"namespace": None}
    return {"kind": resource.kind, "apiVersion": resource.api_version, "name": name_of(obj), **namespace}


def _deleted_by(step: Mapping[str, Any]) -> tuple[str, str, str]:
    target = step.get("delete") or {**step["evict"], "kind": "Pod", "name": step["evict"]["pod"]}
    namespace = target.get("namespace", "default")
    return target["kind"], namespace or "", target["name"]


class ObjectRecording:
    """Watches what users do: run ``run()`` as a task. While ``restoring``, what happens is the doing of steps."""

    def __init__(self, kube: KubeApi, elapsed_s: Any, *, ignored: Sequence[str] = ()) -> None:
        self._kube = kube
        self._elapsed_s = elapsed_s
        self.ignored = frozenset(("kube-system", "kube-public", "kube-node-lease", *ignored))
        self._leaving: set[str] = set()
        self._first: set[str] = set()
        self._late: set[Resource] = set()
        self._asked: set[tuple[str, str, str]] = set()
        self.restoring = False
        self._feeds: dict[Resource, Feed] = {}
        self._new_kinds = asyncio.Event()
        self._found = asyncio.Event()
        self.actions: list[RecordedAction] = []

    async def run(self) -> None:
        """Watch until cancelled; kinds that are defined later are watched as well."""
        async with asyncio.TaskGroup() as group:
            while True:
                resources = await self._resources()
                if not resources:
                    await rest(_ESTABLISHING_S)
                    continue
                for resource in resources:
                    if resource not in self._feeds:
                        if self._found.is_set():
                            self._late.add(resource)
                        self._feeds[resource] = Feed(
                            self._kube, resource, self._saw, keep=_remembered, objects=PackedObjects()
                        )
                        group.create_task(self._feeds[resource].run())
                self._found.set()
                await self._new_kinds.wait()
                self._new_kinds.clear()
                await rest(_ESTABLISHING_S)

    async def synced(self) -> None:
        """Wait until what was there at the start is known: it is nobody's doing."""
        await self._found.wait()
        for feed in list(self._feeds.values()):
            await feed.synced()

    def objects(self) -> list[tuple[Resource, Object]]:
        """Return those of users that are there now, apart from what was there at the start."""
        return [
            (resource, obj)
            for resource, feed in self._feeds.items()
            for obj in feed.objects.values()
            if resource != NODES
            and is_sessions(obj)
            and namespace_of(obj) not in self.ignored
            and uid_of(obj) not in self._first
        ]

    def nodes(self) -> list[Object]:
        """Return the nodes as they are now."""
        return list(self._feeds[NODES].objects.values()) if NODES in self._feeds else []

    async def _resources(self) -> list[Resource]:
        with suppress(ApiError, UnavailableError):
            served = await self._kube.discovery()
            defined = {
                (crd["spec"]["group"], crd["spec"]["names"]["plural"]) for crd in (await self._kube.list(CRDS)).items
            }
            wanted = [each for each in served if (each.group, each.plural) in defined or _is_recorded(each)]
            return [NODES, *_one_version_each(wanted)]
        return []

    def _saw(self, seen: WatchRecord) -> None:
        if seen.resource == CRDS and seen.old is None and seen.new is not None:
            self._new_kinds.set()
        obj = seen.new or seen.old
        if obj is None or namespace_of(obj) in self.ignored or namespace_of(obj) in self._leaving:
            return
        if seen.type == LISTED and seen.old is None and seen.stream == 1 and seen.resource not in self._late:
            if is_sessions(obj):
                self._first.add(uid_of(obj))
            return
        if seen.resource.kind == "Namespace":
            (self._leaving.add if seen.new is None or is_deleting(seen.new) else self._leaving.discard)(name_of(obj))
        if self.restoring:
            return
        t = self._elapsed_s()
        steps = steps_for(seen.resource, seen.old, seen.new)
        self.actions += [RecordedAction(t, step) for step in steps if not self._is_asked(step)]

    def asked(self, step: Mapping[str, Any]) -> None:
        """What is deleted now is deleted by a step, which is recorded itself."""
        if "delete" in step or "evict" in step:
            self._asked.add(_deleted_by(step))

    def _is_asked(self, step: Mapping[str, Any]) -> bool:
        if ("delete" not in step and "evict" not in step) or _deleted_by(step) not in self._asked:
            return False
        self._asked.discard(_deleted_by(step))
        return True


def _remembered(obj: Object) -> Object:
    """Nodes are the cluster's own, and changed by users all the same."""
    return obj if is_sessions(obj) or obj.get("kind") == "Node" else identity_of(obj)


def _is_recorded(resource: Resource) -> bool:
    builtin = "." not in resource.group or resource.group.endswith(".k8s.io")
    return builtin and resource.kind in KINDS


def _one_version_each(resources: Sequence[Resource]) -> list[Resource]:
    """Return the first served version of each; discovery has the preferred one first."""
    return list({(each.group, each.plural): each for each in reversed(resources)}.values())
