"""Services: an address of the cluster's range, node ports where the type has them, ports that can be."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.pod_faults import port_name_faults
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

if TYPE_CHECKING:
    from mews.kube.emulated.apiserver.store.kinds import Kind
    from mews.kube.emulated.apiserver.store.store import Store

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_OUTWARD = ("NodePort", "LoadBalancer")
_NODE_PORTS = range(30_000, 32_768)
_LAST_PORT = 65_535
_ADDRESS_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _default(service: Object) -> None:
    spec = service["spec"]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _OUTWARD:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    for port in spec.get("ports") or ():
        if not port.get("targetPort"):  # Go's clients write the zero value of what they leave out
            port["targetPort"] = port["port"]


def _admit(store: Store, kind: Kind, service: Object) -> None:
    spec = service["spec"]
    if spec["type"] == "ExternalName" or _faults(service):
        return
    others = [obj["spec"] for obj in store.list(kind).items]
    if "clusterIP" not in spec:
        taken = {other.get("clusterIP") for other in others}
        numbers = (f"10.96.{host // 256}.{host % 256}" for host in range(10, 65_535))
        spec["clusterIP"] = next(address for address in numbers if address not in taken)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts"):
        used = {port.get("nodePort") for other in others for port in other.get("ports") or ()}
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = next(number for number in _NODE_PORTS if number not in used)
            used.add(port["nodePort"])


def _faults(service: Object) -> list[FieldError]:
    spec = service["spec"]
    ports = spec.get("ports") or []
    found = []
    if not ports and spec.get("clusterIP") != "None" and spec["type"] != "ExternalName":
        found.append(refusals.required("spec.ports"))
    seen, taken = [], set[str]()
    for index, port in enumerate(ports):
        found += _port_faults(port, f"spec.ports[{index}]", taken, alone=len(ports) == 1)
    for index, port in enumerate(ports):
        key = (port.get("protocol", "TCP"), port["port"])
        if key in seen:
            found.append(refusals.duplicate(f"spec.ports[{index}]", _shown(*key)))
        seen.append(key)
    if spec["type"] not in _TYPES:
        found.append(refusals.unsupported("spec.type", spec["type"], _TYPES))
    address = spec.get("clusterIP", "None")
    if address != "None" and not _is_address(address):
        found.append(refusals.bad("spec.clusterIPs[0]", address, _ADDRESS_TEXT))
    if spec["type"] == "ExternalName" and not spec.get("externalName"):
        text = "a lowercase RFC 1123 subdomain must not be empty"
        found.append(refusals.bad("spec.externalName", "", text))
    return found


def _port_faults(port: Mapping[str, Any], path: str, taken: set[str], *, alone: bool) -> Iterator[FieldError]:
    """What is wrong with one port (upstream validateServicePort); ``taken``: the names of those before it."""
    text = f"must be between 1 and {_LAST_PORT}, inclusive"
    yield from _name_faults(port.get("name", ""), f"{path}.name", taken, alone=alone)
    if not 0 < port["port"] <= _LAST_PORT:
        yield refusals.bad(f"{path}.port", port["port"], text)
    if port.get("protocol", "TCP") not in _PROTOCOLS:
        yield refusals.unsupported(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    target = port.get("targetPort")
    if isinstance(target, int) and not 0 < target <= _LAST_PORT:
        yield refusals.bad(f"{path}.targetPort", target, text)
    elif isinstance(target, str):
        yield from port_name_faults(f"{path}.targetPort", target)
    if port.get("appProtocol") is not None:
        yield from names.qualified_faults(f"{path}.appProtocol", port["appProtocol"])


def _name_faults(name: str, path: str, taken: set[str], *, alone: bool) -> Iterator[FieldError]:
    if not name:
        if not alone:
            yield refusals.required(path)
        return
    if not names.is_label(name):
        yield refusals.bad(path, name, names.LABEL_TEXT)
    if name in taken:
        yield refusals.duplicate(path, name)
    taken.add(name)


def _shown(protocol: str, port: int) -> dict[str, Any]:
    """What of a port counts when it is compared, as Go prints it."""
    nothing = {"AppProtocol": None, "Port": port, "TargetPort": 0, "NodePort": 0}
    return {"Name": "", "Protocol": protocol, **nothing}


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _inherit(new: Object, old: Object) -> None:
    """An update that does not say the addresses keeps them."""
    if new["spec"].get("type") == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if name not in new["spec"] and name in old["spec"]:
            new["spec"][name] = old["spec"][name]


def _compare(new: Object, old: Object) -> list[FieldError]:
    before, after = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and before != after and "ExternalName" not in (old["spec"].get("type"), new["spec"].get("type")):
        return [refusals.bad("spec.clusterIPs[0]", [after] if after else None, "may not change once set")]
    return []


RULES = Rules(default=_default, admit=_admit, validate=_faults, compare=_compare, inherit=_inherit)
