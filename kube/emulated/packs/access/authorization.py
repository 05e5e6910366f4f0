"""Who may do what: role based access control (rbac.authorization.k8s.io/v1), as the API server decides it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mews.kube.api.errors import ForbiddenError
from mews.kube.api.objects import Object, labels_of
from mews.kube.api.resources import Resource
from mews.kube.api.selectors import match_expressions
from mews.kube.emulated.core.store.selection import EVERYTHING, Selection
from mews.kube.emulated.core.store.users import MASTERS, User, account_of

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

GROUP = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
ROLES = Resource(GROUP, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(GROUP, "v1", "rolebindings", "RoleBinding")

Rule = Mapping[str, Any]


class Attributes(Struct, frozen=True):
    """What is asked for: a verb on a resource, or on a ``path`` that is none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """``pods`` or ``pods/log``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class AccessDecision(Struct, frozen=True):
    """The decision on a request: whether it is allowed and by which binding, or what kept it from being decided."""

    allowed: bool
    reason: str = ""


class Authorizer:
    """Reads roles and bindings from the store, every time: they are few."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, user: User, asked: Attributes) -> None:
        """403 for what is not allowed, in the API server's words."""
        verdict = self.decide(user, asked)
        if verdict.allowed:
            return
        tail = f": {verdict.reason}" if verdict.reason else ""
        if asked.path:
            text = f'forbidden: User "{user.name}" cannot {asked.verb} path "{asked.path}"'
            raise ForbiddenError(f"{text}{tail}", details={})
        what = f"{asked.resource}{f'.{asked.group}' if asked.group else ''}"
        named = f'{what} "{asked.name}"' if asked.name else what
        where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
        details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
        raise ForbiddenError(
            f'{named} is forbidden: User "{user.name}" cannot {asked.verb} resource "{asked.label}" in API group '
            f'"{asked.group}" {where}{tail}',
            details={key: value for key, value in details.items() if value},
        )

    def decide(self, user: User, asked: Attributes) -> AccessDecision:
        """Members of system:masters may do everything, others what a rule of a role bound to them allows."""
        if MASTERS in user.groups:
            return AccessDecision(True)
        lacking: list[str] = []
        for reason, rules in self._granted(user, asked.namespace, lacking):
            if any(_covers(rule, asked) for rule in rules):
                return AccessDecision(True, f"RBAC: allowed by {reason}")
        if not lacking:
            return AccessDecision(False)
        return AccessDecision(False, f"RBAC: {lacking[0] if len(lacking) == 1 else '[' + ', '.join(lacking) + ']'}")

    def rules_of(self, user: User, namespace: str) -> list[Rule]:
        """Return all that a user may do in a namespace, rule by rule."""
        return [rule for _reason, rules in self._granted(user, namespace, []) for rule in rules]

    def _granted(self, user: User, namespace: str, lacking: list[str]) -> Iterator[tuple[str, list[Rule]]]:
        """Rules bound to the user, with the words for it; roles that are not there go into ``lacking``."""
        places = [(CLUSTER_ROLE_BINDINGS, "", EVERYTHING)]
        if namespace:
            places.append((ROLE_BINDINGS, namespace, Selection(namespace)))
        for resource, place, selection in places:
            for binding in self._store.shelf(self._store.kinds.of(resource)).select(selection):
                subject = next((each for each in binding.get("subjects") or () if _is(each, user, place)), None)
                if subject is None:
                    continue
                reference = binding["roleRef"]
                rules = self.rules_of_role(reference, place)
                if rules is None:
                    kind = reference["kind"].lower()
                    lacking.append(f'{kind}.{GROUP} "{reference["name"]}" not found')
                    continue
                name = "/".join(part for part in (binding["metadata"]["name"], place) if part)
                role = f'{reference["kind"]} "{reference["name"]}"'
                yield f'{resource.kind} "{name}" of {role} to {_shown(subject, place)}', rules

    def rules_of_role(self, reference: Mapping[str, str], namespace: str) -> list[Rule] | None:
        """Return what the role of a binding's ``roleRef`` allows, None when there is no such role."""
        cluster = reference["kind"] == "ClusterRole"
        kind = self._store.kinds.of(CLUSTER_ROLES if cluster else ROLES)
        role = self._store.find(kind, "" if cluster else namespace, reference["name"])
        if role is None:
            return None
        return list(self._aggregated(role) if role.get("aggregationRule") else role.get("rules") or ())

    def _aggregated(self, role: Object) -> Iterator[Rule]:
        """Rules of the cluster roles that an aggregation rule selects, to any depth; the role's own do not count."""
        seen = {role["metadata"]["name"]}
        waiting = [role]
        while waiting:
            selectors = (waiting.pop().get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
            if not selectors:
                continue
            for other in self._store.shelf(self._store.kinds.of(CLUSTER_ROLES)).select(EVERYTHING):
                name, labels = other["metadata"]["name"], labels_of(other)
                if name not in seen and any(match_expressions(selector, labels) for selector in selectors):
                    seen.add(name)
                    waiting.append(other)
                    yield from () if other.get("aggregationRule") else other.get("rules") or ()


def _is(subject: Mapping[str, str], user: User, namespace: str) -> bool:
    match subject.get("kind"):
        case "User":
            return subject["name"] == user.name
        case "Group":
            return subject["name"] in user.groups
        case "ServiceAccount":
            return (subject.get("namespace") or namespace, subject["name"]) == account_of(user.name)
    return False


def _shown(subject: Mapping[str, str], namespace: str) -> str:
    if subject["kind"] != "ServiceAccount":
        return f'{subject["kind"]} "{subject["name"]}"'
    return f'ServiceAccount "{subject["name"]}/{subject.get("namespace") or namespace}"'


def _covers(rule: Rule, asked: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and asked.verb not in verbs:
        return False
    if asked.path:
        return any(_is_path(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" not in groups and asked.group not in groups:
        return False
    wanted = {"*", asked.label} | ({f"*/{asked.subresource}"} if asked.subresource else set())
    if wanted.isdisjoint(resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or asked.name in names


def _is_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern[:-1].rstrip("*")))
