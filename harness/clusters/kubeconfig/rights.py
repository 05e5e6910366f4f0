"""What a run in somebody's cluster must be allowed, asked before anything is made there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.api.resources import Resource
from mews.kube.client.port import KubeApi

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)

_RBAC = "rbac.authorization.k8s.io"
_SEEN, _MADE = ("get", "list", "watch"), ("create", "patch", "delete")

NEEDED: Sequence[tuple[str, Sequence[str], Sequence[str]]] = (
    ("", ("namespaces",), ("get", "list", *_MADE)),
    ("", ("nodes",), _SEEN),
    ("", ("pods",), (*_SEEN, "create", "delete")),
    ("", ("pods/log", "pods/exec", "pods/proxy"), ("get",)),
    ("", ("services/proxy",), ("get", "create", "update", "delete")),
    ("", ("events",), ("list", "watch")),
    ("", ("configmaps", "secrets", "services", "serviceaccounts"), ("get", "list", *_MADE)),
    ("apps", ("deployments", "daemonsets"), ("get", "list", *_MADE)),
    (_RBAC, ("clusterroles", "clusterrolebindings", "roles", "rolebindings"), _MADE),
)
"""Group, its resources, verbs; in all namespaces, since those of the run are not there yet."""


async def missing_rights(kube: KubeApi) -> list[str]:
    """Return what the client's user may not do: ``create/delete namespaces``, …"""
    wanted = [(verb, group, resource) for group, resources, verbs in NEEDED for resource in resources for verb in verbs]
    allowed = await asyncio.gather(*(_may(kube, *each) for each in wanted))
    missing: dict[str, list[str]] = {}
    for (verb, _, resource), may in zip(wanted, allowed, strict=True):
        if not may:
            missing.setdefault(resource, []).append(verb)
    return [f"{'/'.join(verbs)} {resource}" for resource, verbs in missing.items()]


async def _may(kube: KubeApi, verb: str, group: str, resource: str) -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    review = await kube.create(REVIEWS, {"spec": {"resourceAttributes": attributes}})
    return bool(review["status"]["allowed"])
