"""Accounts of the components, and what each may do: no more than it asks of the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mews.harness.manifests.parts import Object, metadata
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.kube.system.deployment import ComponentDeployment, Rule, rule

EXTENDER = "extender"
"""The account of what kube-scheduler, or what takes its place, asks."""
_RBAC = "rbac.authorization.k8s.io"
_SCHEDULER_ROLES = ("system:kube-scheduler", "system:volume-scheduler")


def rights(component: str, deployment: ComponentDeployment, namespace: str, prefix: str) -> list[Object]:
    """Return the account of a component, its roles and their bindings. ``prefix`` tells the cluster-wide names of
    several stacks in one cluster apart."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(component, component, namespace)}
    made: list[Object] = [account]
    if deployment.everywhere:
        name = f"{prefix}{component}"
        made += _granted("ClusterRole", name, component, None, deployment.everywhere, namespace)
    if deployment.in_namespace:
        made += _granted("Role", component, component, namespace, deployment.in_namespace, namespace)
    for other, rules in deployment.in_others.items():
        made += _granted("Role", f"{prefix}{component}", component, other, rules, namespace)
    return made


def extender_rights(namespace: str, prefix: str) -> list[Object]:
    """Return the account of the default scheduler's extenders, which may see pods and nodes."""
    seen = ComponentDeployment((), everywhere=(rule("", ["pods", "nodes"], ["list", "watch"]),))
    return rights(EXTENDER, seen, namespace, prefix)


def cluster_wide(components: Iterable[str], prefix: str) -> list[tuple[str, str]]:
    """Kind and name of everything without a namespace that a stack of these components may have, in the order in which
    it can be deleted."""
    accounts = [f"{prefix}{component}" for component in (*components, EXTENDER)]
    bindings = [*accounts, *(_scheduler_binding(prefix, role) for role in _SCHEDULER_ROLES)]
    return [*(("ClusterRoleBinding", name) for name in bindings), *(("ClusterRole", name) for name in accounts)]


def _scheduler_binding(prefix: str, role: str) -> str:
    return f"{prefix}{DEFAULT_SCHEDULER}-{role.partition(':')[2]}"


def scheduler_rights(namespace: str, prefix: str) -> list[Object]:
    """Return the account of what takes kube-scheduler's place, with kube-scheduler's own roles."""
    component = DEFAULT_SCHEDULER
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(component, component, namespace)}
    made: list[Object] = [account]
    for role in _SCHEDULER_ROLES:
        made.append(_binding("ClusterRole", role, _scheduler_binding(prefix, role), component, None, namespace))
    return made


def _granted(
    kind: str, name: str, component: str, within: str | None, rules: Sequence[Rule], namespace: str
) -> list[Object]:
    role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata(name, component, within)}
    binding = _binding(kind, name, name, component, within, namespace)
    return [{**role, "rules": [dict(each) for each in rules]}, binding]


def _binding(kind: str, role: str, name: str, component: str, within: str | None, namespace: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata(name, component, within),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": component, "namespace": namespace}],
    }
