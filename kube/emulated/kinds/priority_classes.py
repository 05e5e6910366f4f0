"""PriorityClasses: names that are reserved, values that are, and what may not change."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age

PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_USERS_LIMIT = 1_000_000_000
SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _validate(priority_class: Object) -> list[FieldError]:
    name, value = priority_class["metadata"].get("name", ""), priority_class["value"]
    found = []
    if name.startswith("system-"):
        if unknown := _unknown(name, value, is_default=bool(priority_class.get("globalDefault"))):
            text = "priority class names with 'system-' prefix are reserved for system use only. error: "
            found.append(refusals.forbidden_field("metadata.name", text + unknown))
    elif value > _USERS_LIMIT:
        text = f"maximum allowed value of a user defined priority is {_USERS_LIMIT}"
        found.append(refusals.forbidden_field("value", text))
    return found + preemption_errors(priority_class.get("preemptionPolicy"), "preemptionPolicy")


def _unknown(name: str, value: int, *, is_default: bool) -> str:
    """Return why it is not one of the system's classes; "" when it is one."""
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def preemption_errors(policy: str | None, path: str) -> list[FieldError]:
    """Return what is wrong with a preemption policy, if one is given."""
    if policy is None:
        return []
    return common.option(path, policy, PREEMPTION_POLICIES) if policy else [refusals.required(path)]


def _compare(new: Object, old: Object) -> list[FieldError]:
    found = []
    if new["value"] != old["value"]:
        found.append(refusals.forbidden_field("value", "may not be changed in an update."))
    return found + common.fixed("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def _change(new: Object, old: Object, _: str) -> list[FieldError]:
    return _compare(new, old)


def _stamp_create(priority_class: Object, _: str) -> None:
    """The first generation is the last: no update makes another."""
    priority_class["metadata"]["generation"] = 1


def _priority_class(obj: Object, now_s: float) -> Row:
    return [
        obj["metadata"]["name"],
        obj["value"],
        bool(obj.get("globalDefault")),
        meta_age(obj, now_s),
        obj.get("preemptionPolicy", ""),
    ]


RULES = Rules(printer=Printer(_priority_class), stamp_create=_stamp_create, validate=_validate, validate_update=_change)
