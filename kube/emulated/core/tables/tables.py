"""Tables for ``kubectl get``: columns and rows per kind (contract apiserver.md section 6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import BadRequestError
from mews.kube.api.objects import Object, condition_of, labels_of, seconds
from mews.kube.emulated.core.store.kinds import Column, Kind
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.core.tables import jsonpaths
from mews.kube.emulated.core.tables.cells import (
    DATED,
    NAME,
    Cell,
    ColumnSpec,
    Printer,
    Row,
    columns_of,
    labels_text,
    meta_age,
    none_if_empty,
    selector_text,
)
from mews.kube.emulated.core.tables.durations import UNKNOWN, age
from mews.kube.emulated.kinds.group_tables import GROUP_TABLES
from mews.kube.emulated.kinds.pods import pod_table
from mews.kube.emulated.kinds.rare_tables import RARE_TABLES

_ROLE = "node-role.kubernetes.io/"


_PLAIN = (NAME, ColumnSpec("Age"))


def _plain(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], meta_age(obj, now_s)]


def _node(node: Object, now_s: float) -> Row:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    ready = condition_of(node, "Ready")
    words = ["Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    addresses = {address["type"]: address["address"] for address in reversed(status.get("addresses") or [])}
    return [
        node["metadata"]["name"],
        ",".join(words),
        _roles(node),
        meta_age(node, now_s),
        info.get("kubeletVersion", ""),
        none_if_empty(addresses.get("InternalIP")),
        none_if_empty(addresses.get("ExternalIP")),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(node: Object) -> str:
    roles = {label.removeprefix(_ROLE) for label in labels_of(node) if label.startswith(_ROLE) and label != _ROLE}
    named = labels_of(node).get("kubernetes.io/role")
    return none_if_empty(",".join(sorted({*roles, *([named] if named else [])})))


def _namespace(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), meta_age(obj, now_s)]


def _configmap(obj: Object, now_s: float) -> Row:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], count, meta_age(obj, now_s)]


def _secret(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], obj.get("type", ""), len(obj.get("data") or ()), meta_age(obj, now_s)]


def _account(obj: Object, now_s: float) -> Row:
    return [obj["metadata"]["name"], len(obj.get("secrets") or ()), meta_age(obj, now_s)]


def _event(event: Object, now_s: float) -> Row:
    """Return that of an event in core form."""
    first = age(event.get("firstTimestamp") or event.get("eventTime"), now_s)
    last = age(event.get("lastTimestamp"), now_s) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    series = event.get("series")
    if series:
        last, count = age(series.get("lastObservedTime"), now_s), series.get("count", 0)
    involved = event["involvedObject"]
    target = involved.get("kind", "").lower()
    if involved.get("name"):
        target += f"/{involved['name']}"
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance")
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        target,
        involved.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (event.get("message") or "").strip(),
        first,
        count,
        event["metadata"]["name"],
    ]


def _lease(obj: Object, now_s: float) -> Row:
    holder = (obj.get("spec") or {}).get("holderIdentity") or ""
    return [obj["metadata"]["name"], holder, meta_age(obj, now_s)]


def _priority_class(obj: Object, now_s: float) -> Row:
    return [
        obj["metadata"]["name"],
        obj["value"],
        bool(obj.get("globalDefault")),
        meta_age(obj, now_s),
        obj.get("preemptionPolicy", ""),
    ]


def _service(obj: Object, now_s: float) -> Row:
    spec = obj.get("spec") or {}
    ports = [
        f"{port['port']}:{port['nodePort']}/{port['protocol']}"
        if port.get("nodePort")
        else f"{port['port']}/{port['protocol']}"
        for port in spec.get("ports") or ()
    ]
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        none_if_empty(spec.get("clusterIP")),
        _external(obj),
        none_if_empty(",".join(ports)),
        meta_age(obj, now_s),
        labels_text(spec.get("selector")),
    ]


def _external(service: Object) -> str:
    """Return where a service is reached from outside."""
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = spec.get("externalIPs") or []
    if spec.get("type") != "LoadBalancer":
        return none_if_empty(",".join(addresses))
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    balanced = sorted({entry.get("ip") or entry.get("hostname", "") for entry in entries})
    return ",".join([*balanced, *addresses]) or "<pending>"


def _containers(obj: Object, field: str) -> str:
    spec = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    return ",".join(str(container.get(field, "")) for container in spec.get("containers") or ())


def _match_labels(obj: Object) -> str:
    return selector_text((obj.get("spec") or {}).get("selector"))


def _deployment(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 1)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        meta_age(obj, now_s),
        _containers(obj, "name"),
        _containers(obj, "image"),
        _match_labels(obj),
    ]


def _replicaset(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        spec.get("replicas", 1),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        meta_age(obj, now_s),
        _containers(obj, "name"),
        _containers(obj, "image"),
        _match_labels(obj),
    ]


def _job(obj: Object, now_s: float) -> Row:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    wanted, at_once = spec.get("completions"), spec.get("parallelism", 0)
    if wanted is None:
        wanted = f"1 of {at_once}" if at_once > 1 else 1
    begun, ended = status.get("startTime"), status.get("completionTime")
    took = "" if not begun else age(begun, now_s if not ended else seconds(ended))
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        f"{status.get('succeeded', 0)}/{wanted}",
        took,
        meta_age(obj, now_s),
        _containers(obj, "name"),
        _containers(obj, "image"),
        _match_labels(obj),
    ]


def _job_status(job: Object) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        found = condition_of(job, kind)
        if found is not None and found.get("status") == "True":
            return word
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return "Running"


TABLES: Mapping[str, Printer] = {
    "pods": Printer(pod_table.cells, pod_table.conditions),
    "nodes": Printer(_node),
    "namespaces": Printer(_namespace),
    "configmaps": Printer(_configmap),
    "secrets": Printer(_secret),
    "serviceaccounts": Printer(_account),
    "events": Printer(_event),
    "leases.coordination.k8s.io": Printer(_lease),
    "priorityclasses.scheduling.k8s.io": Printer(_priority_class),
    "services": Printer(_service),
    "deployments.apps": Printer(_deployment),
    "replicasets.apps": Printer(_replicaset),
    "jobs.batch": Printer(_job),
    **GROUP_TABLES,
    **RARE_TABLES,
}
"""By the qualified plural, for kinds with more columns than name and age."""


def _printer(kind: Kind) -> tuple[Sequence[ColumnSpec], Printer]:
    """Return the columns of a kind, and what makes its cells."""
    if kind.custom:
        return _custom(kind)
    group, plural = kind.storage
    qualified = f"{plural}.{group}" if group else plural
    columns = columns_of(kind.release, qualified)
    if columns is DATED:
        return columns, Printer(_created, nothing_is_null=True)
    if columns == _PLAIN or qualified not in TABLES:
        return _PLAIN, Printer(_plain)
    return columns, TABLES[qualified]


def _created(obj: Object, _: float) -> Row:
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp", "")]


def _custom(kind: Kind) -> tuple[Sequence[ColumnSpec], Printer]:
    if not kind.columns:
        return (NAME, ColumnSpec("Age", type="date")), Printer(_plain)
    columns = [
        ColumnSpec(column.name, type=column.type, format=column.format, priority=column.priority)
        for column in kind.columns
    ]

    def cells(obj: Object, now_s: float) -> Row:
        return [obj["metadata"]["name"], *(_custom_cell(column, obj, now_s) for column in kind.columns)]

    return (NAME, *columns), Printer(cells)


def _custom_cell(column: Column, obj: Object, now_s: float) -> Cell:
    found = jsonpaths.find(obj, column.json_path)
    if not found:
        return None
    value = found[0]
    if column.type == "date":
        return age(value, now_s)
    if column.type == "string":
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value if isinstance(value, (int, float, bool)) else str(value)


_BY_PRECEDENCE = "flowschemas.flowcontrol.apiserver.k8s.io"
"""They are shown in the order in which requests meet them."""


def _precedence(schema: Object) -> tuple[int, str]:
    return int((schema.get("spec") or {}).get("matchingPrecedence") or 0), str(schema["metadata"]["name"])


def table(
    kind: Kind,
    objects: Sequence[Object],
    *,
    now_s: float,
    metadata: Mapping[str, Any],
    include: str = "Metadata",
    version: str = "v1",
    head: bool = True,
) -> dict[str, Any]:
    """Return the meta.k8s.io Table of objects; ``include`` is None, Metadata or Object."""
    columns, printer = _printer(kind)
    rows = []
    for obj in sorted(objects, key=_precedence) if kind.qualified == _BY_PRECEDENCE else objects:
        row: dict[str, Any] = {"cells": printer.row(columns, view_of(kind).store(obj), now_s)}
        if printer.conditions is not None and (conditions := printer.conditions(obj)):
            row["conditions"] = conditions
        row["object"] = _included(obj, include, version)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": dict(metadata),
        "columnDefinitions": [column.shown() for column in columns] if head else None,
        "rows": None if printer.nothing_is_null and not rows else rows,
    }


_OF_A_VERSION = "deprecated.daemonset.template.generation"
"""An annotation of DaemonSets that is a field in the types within the server."""


def _included(obj: Object, include: str, version: str) -> Object | None:
    match include:
        case "None":
            return None
        case "Object":
            return obj
        case "Metadata":
            return partial(obj, version)
    text = f"includeObject: Invalid value: {json.dumps(include)}: must be 'Metadata', 'Object', 'None', or empty"
    raise BadRequestError(f"Unable to convert to Table as requested: {text}")


def empty_cells(kind: Kind) -> Row:
    """Return the cells of an object that has nothing but its kind."""
    columns, printer = _printer(kind)
    try:
        return printer.row(columns, {"metadata": {"name": ""}}, 0.0)
    except KeyError:
        return ["" for _ in columns]


def partial(obj: Object, version: str = "v1") -> Object:
    """Return an object's metadata alone (PartialObjectMetadata), as the server's internal types hold it."""
    metadata = obj["metadata"]
    if _OF_A_VERSION in (metadata.get("annotations") or {}):
        others = {key: text for key, text in metadata["annotations"].items() if key != _OF_A_VERSION}
        metadata = {key: value for key, value in metadata.items() if key != "annotations"}
        metadata |= {"annotations": others} if others else {}
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
