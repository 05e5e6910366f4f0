"""The patch by which koordlet keeps its node's Device object, and what it writes beside the report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, is_terminal, labels_of, name_of, namespace_of, uid_of
from mews.systems.koordinator.allocations import DeviceAllocation, allocations_of
from mews.systems.koordinator.devices import CheckpointEntry, NodeDevice, NodeDeviceReport, as_object
from mews.systems.koordinator.errors import BadDeviceError
from mews.systems.koordinator.names import CHECKPOINTS, FOUND, GPU, LINKS, OLD_CHECKPOINTS

_NOTES = (LINKS, CHECKPOINTS, FOUND, OLD_CHECKPOINTS)
"""The annotations that koordlet writes, or takes away where it has nothing to say."""


def wanted_object(
    report: NodeDeviceReport, node: Object, *, labels: Mapping[str, str], allocations: Sequence[Mapping[str, Any]]
) -> Object:
    """Return the whole object for a node that has none: the Node owns it, as koordlet has it."""
    made = as_object(report)
    made["metadata"].setdefault("labels", {}).update(labels)
    made["metadata"]["ownerReferences"] = [_owner(node)]
    if allocations:
        made["status"] = {"allocations": list(allocations)}
    return made


def device_patch(there: Object, wanted: Object) -> dict[str, Any]:
    """Return what to change of the object that is there; {} for nothing. Annotations and labels of others stay."""
    body: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    notes, old_notes = annotations_of(wanted), annotations_of(there)
    if changed := {key: notes.get(key) for key in _NOTES if notes.get(key) != old_notes.get(key)}:
        metadata["annotations"] = changed
    labels = {key: text for key, text in labels_of(wanted).items() if labels_of(there).get(key) != text}
    if labels:
        metadata["labels"] = labels
    owners = wanted["metadata"]["ownerReferences"]
    if there["metadata"].get("ownerReferences") != owners:
        metadata["ownerReferences"] = owners
    if metadata:
        body["metadata"] = metadata
    if (there.get("spec") or {}).get("devices") != wanted["spec"]["devices"]:
        body["spec"] = {"devices": wanted["spec"]["devices"]}
    allocations = (wanted.get("status") or {}).get("allocations") or []
    if ((there.get("status") or {}).get("allocations") or []) != allocations:
        body["status"] = {"allocations": allocations}
    return body


def _owner(node: Object) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "name": name_of(node),
        "uid": uid_of(node),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def live_allocations(pods: Iterable[Object]) -> dict[str, tuple[Object, tuple[DeviceAllocation, ...]]]:
    """UID -> pod and its devices, of the pods that live and whose annotation can be read."""
    found = {}
    for pod in pods:
        if is_terminal(pod):
            continue
        try:
            given = allocations_of(pod)
        except BadDeviceError:
            continue
        if given:
            found[uid_of(pod)] = (pod, given)
    return found


def status_allocations(
    given: Mapping[str, tuple[Object, tuple[DeviceAllocation, ...]]],
    entries: Iterable[CheckpointEntry],
    devices: Iterable[NodeDevice],
    pods: Mapping[str, Object],
) -> list[dict[str, Any]]:
    """``status.allocations`` of the published kind: which pod has which minors of each type, by its annotation, else by
    checkpoint or environment."""
    found: dict[str, dict[str, set[int]]] = {}
    known = dict(pods)
    for uid, (pod, allocations) in given.items():
        known[uid] = pod
        for each in allocations:
            found.setdefault(each.type, {}).setdefault(uid, set()).add(each.minor)
    minors = {device.id: device.minor for device in devices if device.type == GPU}
    for entry in entries:
        if entry.pod_uid in known and entry.pod_uid not in given:
            held = {minors[each] for each in entry.ids if each in minors}
            if held:
                found.setdefault(GPU, {}).setdefault(entry.pod_uid, set()).update(held)
    return [{"type": kind, "entries": _entries(found[kind], known)} for kind in sorted(found)]


def _entries(by_pod: Mapping[str, set[int]], pods: Mapping[str, Object]) -> list[dict[str, Any]]:
    entries = [
        {
            "namespace": namespace_of(pods[uid]),
            "name": name_of(pods[uid]),
            "uuid": uid,
            "minors": sorted(minors),
        }
        for uid, minors in by_pod.items()
    ]
    return sorted(entries, key=lambda entry: (str(entry["namespace"]), str(entry["name"]), str(entry["uuid"])))
