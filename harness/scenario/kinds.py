"""Which resource a kind in a scenario means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.harness.scenario.errors import ScenarioError
from mews.kube.api.objects import Object
from mews.kube.api.resources import (
    CONFIGMAPS,
    CRDS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    Resource,
)
from mews.kube.client.port import KubeApi

BASIC = {r.kind: r for r in (PODS, NODES, NAMESPACES, CONFIGMAPS, EVENTS, LEASES, PRIORITY_CLASSES, CRDS)}
"""Kinds whose apiVersion may be left out without asking the cluster."""


async def resource_of(kube: KubeApi, kind: str, api_version: str = "") -> Resource:
    """Return the resource of a kind; those that are not built in are looked up in discovery.

    Raises ScenarioError when the cluster serves no such kind, or several.
    """
    if basic(kind, api_version) is not None:
        return BASIC[kind]
    served = [r for r in await kube.discovery() if r.kind == kind]
    chosen = [r for r in served if api_version in ("", r.api_version)]
    if len(chosen) == 1:
        return chosen[0]
    raise ScenarioError(f"kind {kind!r} (apiVersion {api_version or 'not given'}): {ambiguity(served)}")


def basic(kind: str, api_version: str) -> Resource | None:
    """Return the resource of a kind that is known without asking the cluster, or None."""
    known = BASIC.get(kind)
    return known if known is not None and api_version in ("", known.api_version) else None


def ambiguity(served: Sequence[Resource]) -> str:
    """Return why a kind means none, or not one, of the resources of that kind."""
    versions = ", ".join(sorted(r.api_version for r in served))
    return f"apiVersion must be one of {versions}" if served else "the cluster serves no such kind"


def complete(obj: dict[str, Any], resource: Resource) -> Object:
    """Return the object with the apiVersion and namespace that scenarios may leave out."""
    metadata = {**obj["metadata"]}
    if resource.namespaced:
        metadata.setdefault("namespace", "default")
    return {"apiVersion": resource.api_version, **obj, "metadata": metadata}
