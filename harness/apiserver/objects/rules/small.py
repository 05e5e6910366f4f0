"""Kinds whose rules are a few lines."""

from __future__ import annotations

from mews.harness.apiserver.objects.rules.base import Rules
from mews.harness.apiserver.store import refusals
from mews.harness.apiserver.store.refusals import Fault
from mews.kube.api.objects import Object

_USERS_LIMIT = 1_000_000_000


def _validate_class(priority_class: Object) -> list[Fault]:
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    if name.startswith("system-"):
        if name in ("system-node-critical", "system-cluster-critical"):
            return []
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        return [refusals.forbidden_field("metadata.name", f"{text}{name} is not a known system priority class")]
    if value > _USERS_LIMIT:
        text = f"maximum allowed value of a user defined priority is {_USERS_LIMIT}"
        return [refusals.forbidden_field("value", text)]
    return []


def _compare_class(new: Object, old: Object) -> list[Fault]:
    if new["value"] != old["value"]:
        return [refusals.forbidden_field("value", "may not be changed in an update.")]
    return []


def _validate_lease(lease: Object) -> list[Fault]:
    duration = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        return [refusals.bad("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return []


PRIORITY_CLASSES = Rules(validate=_validate_class, compare=_compare_class)
LEASES = Rules(validate=_validate_lease)
