"""Objects of Kubernetes in collected files: `kubectl get -o yaml|json`, watch events, audit logs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import yaml

from mews.harness.recording.histories import moment_of, stamp
from mews.harness.recording.observations import ObjectSighting
from mews.harness.recording.reduction import reduced
from mews.yaml_text import check_extent

AUDIT = "audit.k8s.io/v1"
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLURALS = {"pods": "Pod", "nodes": "Node"}


class _Loader(_Base):  # type: ignore[misc]
    """Times stay text."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }


def yaml_documents(text: str) -> list[Any]:
    """Return the documents of a text.

    Raises yaml.YAMLError.
    """
    check_extent(text, most=5_000_000)
    return [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]


def json_lines(text: str) -> list[Any] | None:
    """Return the values of a text with a JSON value on each line; None where a line holds none. A last line may be cut
    off."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = []
    for number, line in enumerate(lines):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            if number and number == len(lines) - 1:
                break
            return None
    return found


def is_of_kubernetes(value: Any) -> bool:
    """Return whether it is an object, a list of them, or a watch event."""
    if isinstance(value, Mapping) and set(value) == {"type", "object"}:
        value = value["object"]
    return isinstance(value, Mapping) and isinstance(value.get("kind"), str) and "apiVersion" in value


def sightings_of(documents: Iterable[Any]) -> tuple[list[ObjectSighting], Counter[str]]:
    """Return the objects of a file, and how many of which kinds are not looked at. All of a list were seen at one
    moment: the latest that any of them names."""
    found: list[ObjectSighting] = []
    skipped: Counter[str] = Counter()
    for document in documents:
        watched = isinstance(document, Mapping) and set(document) == {"type", "object"}
        gone = watched and document["type"] == "DELETED"
        objects = list(_objects(document["object"] if watched else document))
        at = max((t for each in objects if (t := moment_of(each)) is not None), default=None)
        for obj in objects:
            small = reduced(obj)
            if small is None:
                skipped[str(obj.get("kind", "an object without a kind"))] += 1
            else:
                found.append(ObjectSighting(small, moment_of(obj) if watched else at, gone=gone))
    return found, skipped


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if isinstance(items, list) and str(value.get("kind", "")).endswith("List"):
        kind = str(value["kind"]).removesuffix("List")
        for each in items:
            if isinstance(each, Mapping):  # items of a typed list have no kind on the wire
                yield each if "kind" in each else {**each, "kind": kind, "apiVersion": value.get("apiVersion", "")}
    else:
        yield value


def audited(lines: Iterable[Any]) -> tuple[list[ObjectSighting], set[str]]:
    """Objects and deletions of an audit log; and pods that it names without their content (its level is Metadata)."""
    found: list[ObjectSighting] = []
    bare: set[str] = set()
    for each in lines:
        reference = each.get("objectRef") if isinstance(each, Mapping) else None
        code = (each.get("responseStatus") or {}).get("code", 200) if isinstance(reference, Mapping) else 500
        if not isinstance(reference, Mapping) or each.get("stage") != "ResponseComplete" or code >= 300:
            continue
        at = stamp(each.get("stageTimestamp") or each.get("requestReceivedTimestamp"))
        kind = _PLURALS.get(str(reference.get("resource")))
        verb, answer = each.get("verb"), each.get("responseObject") or each.get("requestObject")
        if verb == "delete" and kind and not reference.get("subresource"):
            metadata = {name: reference[name] for name in ("name", "namespace", "uid") if reference.get(name)}
            if metadata.get("name"):
                found.append(ObjectSighting({"kind": kind, "apiVersion": "v1", "metadata": metadata}, at, gone=True))
        elif verb in ("create", "update", "patch"):
            small = reduced(answer) if isinstance(answer, Mapping) else None
            if small is not None:
                found.append(ObjectSighting(small, at))
            elif kind == "Pod" and verb == "create" and not reference.get("subresource"):
                bare.add(f"{reference.get('namespace', 'default')}/{reference.get('name', '?')}")
    return found, bare
