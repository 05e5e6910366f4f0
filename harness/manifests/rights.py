"""Accounts of the components, and what each may do: no more than it asks of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.harness.manifests.parts import Object, metadata

Rule = Mapping[str, Sequence[str]]

_RBAC = "rbac.authorization.k8s.io"
_WATCH = ("list", "watch")


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


EVERYWHERE: Mapping[str, Sequence[Rule]] = {
    "scheduler": (
        _rule("", ["pods"], ["get", *_WATCH, "patch", "delete"]),  # annotations; preemption
        _rule("", ["pods/binding"], ["create"]),
        _rule("", ["pods/status"], ["patch"]),
        _rule("", ["nodes", "namespaces"], _WATCH),
        _rule("", ["events"], ["create", "patch"]),
        _rule("events.k8s.io", ["events"], ["create", "patch"]),
    ),
    "reconfig-manager": (_rule("", ["pods", "events"], _WATCH),),
    "device-manager": (_rule("", ["pods"], ["list"]),),
    "operator": (
        _rule("kubeflow.org", ["tfjobs"], [*_WATCH, "delete"]),  # after their time to live
        _rule("kubeflow.org", ["tfjobs/status"], ["update"]),
        _rule("", ["pods", "services"], [*_WATCH, "create", "delete"]),
        _rule("", ["nodes"], _WATCH),
        _rule("", ["events"], ["get", "create", "patch"]),
    ),
    "extender": (_rule("", ["pods", "nodes"], _WATCH),),
}
"""Component -> rules for all namespaces: pods of any may ask for devices."""

IN_NAMESPACE: Mapping[str, Sequence[Rule]] = {
    "scheduler": (_rule("", ["configmaps"], _WATCH),),
    "reconfig-manager": (_rule("", ["configmaps"], ["get", *_WATCH, "create", "patch"]),),
    "device-manager": (_rule("", ["configmaps"], ["get", *_WATCH, "create", "patch"]),),
    "operator": (_rule("", ["configmaps"], _WATCH),),
}
"""Component -> rules for KubeComp's own namespace: what they tell each other."""


def rights(component: str, namespace: str, prefix: str) -> list[Object]:
    """The account of a component, its roles and their bindings. ``prefix`` tells the cluster-wide names of several
    stacks in one cluster apart."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(component, component, namespace)}
    made: list[Object] = [account]
    if component in EVERYWHERE:
        name = f"{prefix}{component}"
        made += _granted("ClusterRole", name, component, None, EVERYWHERE[component], namespace)
    if component in IN_NAMESPACE:
        made += _granted("Role", component, component, namespace, IN_NAMESPACE[component], namespace)
    return made


def scheduler_rights(component: str, namespace: str, prefix: str) -> list[Object]:
    """The account of what takes kube-scheduler's place, with kube-scheduler's own roles."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(component, component, namespace)}
    made: list[Object] = [account]
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        name = f"{prefix}{component}-{role.partition(':')[2]}"
        made.append(_binding("ClusterRole", role, name, component, None, namespace))
    return made


def _granted(
    kind: str, name: str, component: str, within: str | None, rules: Sequence[Rule], namespace: str
) -> list[Object]:
    role = {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata(name, component, within)}
    binding = _binding(kind, name, name, component, within, namespace)
    return [{**role, "rules": [dict(rule) for rule in rules]}, binding]


def _binding(kind: str, role: str, name: str, component: str, within: str | None, namespace: str) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata(name, component, within),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": component, "namespace": namespace}],
    }
