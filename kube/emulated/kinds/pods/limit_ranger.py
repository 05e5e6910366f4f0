"""LimitRanger (k8s.io/kubernetes plugin/pkg/admission/limitranger)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from mews.kube.api.objects import Object, is_deleting
from mews.kube.api.pod_requests import amounts_named, pod_amount, pod_limit
from mews.kube.api.quantities import parse, total_text
from mews.kube.api.resources import LIMIT_RANGES
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.store import Store

_NOTE = "kubernetes.io/limit-ranger"
_LISTS = (("containers", "container"), ("initContainers", "init container"))

Amounts = Mapping[str, Any]


def _handles(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    resource = kind.resource
    if resource.group or resource.plural not in ("pods", "persistentvolumeclaims"):
        return False
    if resource.plural == "pods" and subresource == "resize":
        return operation is AdmissionOperation.UPDATE
    allowed = (
        (AdmissionOperation.CREATE,)
        if resource.plural == "pods"
        else (AdmissionOperation.CREATE, AdmissionOperation.UPDATE)
    )
    return not subresource and operation in allowed


def _items(store: Store, attributes: AdmissionAttributes) -> Iterator[Mapping[str, Any]]:
    shelf = store.filled("", LIMIT_RANGES.plural)
    if shelf is None or (attributes.old is not None and is_deleting(attributes.old)):
        return
    for ranges in shelf.select(Selection(attributes.namespace)):
        yield from ranges["spec"].get("limits") or ()


def _mutate(store: Store, attributes: AdmissionAttributes) -> None:
    pod = attributes.obj
    assert pod is not None
    if attributes.kind.plural != "pods" or attributes.operation is not AdmissionOperation.CREATE:
        return
    for item in _items(store, attributes):
        if item.get("type") == "Container":
            _fill(pod, item)


def _fill(pod: Object, item: Mapping[str, Any]) -> None:
    notes: list[str] = []
    for key, word in _LISTS:
        for container in pod["spec"].get(key) or ():
            resources = container.setdefault("resources", {})
            for field, default, noun in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
                given = resources.get(field) or {}
                fresh = {name: amount for name, amount in (item.get(default) or {}).items() if name not in given}
                if fresh:
                    resources[field] = {**given, **fresh}
                    notes.append(f"{', '.join(sorted(fresh))} {noun} for {word} {container.get('name', '')}")
    if notes:
        metadata = pod["metadata"]
        text = f"LimitRanger plugin set: {'; '.join(notes)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _NOTE: text}


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    obj = attributes.obj
    assert obj is not None
    shelf = store.filled("", LIMIT_RANGES.plural)
    if shelf is None:
        return
    judge = _pod_errors if attributes.kind.plural == "pods" else _claim_errors
    for ranges in shelf.select(Selection(attributes.namespace)):
        found = [error for item in ranges["spec"].get("limits") or () for error in judge(obj, item)]
        found = list(dict.fromkeys(found))
        if found:
            raise refused(attributes, found[0] if len(found) == 1 else f"[{', '.join(found)}]")


def _pod_errors(pod: Object, item: Mapping[str, Any]) -> Iterator[str]:
    kind = item.get("type", "")
    if kind == "Container":
        for key, _ in _LISTS:
            for container in pod["spec"].get(key) or ():
                resources = container.get("resources") or {}
                yield from _errors(item, kind, resources.get("requests") or {}, resources.get("limits") or {})
    elif kind == "Pod":
        yield from _errors(item, kind, _whole(pod, "requests", pod_amount), _whole(pod, "limits", pod_limit))


def _whole(pod: Object, field: str, amount: Callable[..., Decimal]) -> dict[str, str]:
    """Return what a pod asks for or is limited to, of the resources that it or its containers name."""
    named = amounts_named(pod, field)
    return {name: total_text(amount(pod, name, parse), text) for name, text in named.items()}


def _claim_errors(claim: Object, item: Mapping[str, Any]) -> Iterator[str]:
    if item.get("type") != "PersistentVolumeClaim":
        return
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    for name, bound in sorted((item.get("min") or {}).items()):
        yield from _too_little(name, "PersistentVolumeClaim", bound, requests, {})
    for name, bound in sorted((item.get("max") or {}).items()):
        text = f"maximum {name} usage per PersistentVolumeClaim is {bound}"
        if name not in requests:
            yield f"{text}.  No request is specified"
        elif parse(requests[name]) > parse(bound):
            yield f"{text}, but request is {requests[name]}"


def _errors(item: Mapping[str, Any], kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted((item.get("min") or {}).items()):
        yield from _too_little(name, kind, bound, requests, limits)
    for name, bound in sorted((item.get("max") or {}).items()):
        yield from _too_much(name, kind, bound, requests, limits)
    for name, bound in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _too_far(name, kind, bound, requests, limits)


def _too_little(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif parse(requests[name]) < parse(bound):
        yield f"{text}, but request is {requests[name]}"
    elif name in limits and parse(limits[name]) < parse(bound):
        yield f"{text}, but limit is {limits[name]}"


def _too_much(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        yield f"{text}.  No limit is specified"
    elif parse(limits[name]) > parse(bound):
        yield f"{text}, but limit is {limits[name]}"
    elif name in requests and parse(requests[name]) > parse(bound):
        yield f"{text}, but request is {requests[name]}"


def _too_far(name: str, kind: str, bound: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {kind} is {bound}"
    if not parse(requests.get(name, 0)):
        yield f"{text}, but no request is specified or request is 0"
    elif not parse(limits.get(name, 0)):
        yield f"{text}, but no limit is specified or limit is 0"
    else:
        ratio = parse(limits[name]) / parse(requests[name])
        if ratio > parse(bound):
            yield f"{text}, but provided ratio is {ratio:.6f}"


PLUGIN = AdmissionPlugin("LimitRanger", _handles, mutate=_mutate, validate=_validate)
