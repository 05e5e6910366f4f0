"""Conditions that the API server itself keeps: whether a FlowSchema's level is there, whether another server answers.

Sources: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, k8s.io/kube-aggregator/pkg/controllers/status/remote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.apiserver.objects.rules.checks import items, part_of
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.selection import EVERYTHING

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind
    from mews.kube.emulated.apiserver.store.store import Store

_FLOW = "flowcontrol.apiserver.k8s.io"


def schema_committed(store: Store, _old: Object | None, new: Object | None) -> None:
    """A FlowSchema names the priority level that it belongs to."""
    if new is not None and (kind := store.kinds.find(_FLOW, "v1", "flowschemas")) is not None:
        _settle(store, kind, new, _dangling(store, new))


def level_committed(store: Store, old: Object | None, new: Object | None) -> None:
    """A priority level that comes or goes is told to the FlowSchemas that name it."""
    kind = store.kinds.find(_FLOW, "v1", "flowschemas")
    if kind is None or (old is None) == (new is None):
        return
    for schema in list(store.shelf(kind).select(EVERYTHING)):
        _settle(store, kind, schema, _dangling(store, schema))


def _dangling(store: Store, schema: Object) -> dict[str, str]:
    name = part_of(schema["spec"], "priorityLevelConfiguration").get("name", "")
    levels = store.kinds.find(_FLOW, "v1", "prioritylevelconfigurations")
    found = levels is not None and store.find(levels, "", name) is not None
    text = f"This FlowSchema references the PriorityLevelConfiguration object named {refusals.shown(name)} "
    return {
        "type": "Dangling",
        "status": "False" if found else "True",
        "reason": "Found" if found else "NotFound",
        "message": text + ("and it exists" if found else "but there is no such object"),
    }


def api_service_committed(store: Store, _old: Object | None, new: Object | None) -> None:
    """An APIService of another server is available when its Service is there."""
    kind = store.kinds.find("apiregistration.k8s.io", "v1", "apiservices")
    if kind is not None and new is not None and new["spec"].get("service") is not None:
        _settle(store, kind, new, _availability(store, new["spec"]["service"]))


def service_committed(store: Store, old: Object | None, new: Object | None) -> None:
    """A Service that comes, changes or goes is told to the APIServices behind it."""
    kind, changed = store.kinds.find("apiregistration.k8s.io", "v1", "apiservices"), new or old
    if kind is None or changed is None:
        return
    metadata = changed["metadata"]
    for service in list(store.shelf(kind).select(EVERYTHING)):
        backend = part_of(service["spec"], "service")
        if (backend.get("namespace"), backend.get("name")) == (metadata.get("namespace"), metadata["name"]):
            _settle(store, kind, service, _availability(store, backend))


def _availability(store: Store, backend: Mapping[str, Any]) -> dict[str, str]:
    """As far as this server goes: it asks no other one, so one that could answer has not."""
    name, space, port = backend.get("name", ""), backend.get("namespace", ""), backend.get("port", 443)
    kind = store.kinds.find("", "v1", "services")
    service = store.find(kind, space, name) if kind is not None else None
    where = f"service/{name} in {refusals.shown(space)}"
    if service is None:
        return _unavailable("ServiceNotFound", f"{where} is not present")
    if service["spec"].get("type") != "ExternalName" and not any(
        each.get("port") == port for each in items(service["spec"], "ports")
    ):
        return _unavailable("ServicePortError", f"{where} is not listening on port {port}")
    return _unavailable("FailedDiscoveryCheck", f"{where} is not asked: requests are not handed on to other servers")


def _unavailable(reason: str, message: str) -> dict[str, str]:
    return {"type": "Available", "status": "False", "reason": reason, "message": message}


def _settle(store: Store, kind: Kind, obj: Object, condition: dict[str, str]) -> None:
    """The condition in place of the one of its type, since when its status is another; stored if it is new."""
    conditions = items(part_of(obj, "status"), "conditions")
    known: Mapping[str, Any] = next((each for each in conditions if each.get("type") == condition["type"]), {})
    if all(known.get(name) == value for name, value in condition.items()):
        return
    same = known.get("status") == condition["status"]
    since = known["lastTransitionTime"] if same and "lastTransitionTime" in known else store.timestamp()
    fresh = {"type": condition["type"], "status": condition["status"], "lastTransitionTime": since, **condition}
    new = clone(obj)
    others = [fresh if each.get("type") == condition["type"] else each for each in conditions]
    new["status"] = {**part_of(obj, "status"), "conditions": others if known else [*conditions, fresh]}
    store.commit(kind, ("", obj["metadata"]["name"]), new)
