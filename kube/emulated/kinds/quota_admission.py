"""ResourceQuota: counted as objects come in, in the same step as they are stored.

Source: k8s.io/apiserver pkg/admission/plugin/resourcequota, k8s.io/kubernetes pkg/quota/v1/evaluator/core.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

from mews.kube.api.claim_quota import class_resources, extended_usage, pod_name_of, stands_for
from mews.kube.api.objects import Object, clone
from mews.kube.api.quantities import parse
from mews.kube.api.quota_usage import (
    Usage,
    amount_text,
    is_binary,
    is_used_by_pods,
    matches_scopes,
    required_by_pod,
    usage_of,
)
from mews.kube.api.resources import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.store import Store


def _handles(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    if not kind.resource.namespaced or operation not in (AdmissionOperation.CREATE, AdmissionOperation.UPDATE):
        return False
    if subresource:
        return subresource == "resize" and kind.plural == "pods"
    if operation is AdmissionOperation.UPDATE:
        return (kind.resource.group, kind.plural) in (("", "services"), ("", "persistentvolumeclaims"))
    return kind.plural != "events" and kind.resource.group != "authorization.k8s.io"


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    shelf = store.filled("", RESOURCE_QUOTAS.plural)
    if shelf is None:
        return
    quotas = store.kinds.of(RESOURCE_QUOTAS)
    obj = attributes.obj
    assert obj is not None
    resource = attributes.kind.resource
    usage = usage_of(resource.group, resource.plural, obj)
    if (resource.group, resource.plural) == (RESOURCE_CLAIMS.group, RESOURCE_CLAIMS.plural):
        usage |= _extended_usage(store, attributes.namespace, obj)
    if attributes.old is not None:
        before = usage_of(resource.group, resource.plural, attributes.old)
        usage = {name: usage.get(name, Decimal()) - before.get(name, Decimal()) for name in {**usage, **before}}
    relevant = [
        quota
        for quota in shelf.select(Selection(attributes.namespace))
        if _concerns(attributes.kind, quota, usage) and matches_scopes(quota["spec"], resource.plural, obj)
    ]
    for quota in relevant:
        _check_specified(attributes, quota, obj)
    for quota in relevant:
        change = _checked(attributes, quota, usage)
        if change is not None and not attributes.request.dry_run:
            attributes.settlements.append(partial(_settle, store, quotas, quota, change))


def _extended_usage(store: Store, namespace: str, claim: Object) -> dict[str, Decimal]:
    """Return the extended resources that a new claim uses, without what its pod has been counted for."""
    classes = store.filled(DEVICE_CLASSES.group, DEVICE_CLASSES.plural)
    if classes is None:
        return {}
    resources = class_resources(classes.select(Selection()))
    name = pod_name_of(claim)
    pod = store.find(store.kinds.of(PODS), namespace, name) if name else None
    shelf = store.filled(RESOURCE_CLAIMS.group, RESOURCE_CLAIMS.plural)
    claims = () if shelf is None or pod is None else shelf.select(Selection(namespace))
    counted = usage_of("", PODS.plural, pod) if pod is not None and stands_for(claim, pod, claims) else {}
    return extended_usage(claim, resources, counted)


def _concerns(kind: Kind, quota: Object, usage: Usage) -> bool:
    """Return whether a quota that has been counted limits what such objects may use, though this one may use none of
    it."""
    hard = _hard(quota)
    return any(name in usage or (kind.resource == PODS and is_used_by_pods(name)) for name in hard)


def _hard(quota: Object) -> Mapping[str, str]:
    status: Mapping[str, str] = (quota.get("status") or {}).get("hard") or {}
    return status


def _check_specified(attributes: AdmissionAttributes, quota: Object, obj: Object) -> None:
    """What a quota limits a pod must say, container by container."""
    if attributes.kind.plural != "pods" or attributes.kind.resource.group or attributes.old is not None:
        return
    missing = required_by_pod(obj, _hard(quota))
    if missing:
        texts = "; ".join(f"{resource} for: {','.join(names)}" for resource, names in sorted(missing.items()))
        raise refused(attributes, f"failed quota: {quota['metadata']['name']}: must specify {texts}")


def _checked(attributes: AdmissionAttributes, quota: Object, usage: Usage) -> Mapping[str, str] | None:
    """Return a quota's used amounts after the request, None where it changes none."""
    hard, name = _hard(quota), quota["metadata"]["name"]
    used = (quota.get("status") or {}).get("used") or {}
    counted = {key: amount for key, amount in usage.items() if key in hard}
    unknown = sorted(key for key in counted if key not in used)
    if unknown:
        raise refused(attributes, f"status unknown for quota: {name}, resources: {','.join(unknown)}")
    if not any(counted.values()):
        return None
    new = {key: parse(used[key]) + amount for key, amount in counted.items()}
    over = sorted(key for key in new if counted[key] > 0 and new[key] > parse(hard[key]))
    if over:
        asked = _pairs(over, {key: amount_text(counted[key], binary=is_binary(attributes.obj, key)) for key in over})
        text = f"exceeded quota: {name}, requested: {asked}, used: {_pairs(over, used)}, limited: {_pairs(over, hard)}"
        raise refused(attributes, text)
    return {
        key: amount_text(amount, binary=_is_binary(str(used[key]), attributes.obj, key)) for key, amount in new.items()
    }


def _is_binary(known: str, obj: Object | None, name: str) -> bool:
    """Return whether a sum is shown in binary suffixes: as its first term that is not zero."""
    return known.endswith("i") if parse(known) else is_binary(obj, name)


def _pairs(names: list[str], amounts: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)


def _settle(store: Store, kind: Kind, quota: Object, used: Mapping[str, str]) -> None:
    new: Object = clone(quota)
    new["status"]["used"] = {**new["status"].get("used", {}), **used}
    store.commit(kind, (quota["metadata"]["namespace"], quota["metadata"]["name"]), new)


PLUGIN = AdmissionPlugin("ResourceQuota", _handles, validate=_validate)
