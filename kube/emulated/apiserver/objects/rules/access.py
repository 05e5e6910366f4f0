"""Rules of roles and of who has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_GROUP = "rbac.authorization.k8s.io"


def _role_faults(role: Object) -> list[FieldError]:
    found = []
    for index, rule in enumerate(role.get("rules") or ()):
        found += _rule_faults(rule, f"rules[{index}]")
    return found


def _rule_faults(rule: Mapping[str, Any], path: str) -> list[FieldError]:
    found = []
    if not rule.get("verbs"):
        found.append(refusals.required(f"{path}.verbs", "verbs must contain at least one value"))
    if rule.get("nonResourceURLs"):
        return found
    if not rule.get("apiGroups"):
        found.append(refusals.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(refusals.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


def _default_binding(binding: Object) -> None:
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _GROUP)


def _binding_faults(binding: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    role, found = binding["roleRef"], []
    if role["apiGroup"] != _GROUP:
        found.append(refusals.unsupported("roleRef.apiGroup", role["apiGroup"], (_GROUP,)))
    if role.get("kind") not in kinds:
        found.append(refusals.unsupported("roleRef.kind", role.get("kind", ""), kinds))
    if not role.get("name"):
        found.append(refusals.required("roleRef.name"))
    for index, subject in enumerate(binding.get("subjects") or ()):
        path = f"subjects[{index}]"
        if not subject.get("name"):
            found.append(refusals.required(f"{path}.name"))
        if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
            allowed = ("ServiceAccount", "User", "Group")
            found.append(refusals.unsupported(f"{path}.kind", subject.get("kind", ""), allowed))
        elif subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            found.append(refusals.required(f"{path}.namespace"))
    return found


def _compare_binding(new: Object, old: Object) -> list[FieldError]:
    if new["roleRef"] == old["roleRef"]:
        return []
    role = new["roleRef"]
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return [refusals.bad("roleRef", shown, "cannot change roleRef")]


ROLES = Rules(validate=_role_faults)
ROLE_BINDINGS = Rules(
    default=_default_binding,
    validate=lambda binding: _binding_faults(binding, ("Role", "ClusterRole")),
    compare=_compare_binding,
)
CLUSTER_ROLE_BINDINGS = Rules(
    default=_default_binding,
    validate=lambda binding: _binding_faults(binding, ("ClusterRole",)),
    compare=_compare_binding,
)
