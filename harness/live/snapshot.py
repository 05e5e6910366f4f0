"""A session at one moment, as a file: its hardware and stack, what users made, the chassis' tables, faults, hosts.

What controllers made of users' objects is not kept, as they make it again; nor is what has ended. ``Snapshot`` reads
the file, ``snapshot_document`` writes it; ``mews.harness.live.restoring`` makes steps of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.harness.live.node_pin import unpinned
from mews.harness.live.recording import KINDS, as_applied, placement_of, sessions_fields
from mews.harness.live.scenario_file import scenario_document
from mews.harness.scenario.base import Model
from mews.harness.scenario.complaints import first_complaint
from mews.harness.scenario.loader import parse_scenario
from mews.harness.scenario.model import Scenario
from mews.kube.api.objects import (
    Object,
    condition_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
)
from mews.kube.api.resources import Resource
from mews.yaml_text import written_yaml

_EARLY = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "LimitRange",
    "ResourceQuota",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
    "PodDisruptionBudget",
)
"""Kinds that others rest on, in the order in which they are made; then come pods, then all that makes pods."""
LATE = (
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
"""What judges others: what is there was let in already."""
_COUNTS = ("readyReplicas", "numberReady")
_HOST_FIELDS = ("power", "driver", "draining", "persistence", "stage")


class Snapshot(Model):
    """The file. ``scenario`` has hardware and stack as a scenario file; ``table``: chassis, device, port (null: free);
    ``hosts``: host, GPUID, what operators changed; ``telemetry``: GPUID, what is set; ``faults``: ``fault`` steps of
    those that stand; ``down``: components that were killed; ``nodes``: what users changed of them; ``early``, ``pods``,
    ``others`` and ``late`` are objects in the order in which they are made, ``pods`` with the node that each was on;
    ``ready`` are checks of others that held; ``left_out`` says what is not in it."""

    api_version: Literal["mews/v1"]
    kind: Literal["Snapshot"]
    name: str
    cluster: str
    scenario: dict[str, Any]
    table: dict[str, dict[str, str | None]]
    hosts: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    telemetry: dict[str, dict[str, Any]] = Field(default_factory=dict)
    faults: tuple[dict[str, Any], ...] = ()
    down: tuple[str, ...] = ()
    nodes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    early: tuple[Object, ...] = ()
    pods: tuple[PlacedPod, ...] = ()
    others: tuple[Object, ...] = ()
    ready: tuple[dict[str, Any], ...] = ()
    late: tuple[Object, ...] = ()
    left_out: tuple[str, ...] = ()

    def objects(self) -> list[Object]:
        """Return all of them."""
        return [*self.early, *(pod.object for pod in self.pods), *self.others, *self.late]

    def as_scenario(self) -> Scenario:
        """Return its hardware and stack, as a scenario without steps.

        Raises ScenarioError.
        """

        return parse_scenario(written_yaml(self.scenario), Path(f"snapshot {self.name}"))


class PlacedPod(Model):
    """A pod and the node that it was bound to, "" for none; ``running`` and ``ready`` as they were."""

    object: Object
    node: str = ""
    running: bool = False
    ready: bool = False


Snapshot.model_rebuild()


def read_snapshot(document: Any) -> Snapshot:
    """Return the snapshot of a parsed file.

    Raises ValueError, in one line.
    """
    if not isinstance(document, Mapping) or document.get("kind") != "Snapshot":
        kind = document.get("kind") if isinstance(document, Mapping) else type(document).__name__
        raise ValueError(f"kind {kind!r}: must be Snapshot, as `mews snapshot save` writes it")
    try:
        return Snapshot.model_validate(document)
    except ValidationError as error:
        place, text = first_complaint(error)
        raise ValueError(f"{place}: {text}") from None


def snapshot_document(
    name: str,
    cluster: str,
    scenario: Scenario,
    *,
    objects: Sequence[tuple[Resource, Object]],
    nodes: Sequence[Object],
    table: Mapping[str, Mapping[str, Mapping[str, Any]]],
    hosts: Mapping[str, Mapping[str, Any]],
    telemetry: Mapping[str, Mapping[str, Mapping[str, Any]]],
    faults: Mapping[str, Sequence[Mapping[str, Any]]],
    down: Sequence[str],
    left_out: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the file of what is seen now.

    Raises ValueError for a stack of which parts are the user's own programs.
    """
    missing, ready = list(left_out), list[dict[str, Any]]()
    kept: dict[str, list[Any]] = {"early": [], "pods": [], "others": [], "late": []}
    for resource, obj in sorted(objects, key=_order):
        reason = _why_not(resource, obj)
        if reason:
            missing.append(f"{_called(resource, obj)}: {reason}")
            continue
        made = as_made(obj, resource)
        if made["metadata"].pop("ownerReferences", None):
            missing.append(f"ownerReferences of {_called(resource, obj)}: their owners get other uids")
        if resource.kind == "Pod":
            kept["pods"].append(_placed(obj, made))
        else:
            part = "early" if resource.kind in _EARLY else "late" if resource.kind in LATE else "others"
            kept[part].append(made)
            ready += _readiness(resource, obj) if part == "others" else ()
    return {
        "apiVersion": "mews/v1",
        "kind": "Snapshot",
        "name": name,
        "cluster": cluster,
        "scenario": scenario_document(name, scenario),
        "table": {chassis: {device: row["port"] for device, row in rows.items()} for chassis, rows in table.items()},
        "hosts": {host: _devices_of(view) for host, view in hosts.items()},
        "telemetry": _settings(table, telemetry),
        "faults": list(_standing(faults, missing)),
        "down": sorted(down),
        "nodes": {name_of(node): found for node in nodes if (found := placement_of(node))},
        **kept,
        "ready": ready,
        "leftOut": missing,
    }


def as_made(obj: Object, resource: Resource) -> Object:
    """Return the object as its users made it: without what server, schedulers, controllers and components put there."""
    made = as_applied(obj, resource)
    owned = sessions_fields(obj)
    for name in ("annotations", "labels"):
        mine = owned.get("f:metadata", {}).get(f"f:{name}", {})
        found = {key: value for key, value in made["metadata"].get(name, {}).items() if f"f:{key}" in mine}
        made["metadata"].pop(name, None)
        if found:
            made["metadata"][name] = found
    spec = made.get("spec")
    if isinstance(spec, dict):
        for kind, name in (("Pod", "nodeName"), ("PersistentVolumeClaim", "volumeName")):
            if resource.kind == kind and f"f:{name}" not in owned.get("f:spec", {}):
                spec.pop(name, None)
        if resource.kind == "PersistentVolume" and "claimRef" in spec:
            spec["claimRef"] = {k: v for k, v in spec["claimRef"].items() if k not in ("uid", "resourceVersion")}
    return made


def _order(each: tuple[Resource, Object]) -> tuple[int, str]:
    resource, obj = each
    place = _EARLY.index(resource.kind) if resource.kind in _EARLY else len(_EARLY)
    return place, str(obj["metadata"].get("creationTimestamp") or "")


def _called(resource: Resource, obj: Object) -> str:
    return f"{resource.kind} {key_of(obj)}"


def _why_not(resource: Resource, obj: Object) -> str:
    if is_deleting(obj):
        return "it is being deleted"
    if resource.kind == "Pod" and is_terminal(obj):
        return f"it has ended ({obj['status']['phase']})"
    ended = condition_of(obj, "Complete") or condition_of(obj, "Failed") or condition_of(obj, "Succeeded")
    if resource.kind not in KINDS or resource.kind == "Job":
        return f"it has ended ({ended['type']})" if ended is not None and ended.get("status") == "True" else ""
    return ""


def _readiness(resource: Resource, obj: Object) -> Iterator[dict[str, Any]]:
    """Yield what is awaited of it when it is made again: so many replicas, or that it runs."""
    status = obj.get("status") or {}
    counts = {key: status[key] for key in _COUNTS if status.get(key)}
    running = [each for each in ("Running", "Available") if (condition_of(obj, each) or {}).get("status") == "True"]
    conditions = {"conditions": {"$contains": [{"type": each, "status": "True"} for each in running]}}
    if counts or running:
        named = {"name": name_of(obj), **({"namespace": namespace_of(obj)} if resource.namespaced else {})}
        wanted = {**counts, **(conditions if running else {})}
        yield {
            "object": {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": named, "status": wanted}
        }


def _placed(obj: Object, made: Object) -> dict[str, Any]:
    ready = (condition_of(obj, "Ready") or {}).get("status") == "True"
    running = (obj.get("status") or {}).get("phase") == "Running"
    node = node_name_of(obj) or ""
    return {"object": unpinned(made, node), "node": node, "running": running, "ready": ready}


def _devices_of(view: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {gpuid: {name: row[name] for name in _HOST_FIELDS} for gpuid, row in (view.get("devices") or {}).items()}


def _settings(
    table: Mapping[str, Mapping[str, Mapping[str, Any]]], telemetry: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> dict[str, dict[str, Any]]:
    return {
        str(table[chassis][device]["gpuid"]): dict(one["set"])
        for chassis, devices in telemetry.items()
        for device, one in devices.items()
        if one["set"]
    }


def _standing(faults: Mapping[str, Sequence[Mapping[str, Any]]], missing: list[str]) -> Iterator[dict[str, Any]]:
    """Yield those that can still strike, with as many strikes as are left, and those that last until they are
    cleared."""
    from mews.emulator.host.faults.registry import HOST_FAULTS
    from mews.harness.api_faults.registry import API_FAULTS

    for owner, found in faults.items():
        where, _, name = owner.partition("/")
        registry = {"host": HOST_FAULTS, "chassis": CHASSIS_FAULTS}.get(where, API_FAULTS)
        place = {where: name} if where in ("host", "chassis") else {"component": owner}
        for fault in found:
            if fault.get("built_in"):
                continue
            spec = {"kind": fault["kind"], **fault["spec"]}
            lasts = hasattr(registry.find(fault["kind"]), "undo")
            if fault["left"] == 0 and not lasts:
                continue
            if fault["left"] and fault["fired"]:
                spec["count"] = fault["left"]
            if "expires_s" in spec:
                missing.append(f"fault {fault['fault']} of {owner}: how much of its expires_s is over")
            yield {**place, "add": spec}
