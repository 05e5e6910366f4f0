"""Conditions that the API server itself keeps: whether a FlowSchema's level is there, whether another server answers.

Sources: k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, k8s.io/kube-aggregator/pkg/controllers/status/remote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.selection import EVERYTHING, Selection

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

_FLOW = "flowcontrol.apiserver.k8s.io"
_API_SERVICES = ("apiregistration.k8s.io", "v1", "apiservices")
_SERVICE_NAME = "kubernetes.io/service-name"


def schema_committed(store: Store, _old: Object | None, new: Object | None) -> None:
    """A FlowSchema names the priority level that it belongs to."""
    if new is not None and (kind := store.kinds.find(_FLOW, "v1", "flowschemas")) is not None:
        settle(store, kind, new, _dangling(store, new))


def level_committed(store: Store, old: Object | None, new: Object | None) -> None:
    """A priority level that comes or goes is told to the FlowSchemas that name it."""
    kind = store.kinds.find(_FLOW, "v1", "flowschemas")
    if kind is None or (old is None) == (new is None):
        return
    for schema in list(store.shelf(kind).select(EVERYTHING)):
        settle(store, kind, schema, _dangling(store, schema))


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
    """An APIService of another server is available when its Service is there, and the server answers."""
    kind = store.kinds.find(*_API_SERVICES)
    if kind is not None and new is not None and new["spec"].get("service") is not None:
        _look(store, kind, new)


def service_committed(store: Store, old: Object | None, new: Object | None) -> None:
    """A Service that comes, changes or goes is told to the APIServices behind it."""
    metadata = (new or old or {})["metadata"]
    _look_at_all(store, metadata.get("namespace", ""), metadata["name"])


def slice_committed(store: Store, old: Object | None, new: Object | None) -> None:
    """So is an EndpointSlice."""
    metadata = (new or old or {})["metadata"]
    _look_at_all(store, metadata.get("namespace", ""), (metadata.get("labels") or {}).get(_SERVICE_NAME, ""))


def _look_at_all(store: Store, namespace: str, name: str) -> None:
    """Of the APIServices, those behind that Service."""
    kind = store.kinds.find(*_API_SERVICES)
    if kind is None or store.filled(*kind.storage) is None:
        return
    for api in list(store.shelf(kind).select(EVERYTHING)):
        backend = part_of(api["spec"], "service")
        if (backend.get("namespace"), backend.get("name")) == (namespace, name):
            _look(store, kind, api)


def _look(store: Store, kind: Kind, api: Object) -> None:
    backend = api["spec"]["service"]
    found = unavailability(store, backend)
    if found is None and not store.asks_servers:
        where = f"service/{backend.get('name', '')} in {refusals.shown(backend.get('namespace', ''))}"
        text = f"{where} is not asked: requests are not handed on to other servers"
        found = _unavailable("FailedDiscoveryCheck", text)
    if found is not None:
        settle(store, kind, api, found)


def unavailability(store: Store, backend: Mapping[str, Any]) -> dict[str, str] | None:
    """Return why a server cannot be asked, as far as that can be told without asking it; None where it can."""
    name, space, port = backend.get("name", ""), backend.get("namespace", ""), backend.get("port", 443)
    kind = store.kinds.find("", "v1", "services")
    service = store.find(kind, space, name) if kind is not None else None
    where = f"service/{name} in {refusals.shown(space)}"
    if service is None:
        return _unavailable("ServiceNotFound", f"{where} is not present")
    if service["spec"].get("type", "ClusterIP") != "ClusterIP":
        return None
    listening = next((each for each in items(service["spec"], "ports") if each.get("port") == port), None)
    if listening is None:
        return _unavailable("ServicePortError", f"{where} is not listening on port {port}")
    slices = slices_of(store, space, name)
    if not slices:
        return _unavailable("EndpointsNotFound", f"cannot find endpointslices for {where}")
    named = listening.get("name") or ""
    if not any(_is_ready(part) and _has_port(part, named) for part in slices):
        text = f"endpointslices for {where} have no addresses with port name {refusals.shown(named)}"
        return _unavailable("MissingEndpoints", text)
    return None


def slices_of(store: Store, namespace: str, name: str) -> list[Object]:
    """Return the EndpointSlices of a Service."""
    kind = store.kinds.find("discovery.k8s.io", "v1", "endpointslices")
    found = store.shelf(kind).select(Selection(namespace)) if kind is not None else ()
    return [part for part in found if (part["metadata"].get("labels") or {}).get(_SERVICE_NAME) == name]


def _is_ready(part: Object) -> bool:
    return any((each.get("conditions") or {}).get("ready") is not False for each in items(part, "endpoints"))


def _has_port(part: Object, name: str) -> bool:
    return any((each.get("name") or "") == name and each.get("port") is not None for each in items(part, "ports"))


def _unavailable(reason: str, message: str) -> dict[str, str]:
    return {"type": "Available", "status": "False", "reason": reason, "message": message}


def settle(store: Store, kind: Kind, obj: Object, condition: dict[str, str]) -> None:
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
