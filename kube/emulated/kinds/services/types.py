"""What of a Service depends on its type, and goes with it (dropTypeDependentFields of the Service registry)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.emulated.core.checks.common import items

OUTWARD = ("NodePort", "LoadBalancer")
_ADDRESSES = (("clusterIP", "clusterIPs"), ("ipFamilies",), ("ipFamilyPolicy",))


def is_reached(spec: Mapping[str, Any]) -> bool:
    """Return whether it can be reached from outside."""
    return spec.get("type") in OUTWARD or (spec.get("type") == "ClusterIP" and bool(items(spec, "externalIPs")))


def is_checked(spec: Mapping[str, Any]) -> bool:
    """Return whether the service has a further port that tells its health."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def drop_of_type(spec: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Leave out what the new type does not have, where the user did not change it as well: that is refused."""
    if before.get("type") != "ExternalName" and spec.get("type") == "ExternalName":
        for names in _ADDRESSES:
            _drop(spec, before, *names)
    if (
        before.get("type") in OUTWARD
        and spec.get("type") not in OUTWARD
        and not _node_ports(spec) - _node_ports(before)
    ):
        for port in items(spec, "ports"):
            port.pop("nodePort", None)
    if is_checked(before) and not is_checked(spec):
        _drop(spec, before, "healthCheckNodePort")
    if before.get("type") == "LoadBalancer" and spec.get("type") != "LoadBalancer":
        _drop(spec, before, "allocateLoadBalancerNodePorts")
        _drop(spec, before, "loadBalancerClass")
    if is_reached(before) and not is_reached(spec):
        _drop(spec, before, "externalTrafficPolicy")


def _drop(spec: dict[str, Any], before: Mapping[str, Any], *names: str) -> None:
    if all(spec.get(name) == before.get(name) for name in names):
        for name in names:
            spec.pop(name, None)


def _node_ports(spec: Mapping[str, Any]) -> set[int]:
    return {port["nodePort"] for port in items(spec, "ports") if port.get("nodePort")}
