"""A pod that a scheduler puts on one node: by a node affinity for that node alone, as DaemonSets do it."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object, clone

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pinned(pod: Object, node: str) -> Object:
    """Return the pod for that node; one that names its node does so already."""
    made: Object = clone(pod)
    if made["spec"].get("nodeName"):
        return made
    required = made["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {}).setdefault(_REQUIRED, {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), _of(node)]} for term in terms
    ]
    return made


def unpinned(pod: Object, node: str) -> Object:
    """Return the pod without the affinity that ``pinned`` gave it."""
    made: Object = clone(pod)
    affinity = made["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or []
    if not terms or any(_of(node) not in (term.get("matchFields") or ()) for term in terms):
        return made
    for term in terms:
        term["matchFields"].remove(_of(node))
        if not term["matchFields"]:
            del term["matchFields"]
    required["nodeSelectorTerms"] = [term for term in terms if term]
    _without_empty(made["spec"], ("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms"))
    return made


def _of(node: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def _without_empty(spec: dict[str, Any], path: tuple[str, ...]) -> None:
    if len(path) > 1:
        _without_empty(spec[path[0]], path[1:])
    if not spec[path[0]]:
        del spec[path[0]]
