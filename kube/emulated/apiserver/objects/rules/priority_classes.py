"""PriorityClasses: names that are reserved, values that are, and what may not change."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules import checks
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_USERS_LIMIT = 1_000_000_000


def _validate(priority_class: Object) -> list[FieldError]:
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    if name.startswith("system-"):
        if name in ("system-node-critical", "system-cluster-critical"):
            return []
        text = "priority class names with 'system-' prefix are reserved for system use only. error: "
        return [refusals.forbidden_field("metadata.name", f"{text}{name} is not a known system priority class")]
    if value > _USERS_LIMIT:
        text = f"maximum allowed value of a user defined priority is {_USERS_LIMIT}"
        return [refusals.forbidden_field("value", text), *_policy_faults(priority_class)]
    return _policy_faults(priority_class)


def _policy_faults(priority_class: Object) -> list[FieldError]:
    policy = priority_class.get("preemptionPolicy")
    return [] if policy is None else checks.option("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _compare(new: Object, old: Object) -> list[FieldError]:
    found = []
    if new["value"] != old["value"]:
        found.append(refusals.forbidden_field("value", "may not be changed in an update."))
    return found + checks.fixed("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _change(new: Object, old: Object, _: str) -> list[FieldError]:
    return _compare(new, old)


RULES = Rules(validate=_validate, validate_change=_change)
