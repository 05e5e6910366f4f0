"""Nobody gives out rights that they do not have themselves (pkg/registry/rbac: policybased storage).

Upstream asks this in the storage of roles and bindings rather than in its chain of plugins: before anything else of the
object is judged. Who may ``escalate`` roles or ``bind`` a role needs no rights of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import MASTERS
from mews.kube.emulated.packs.access.authorization import CLUSTER_ROLES, GROUP, ROLES, Attributes, Authorizer

Rule = Mapping[str, Any]

_GUARDED = ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
_WRITES = (AdmissionOperation.CREATE, AdmissionOperation.UPDATE)
_SHOWN = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)
_COLLECTORS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
_EVERYTHING: Sequence[Rule] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


def _handles(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    resource = kind.resource
    return resource.group == GROUP and resource.plural in _GUARDED and operation in _WRITES and not subresource


def _check(store: Store, attributes: AdmissionAttributes) -> None:
    new, old = attributes.obj or {}, attributes.old
    if MASTERS in attributes.user.groups or (old is not None and _compared(new) == _compared(old)):
        return
    authorizer, plural = Authorizer(store), attributes.kind.resource.plural
    aggregated = False
    if plural in ("rolebindings", "clusterrolebindings"):
        granted = _bound(authorizer, attributes, new.get("roleRef") or {})
    elif authorizer.decide(attributes.user, _escalation(attributes)).allowed:
        return
    else:
        granted = new.get("rules") or ()
        aggregated = _is_aggregated(new) or _is_aggregated(old or {})
    owned = authorizer.rules_of(attributes.user, attributes.namespace)
    lacking = _lacking(owned, granted)
    if lacking:
        user = attributes.user
        groups = " ".join(refusals.shown(group) for group in user.groups)
        who = f"user {refusals.shown(user.name)} (groups=[{groups}])"
        text = "is attempting to grant RBAC permissions not currently held:\n" + "\n".join(lacking)
        raise refused(attributes, f"{who} {text}")
    if aggregated and _lacking(owned, _EVERYTHING):
        raise refused(attributes, "must have cluster-admin privileges to use the aggregationRule")


def _compared(obj: Object) -> Object:
    """Return the object without what the garbage collector changes so that it may go: that asks for no rights."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _COLLECTORS}
    return {**obj, "metadata": metadata}


def _escalation(attributes: AdmissionAttributes) -> Attributes:
    """Return the question whether the user may escalate; a new object has no name yet that a rule could have."""
    name = attributes.name if attributes.operation is AdmissionOperation.UPDATE else ""
    return Attributes("escalate", GROUP, attributes.kind.resource.plural, namespace=attributes.namespace, name=name)


def _is_aggregated(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _bound(authorizer: Authorizer, attributes: AdmissionAttributes, reference: Mapping[str, str]) -> Sequence[Rule]:
    """Return what the role of a binding allows; nothing where the user may bind it anyway. 404 where there is none."""
    role = ROLES if reference.get("kind") == "Role" else CLUSTER_ROLES
    name = reference.get("name", "")
    asked = Attributes("bind", GROUP, role.plural, namespace=attributes.namespace, name=name)
    if not name or authorizer.decide(attributes.user, asked).allowed:
        return ()
    rules = authorizer.rules_of_role(reference, attributes.namespace)
    if rules is None:
        raise refusals.missing(attributes.kind, name)  # as upstream: what is not there it calls by the binding's kind
    return rules


def _lacking(owned: Sequence[Rule], granted: Sequence[Rule]) -> list[str]:
    """Return the rights among ``granted`` that no rule of ``owned`` covers, as upstream shows them."""
    missing = [part for rule in granted for part in _parts(rule) if not any(_covers(own, part) for own in owned)]
    merged: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    others: list[Rule] = []
    for part in missing:
        if part.get("nonResourceURLs"):
            others.append(part)
            continue
        key = (part["apiGroups"][0], part["resources"][0], "".join(part.get("resourceNames") or ()))
        known = merged.setdefault(key, {**part, "verbs": []})
        known["verbs"] += part["verbs"]
    return sorted({_text(rule) for rule in (*others, *merged.values())})


def _parts(rule: Rule) -> Iterator[dict[str, list[str]]]:
    """Yield a rule taken apart: of each part one group, one resource, one verb, one name at most."""
    verbs, names = rule.get("verbs") or (), rule.get("resourceNames") or ()
    for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
        part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(own: Rule, part: Rule) -> bool:
    if not all(_has(own, part, name) for name in ("verbs", "apiGroups")):
        return False
    names = own.get("resourceNames") or ()
    if names and not (part.get("resourceNames") and set(part["resourceNames"]) <= set(names)):
        return False
    resources = own.get("resources") or ()
    if not all(
        "*" in resources or one in resources or ("/" in one and f"*/{one.partition('/')[2]}" in resources)
        for one in part.get("resources") or ()
    ):
        return False
    urls = own.get("nonResourceURLs") or ()
    return all(
        any(url == known or (known.endswith("*") and url.startswith(known.rstrip("*"))) for known in urls)
        for url in part.get("nonResourceURLs") or ()
    )


def _has(own: Rule, part: Rule, name: str) -> bool:
    known = own.get(name) or ()
    return "*" in known or set(part.get(name) or ()) <= set(known)


def _text(rule: Rule) -> str:
    shown = (
        f"{label}:[{' '.join(refusals.shown(each) for each in rule[name])}]" for label, name in _SHOWN if rule.get(name)
    )
    return "{" + ", ".join(shown) + "}"


PLUGIN = AdmissionPlugin("RBACEscalation", _handles, mutate=_check)
