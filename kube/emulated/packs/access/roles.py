"""Rules of roles and of who has them."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, segment_named
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def _role_errors(role: Object, *, namespaced: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, rule in enumerate(items(role, "rules")):
        found += _rule_errors(rule, f"rules[{index}]", namespaced=namespaced)
    aggregation, path = role.get("aggregationRule"), "aggregationRule.clusterRoleSelectors"
    selectors = items(aggregation or {}, "clusterRoleSelectors")
    if aggregation is not None and not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        found.append(refusals.required(path, text))
    for index, selector in enumerate(selectors):
        wrong = [*selector_errors(selector, f"{path}[{index}]")]
        found += wrong
        if wrong:
            found.append(refusals.bad(f"{path}[{index}]", None, "invalid label selector."))
    return found


def _rule_errors(rule: Part, path: str, *, namespaced: bool) -> Iterator[FieldError]:
    urls = items(rule, "nonResourceURLs")
    if not items(rule, "verbs"):
        yield refusals.required(f"{path}.verbs", "verbs must contain at least one value")
    if urls:
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            yield refusals.bad(f"{path}.nonResourceURLs", [*urls], text)
        if any(items(rule, name) for name in ("apiGroups", "resources", "resourceNames")):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            yield refusals.bad(f"{path}.nonResourceURLs", [*urls], text)
        return
    if not items(rule, "apiGroups"):
        yield refusals.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not items(rule, "resources"):
        yield refusals.required(f"{path}.resources", "resource rules must supply at least one resource")


def _default_binding(binding: Object) -> None:
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _GROUP


def _binding_errors(binding: Object, kinds: tuple[str, ...]) -> list[FieldError]:
    role, found = binding["roleRef"], []
    if role["apiGroup"] != _GROUP:
        found.append(refusals.unsupported("roleRef.apiGroup", role["apiGroup"], (_GROUP,)))
    if role.get("kind") not in kinds:
        found.append(refusals.unsupported("roleRef.kind", role.get("kind", ""), kinds))
    if not role.get("name"):
        found.append(refusals.required("roleRef.name"))
    else:
        found += common.path_segment("roleRef.name", role["name"])
    for index, subject in enumerate(items(binding, "subjects")):
        found += _subject_errors(subject, f"subjects[{index}]", namespaced="Role" in kinds)
    return found


def _subject_errors(subject: Part, path: str, *, namespaced: bool) -> Iterator[FieldError]:
    name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
    if not name:
        yield refusals.required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield refusals.unsupported(f"{path}.kind", kind, _SUBJECTS)
    elif kind != "ServiceAccount":
        yield from common.option(f"{path}.apiGroup", group, (_GROUP,))
    else:
        if name:
            yield from names.subdomain_errors(f"{path}.name", name)
        if group:
            yield refusals.unsupported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.get("namespace"):
            yield refusals.required(f"{path}.namespace")


def _compare_binding(new: Object, old: Object) -> list[FieldError]:
    if new["roleRef"] == old["roleRef"]:
        return []
    role = new["roleRef"]
    shown = {"APIGroup": role.get("apiGroup", ""), "Kind": role.get("kind", ""), "Name": role.get("name", "")}
    return [refusals.bad("roleRef", shown, "cannot change roleRef")]


def _binding(obj: Object, _: float) -> Row:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in subjects:
        place = f"{subject['namespace']}/" if subject.get("namespace") else ""
        by_kind.setdefault(subject["kind"], []).append(place + subject["name"])
    return [f"{role.get('kind', '')}/{role.get('name', '')}", *(", ".join(by_kind[kind]) for kind in list(by_kind)[:3])]


ROLES = Rules(
    validate=lambda role: _role_errors(role, namespaced=True),
    metadata=MetadataChecks(
        name_texts=segment_named, on_update=(METADATA, OBJECT, METADATA, OBJECT, METADATA_UPDATE, CHANGE)
    ),
)
CLUSTER_ROLES = Rules(
    validate=lambda role: _role_errors(role, namespaced=False),
    metadata=MetadataChecks(
        name_texts=segment_named, on_update=(METADATA, OBJECT, METADATA, OBJECT, METADATA_UPDATE, CHANGE)
    ),
)
ROLE_BINDINGS = Rules(
    printer=Printer(_binding, is_part=True),
    default=_default_binding,
    validate=lambda binding: _binding_errors(binding, ("Role", "ClusterRole")),
    compare=_compare_binding,
    metadata=MetadataChecks(
        name_texts=segment_named, on_update=(METADATA, OBJECT, METADATA, OBJECT, METADATA_UPDATE, CHANGE)
    ),
)
CLUSTER_ROLE_BINDINGS = Rules(
    printer=Printer(_binding, is_part=True),
    default=_default_binding,
    validate=lambda binding: _binding_errors(binding, ("ClusterRole",)),
    compare=_compare_binding,
    metadata=MetadataChecks(
        name_texts=segment_named, on_update=(METADATA, OBJECT, METADATA, OBJECT, METADATA_UPDATE, CHANGE)
    ),
)
