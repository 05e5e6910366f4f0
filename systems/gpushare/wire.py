"""The extender's requests and answers (k8s.io/kube-scheduler/extender/v1): keys are read in any case, and answered in
the case in which the caller writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of
from mews.listening.reading import read_like_go


class BadCallError(ValueError):
    """A request that cannot be answered; one line."""


UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What reading an object raises that no API server has checked: the caller may have made it up."""


class FilterCall(Struct, frozen=True):
    """``nodes``: whole objects of a client that keeps no node cache with us; else None, and ``names`` has them."""

    pod: Object
    names: tuple[str, ...]
    nodes: tuple[Object, ...] | None
    capital: bool


class BindCall(Struct, frozen=True):
    """Which pod is to be bound to which node."""

    name: str
    namespace: str
    uid: str
    node: str
    capital: bool


def _read(body: bytes) -> tuple[dict[str, Any], bool]:
    try:
        read = read_like_go(body)
    except ValueError as error:
        raise BadCallError(f"the body is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise BadCallError("the body is not a JSON object")
    return {str(key).lower(): value for key, value in read.items()}, any(str(key)[:1].isupper() for key in read)


def read_filter(body: bytes) -> FilterCall:
    """ExtenderArgs.

    Raises BadCallError.
    """
    read, capital = _read(body)
    pod, names, nodes = read.get("pod"), read.get("nodenames"), read.get("nodes")
    if not isinstance(pod, dict):
        raise BadCallError("Pod: must be a pod")
    if isinstance(names, list):
        return FilterCall(pod, tuple(str(name) for name in names), None, capital)
    items = None
    if isinstance(nodes, dict):
        items = next((value for key, value in nodes.items() if str(key).lower() == "items"), None) or []
    if not isinstance(items, list):
        raise BadCallError("Nodes, NodeNames: one of them is required")
    try:
        return FilterCall(pod, tuple(str(name_of(node)) for node in items), tuple(items), capital)
    except UNREADABLE as error:
        raise BadCallError("Nodes: must be nodes with names") from error


def filter_result(call: FilterCall, refusals: Mapping[str, str]) -> dict[str, Any]:
    """ExtenderFilterResult: the nodes that are not refused, in the order asked."""
    passed = [name for name in call.names if name not in refusals]
    items = None if call.nodes is None else [node for node in call.nodes if name_of(node) not in refusals]
    result = {
        "Nodes": None if items is None else {"metadata": {}, "items": items},
        "NodeNames": passed if call.nodes is None else None,
        "FailedNodes": dict(refusals),
        "Error": "",
    }
    return result if call.capital else _small(result)


def filter_error(text: str) -> dict[str, Any]:
    """ExtenderFilterResult of a call that could not be answered."""
    return {"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": text}


def read_bind(body: bytes) -> BindCall:
    """ExtenderBindingArgs.

    Raises BadCallError.
    """
    read, capital = _read(body)
    found = {name: read.get(name.lower()) for name in ("PodName", "PodNamespace", "PodUID", "Node")}
    for name in ("PodName", "PodNamespace", "Node"):
        if not isinstance(found[name], str) or not found[name]:
            raise BadCallError(f"{name}: must be a name")
    return BindCall(
        str(found["PodName"]), str(found["PodNamespace"]), str(found["PodUID"] or ""), str(found["Node"]), capital
    )


def bind_result(text: str, *, capital: bool = True) -> dict[str, Any]:
    """ExtenderBindingResult; "" for a pod that is bound."""
    return {"Error": text} if capital else {"error": text}


def _small(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key[0].lower() + key[1:]: value for key, value in result.items()}


def inspected(node: str, devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one node of ``GET /inspect``."""
    return {
        "name": node,
        "totalGPU": sum(device["totalGPU"] for device in devices),
        "usedGPU": sum(device["usedGPU"] for device in devices),
        "devs": list(devices),
    }
