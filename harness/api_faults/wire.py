"""What the proxy reads of requests to an API server, and what it writes in the server's place. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mews.harness.api_faults.plans import ApiFailure, ApiRequest

JSON = "application/json"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark after which a watch has shown all that was there (client-go's reflector, WatchList)."""

_VERBS: Mapping[str, str] = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TRUE = ("1", "true", "True", "TRUE", "t", "T")
_UNREAD = ("protobuf", "cbor")
"""Media types whose frames the proxy does not read."""


class ApiCall(Struct, frozen=True):
    """A request of an object or a collection. ``path`` has the collection's path, without an object's name."""

    request: ApiRequest
    path: str
    is_streamed: bool = False
    """A followed log, a proxied connection: nothing that a fault looks at once it is open."""


def call_of(method: str, path: str, query: Mapping[str, str]) -> ApiCall | None:
    """Return what is asked for, as RBAC tells it (apiserver's requestinfo.go); None for what is no resource: discovery,
    health, OpenAPI."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        start = 2
    elif parts[:1] == ["apis"] and len(parts) > 3:
        start = 3
    else:
        return None
    rest = parts[start:]
    if rest[0] == "watch" and len(rest) > 1:  # the deprecated form
        start, rest, query = start + 1, rest[1:], {**query, "watch": "true"}
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        start, rest = start + 2, rest[2:]
    resource, name, below = rest[0], *[*rest[1:], "", ""][:2]
    collection = "/" + "/".join(parts[: start + 1])
    if method in ("GET", "HEAD"):
        verb = "watch" if is_true(query.get("watch", "")) and not below else "get" if name else "list"
    elif method == "DELETE" and not name:
        verb = "deletecollection"
    elif method in _VERBS:
        verb = _VERBS[method]
    else:
        return None
    streamed = below in ("log", "proxy", "exec", "attach", "portforward")
    shows_all = verb == "watch" and is_true(query.get("sendInitialEvents", ""))
    return ApiCall(ApiRequest(verb, resource, name, below, shows_all), collection, streamed)


def is_true(text: str) -> bool:
    """Return whether a parameter of a query says yes (strconv.ParseBool)."""
    return text in _TRUE


def readable_forms(accept: str) -> str:
    """Return the ``Accept`` of a watch without the forms whose events the proxy cannot tell apart. Clients of
    Kubernetes read the form that comes, whatever they asked for first."""
    kept = [form.strip() for form in accept.split(",") if form.strip()]
    kept = [form for form in kept if not any(word in form.partition(";")[0] for word in _UNREAD)]
    kept = [JSON if form.startswith("*/*") else form for form in kept]
    return ", ".join(dict.fromkeys(kept)) or JSON


def status_of(failure: ApiFailure) -> dict[str, Any]:
    """Return a Status object, as an API server answers with it."""
    details = {} if failure.retry_after_s is None else {"details": {"retryAfterSeconds": failure.retry_after_s}}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": failure.message,
        "reason": failure.reason,
        **details,
        "code": failure.code,
    }


def event_line(kind: str, obj: Mapping[str, Any]) -> bytes:
    """Return an event of a watch, a line of JSON."""
    return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"


def list_query(query: Sequence[tuple[str, str]], version: str) -> str:
    """Return the query of a list that shows that version instead. One that asks for exactly another version, for a
    newer one, or for the rest of a list, stays as it is."""
    asked = dict(query)
    wanted = asked.get("resourceVersion", "")
    newer = wanted.isdecimal() and version.isdecimal() and int(wanted) > int(version)
    if asked.get("continue") or newer or asked.get("resourceVersionMatch") == "Exact":
        return urlencode(query)
    dropped = ("resourceVersion", "resourceVersionMatch")
    kept = [(name, value) for name, value in query if name not in dropped]
    return urlencode([*kept, ("resourceVersion", version), ("resourceVersionMatch", "Exact")])


def one_query(name: str, version: str) -> str:
    """Return the query of a list that holds the one object of that name, as it was."""
    return list_query([("fieldSelector", f"metadata.name={name}")], version)


def snapshot_query(query: Sequence[tuple[str, str]], version: str) -> str:
    """Return the query of a list of what a watch that begins with all objects (``sendInitialEvents``) would show."""
    kept = ("labelSelector", "fieldSelector")
    return list_query([(name, value) for name, value in query if name in kept], version)


def items_of(listed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, each with the kind and the version that the list leaves out."""
    kind = str(listed.get("kind", "")).removesuffix("List")
    for item in listed.get("items") or ():
        yield {"apiVersion": listed.get("apiVersion", ""), "kind": kind, **item}


def initial_events(listed: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events by which a watch shows a list, and the bookmark that ends them (KEP-3157)."""
    for item in items_of(listed):
        yield event_line("ADDED", item)
    version = str((listed.get("metadata") or {}).get("resourceVersion", ""))
    shown = {
        "apiVersion": listed.get("apiVersion", ""),
        "kind": str(listed.get("kind", "")).removesuffix("List"),
        "metadata": {"resourceVersion": version, "annotations": {INITIAL_EVENTS_END: "true"}},
    }
    yield event_line("BOOKMARK", shown)
