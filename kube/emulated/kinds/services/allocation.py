"""What a Service is given of the cluster: addresses, families, node ports (alloc.go and storage.go of its registry)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import ServerError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses
from mews.kube.emulated.core.checks.common import items
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.services.types import OUTWARD, is_checked

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store

Spec = dict[str, Any]
_RANGE = ipaddress.ip_network("10.96.0.0/16")
_NODE_PORTS = range(30_000, 32_768)
_FAMILIES = ("IPv4", "IPv6")


# Complex: upstream's order: later fields depend on earlier ones.
def keep(spec: Spec, before: Mapping[str, Any]) -> None:  # noqa: C901
    """An update that does not say what it was given keeps it (patchAllocatedValues, normalizeClusterIPs)."""
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        for name in ("clusterIP", "clusterIPs"):
            if not spec.get(name) and before.get(name):
                spec[name] = before[name]
    _keep_addresses_alike(spec, before)
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if name not in spec and name in before:
                spec[name] = before[name]
        for name in ("clusterIPs", "ipFamilies"):  # one family is asked for, which is the first one
            if spec.get("ipFamilyPolicy") == "SingleStack" and spec.get(name) == before.get(name):
                spec[name] = items(spec, name)[:1]
    if spec.get("type") in OUTWARD and before.get("type") in OUTWARD:
        _keep_node_ports(items(spec, "ports"), items(before, "ports"))
    if is_checked(spec) and is_checked(before) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = before.get("healthCheckNodePort", 0)


def _keep_addresses_alike(spec: Spec, before: Mapping[str, Any]) -> None:
    """A client that knows of one address alone clears both, or changes both."""
    address, former = spec.get("clusterIP"), before.get("clusterIP")
    if not spec.get("clusterIPs") and before.get("clusterIPs") and address == former:
        spec["clusterIPs"] = before["clusterIPs"]
    if address != former and list(items(spec, "clusterIPs")) == list(items(before, "clusterIPs")):
        if address:
            spec["clusterIPs"] = [address]
        else:
            spec.pop("clusterIPs", None)


def _keep_node_ports(ports: Any, former: Any) -> None:
    given = {port["nodePort"] for port in ports if port.get("nodePort")}
    known = {port.get("name", ""): port.get("nodePort", 0) for port in former}
    for port in ports:
        number = known.get(port.get("name", ""), 0)
        if number and not port.get("nodePort") and number not in given:
            port["nodePort"] = number


def begin(spec: Spec) -> None:
    """The policy of families that a Service has without saying one; what is asked about it comes after that."""
    alone = spec.get("clusterIP") == "None" and not spec.get("selector")
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if alone else "SingleStack")


def allocate(store: Store, kind: Kind, service: Object, *, dry_run: bool) -> list[FieldError]:
    """Addresses, families and ports that it has not got yet, or why it does not get those that it asks for.

    Raises ``ServerError`` for a node port that an update asks for twice, as upstream.
    """
    spec = service["spec"]
    known = store.list(kind).items
    others = [obj["spec"] for obj in known if not _is_same(obj, service)]
    keeps = any(items(obj["spec"], "clusterIPs") for obj in known if _is_same(obj, service))
    taken = {other.get("clusterIP") for other in others} - {"", "None", None}
    address = spec.get("clusterIP")
    if address not in (None, "None") and not keeps and (why := _unfit(address, taken, dry_run=dry_run)):
        text = f"failed to allocate IP {address}: {why}"
        return [refusals.bad("spec.clusterIPs", list(items(spec, "clusterIPs")) or [address], text)]
    if address is None:
        numbers = (str(_RANGE[host]) for host in range(10, _RANGE.num_addresses - 1))
        spec["clusterIP"] = next(number for number in numbers if number not in taken)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    _give_families(spec)
    used = {number for each in others for number in _ports_of(each)}
    return _port_errors(spec, used, dry_run=dry_run) or _give_ports(service, used)


def _unfit(address: str, taken: set[Any], *, dry_run: bool) -> str:
    """Return why it cannot have that address; "" when it can."""
    if address in taken:
        return "provided IP is already allocated"
    asked = addresses.parsed(address)
    if asked is not None and asked in _RANGE and asked not in (_RANGE[0], _RANGE[-1]):
        return ""
    if dry_run:
        return f"the provided IP ({address}) is not in the valid range. The range of valid IPs is {_RANGE}"
    return "the provided network does not match the current range"


def _port_errors(spec: Spec, used: set[int], *, dry_run: bool) -> list[FieldError]:
    if spec.get("type") not in OUTWARD:
        return []
    for index, port in enumerate(items(spec, "ports")):
        number, path = port.get("nodePort", 0), f"spec.ports[{index}].nodePort"
        if number in used - {0}:
            return [refusals.bad(path, number, "provided port is already allocated")]
        if number and number not in _NODE_PORTS and not dry_run:  # a dry run asks nobody who would know the range
            text = "provided port is not in the valid range. The range of valid ports is "
            return [refusals.bad(path, number, f"{text}{_NODE_PORTS[0]}-{_NODE_PORTS[-1]}")]
    return []


def _give_ports(service: Object, used: set[int]) -> list[FieldError]:
    spec = service["spec"]
    free = (number for number in _NODE_PORTS if number not in used | set(_ports_of(spec)))
    ports = items(spec, "ports")
    if spec["type"] == "NodePort" or (spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts")):
        given = {port["port"]: port["nodePort"] for port in reversed(ports) if port.get("nodePort")}
        for port in ports:  # one number serves a port of both protocols
            if not port.get("nodePort"):
                port["nodePort"] = given.setdefault(port["port"], given.get(port["port"]) or next(free))
    if spec["type"] in OUTWARD and "uid" in service["metadata"]:
        _refuse_twice(ports)
    if is_checked(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = next(free)
    return []


def _refuse_twice(ports: Sequence[Any]) -> None:
    seen = set()
    for port in ports:
        key = (port.get("protocol", ""), port.get("nodePort", 0))
        if key[1] and key in seen:
            raise ServerError(f"duplicate nodePort: {{{key[0]} {key[1]}}}", reason="")
        seen.add(key)


def _is_same(obj: Mapping[str, Any], service: Object) -> bool:
    return all(obj["metadata"].get(name) == service["metadata"].get(name) for name in ("name", "namespace"))


def _give_families(spec: Spec) -> None:
    families = list(items(spec, "ipFamilies"))
    for index, address in enumerate(items(spec, "clusterIPs")):
        if address != "None" and index >= len(families):
            families.append(_FAMILIES[addresses.family(address) == 6])
    families = families or ["IPv4"]
    alone = spec.get("clusterIP") == "None" and not spec.get("selector")
    if alone and len(families) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        families += [family for family in _FAMILIES if family not in families]
    spec["ipFamilies"] = families


def _ports_of(spec: Mapping[str, Any]) -> list[int]:
    return [spec.get("healthCheckNodePort", 0), *(port.get("nodePort", 0) for port in items(spec, "ports"))]
