"""Services: an address of the cluster's range, node ports where the type has them, ports that can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.checks.common import items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, dns_1035_named
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer
from mews.kube.emulated.kinds.pods.spec_errors import port_name_errors
from mews.kube.emulated.kinds.server_conditions import service_committed
from mews.kube.emulated.kinds.services import allocation
from mews.kube.emulated.kinds.services.reachable import reachable
from mews.kube.emulated.kinds.services.types import OUTWARD, drop_of_type, is_checked, is_reached

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind
    from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.tables.cells import Row, labels_text, meta_age, none_if_empty

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_LAST_PORT = 65_535
_TRAFFIC = ("Cluster", "Local")
_LONGEST_AFFINITY_S = 86_400
_AFFINITY_S = 10_800
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_FOR_BALANCERS = "may only be used when `type` is 'LoadBalancer'"


# Complex: one branch for each default of upstream.
def _default(service: Object) -> None:  # noqa: C901
    spec = service["spec"]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    elif spec.get("internalTrafficPolicy") in _TRAFFIC:
        del spec["internalTrafficPolicy"]  # upstream stores and never shows it
    if is_reached(spec) and not spec.get("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = "Cluster"
    if spec.get("sessionAffinity") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec.get("sessionAffinity") == "ClientIP":
        client = common.part_of(common.part_of(spec, "sessionAffinityConfig"), "clientIP")
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_S}}
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in items(common.part_of(common.part_of(service, "status"), "loadBalancer"), "ingress"):
            if ingress.get("ip") and ingress.get("ipMode") is None:
                ingress["ipMode"] = "VIP"
    for port in spec.get("ports") or ():
        if not port.get("targetPort"):  # Go's clients write the zero value of what they leave out
            port["targetPort"] = port["port"]


def _allocate(store: Store, kind: Kind, service: Object, subresource: str, dry_run: bool) -> None:
    spec = service["spec"]
    if subresource or spec["type"] == "ExternalName":
        return
    allocation.begin(spec)
    wrong = list(cluster_address_errors(spec)) or family_errors(spec)
    if wrong := wrong or allocation.allocate(store, kind, service, dry_run=dry_run):
        raise refusals.invalid(kind, service["metadata"].get("name", ""), wrong)


def family_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    """Return what a cluster of one family of addresses cannot do (initIPFamilyFields of the Service registry)."""
    policy, path = spec.get("ipFamilyPolicy", "SingleStack"), "spec.ipFamilyPolicy"
    given, families = items(spec, "clusterIPs"), items(spec, "ipFamilies")
    if not given and spec.get("clusterIP"):
        given = [spec["clusterIP"]]
    found: list[FieldError] = []
    for name, several in (("cluster IPs", given), ("IP families", families)):
        if policy == "SingleStack" and len(several) == 2:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {name} are specified"
            found.append(refusals.bad(path, policy, text))
    for index, address in enumerate(given):
        if address != "None" and index >= len(families) and addresses.family(address) == 6:
            text = "IPv6 is not configured on this cluster"
            found.append(refusals.bad(f"spec.clusterIPs[{index}]", list(given), text))
    if found or (spec.get("clusterIP") == "None" and not spec.get("selector")):
        return found
    if policy == "RequireDualStack":
        found.append(refusals.bad(path, policy, "this cluster is not configured for dual-stack services"))
    for index, family in enumerate(families):
        if family != "IPv4":
            text = "not configured on this cluster"
            found.append(refusals.bad(f"spec.ipFamilies[{index}]", family, text))
    return found


def _errors(service: Object) -> list[FieldError]:
    return [*_annotation_errors(service), *_service_errors(service["spec"])]


def _annotation_errors(service: Object) -> Iterator[FieldError]:
    notes = annotations_of(service)
    mode, hints = notes.get(_HINTS), notes.get(_OLD_HINTS)
    if mode is not None and hints is not None and mode != hints:
        text = f"must match annotations[{_OLD_HINTS}] when both are specified"
        yield refusals.bad(f"metadata.annotations[{_HINTS}]", mode, text)


# Complex: upstream's order of errors, which clients see.
def _service_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:  # noqa: C901
    # The order of upstream's validateService, in which clients see the errors.
    ports, kind = items(spec, "ports"), spec.get("type", "")
    if not ports and spec.get("clusterIP") != "None" and kind != "ExternalName":
        yield refusals.required("spec.ports")
    yield from _type_errors(spec, kind)
    taken: set[str] = set()
    for index, port in enumerate(ports):
        yield from _port_errors(port, f"spec.ports[{index}]", taken, alone=len(ports) == 1)
    for key, value in (spec.get("selector") or {}).items():
        yield from names.label_pair_errors("spec.selector", key, value)
    yield from _affinity_errors(spec)
    yield from cluster_address_errors(spec)
    for index, address in enumerate(items(spec, "externalIPs")):
        wrong = addresses.address(f"spec.externalIPs[{index}]", address)
        yield from wrong or reachable(f"spec.externalIPs[{index}]", address, from_afar=True)
    if not kind:
        yield refusals.required("spec.type")
    else:
        yield from common.option("spec.type", kind, _TYPES)
    for index, port in enumerate(ports):
        if kind == "ClusterIP" and port.get("nodePort"):
            text = "may not be used when `type` is 'ClusterIP'"
            yield refusals.forbidden_field(f"spec.ports[{index}].nodePort", text)
    given = []
    for index, port in enumerate(ports):
        if (number := port.get("nodePort", 0)) and (port.get("protocol"), number) in given:
            yield refusals.duplicate(f"spec.ports[{index}].nodePort", number)
        given.append((port.get("protocol"), number))
    seen = []
    for index, port in enumerate(ports):
        key = (port.get("protocol", "TCP"), port["port"])
        if key in seen:
            yield refusals.duplicate(f"spec.ports[{index}]", _shown(*key))
        seen.append(key)
    yield from _balancer_errors(spec, kind)
    yield from _traffic_errors(spec, kind)


def _type_errors(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    if kind in OUTWARD and spec.get("clusterIP") == "None":
        yield refusals.bad("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind != "ExternalName":
        return
    text = "may not be set for ExternalName services"
    if spec.get("clusterIP") or spec.get("clusterIPs"):
        yield refusals.forbidden_field("spec.clusterIPs", text)
    if spec.get("ipFamilies"):
        yield refusals.forbidden_field("spec.ipFamilies", text)
    if spec.get("ipFamilyPolicy") is not None:
        yield refusals.forbidden_field("spec.ipFamilyPolicy", text)
    name = spec.get("externalName", "").removesuffix(".")
    yield from names.subdomain_errors("spec.externalName", name) if name else [refusals.required("spec.externalName")]


def _affinity_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    affinity, config, path = spec.get("sessionAffinity", ""), spec.get("sessionAffinityConfig"), "spec.sessionAffinity"
    if not affinity:
        yield refusals.required(path)
    else:
        yield from common.option(path, affinity, ("ClientIP", "None"))
    if affinity == "None" and config is not None:
        text = "must not be set when session affinity is None"
        yield refusals.forbidden_field(f"{path}Config", text)
    if affinity != "ClientIP":
        return
    client = (config or {}).get("clientIP")
    timeout_s = (client or {}).get("timeoutSeconds")
    if config is None:
        yield refusals.required(f"{path}Config", "when session affinity type is ClientIP")
    elif client is None:
        yield refusals.required(f"{path}Config.clientIP", "when session affinity type is ClientIP")
    elif timeout_s is None:
        yield refusals.required(f"{path}Config.clientIP.timeoutSeconds", "when session affinity type is ClientIP")
    elif not 0 < timeout_s <= _LONGEST_AFFINITY_S:
        text = f"must be greater than 0 and less than {_LONGEST_AFFINITY_S}"
        yield refusals.bad(f"{path}Config.clientIP.timeoutSeconds", timeout_s, text)


# Complex: upstream's order of errors, which clients see.
def cluster_address_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:  # noqa: C901
    """Yield what is wrong with addresses of the cluster and their families."""
    if spec.get("type") == "ExternalName":
        return
    first, given, path = spec.get("clusterIP", ""), list(items(spec, "clusterIPs")), "spec.clusterIPs"
    if first and given and given[0] != first:
        yield refusals.bad(path, given, "first value must match `clusterIP`")
    elif not first and given:
        yield refusals.bad(path, given, "must be empty when `clusterIP` is not specified")
    families = items(spec, "ipFamilies")
    for index, family in enumerate(families):
        yield from common.option(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if family in families[:index]:
            yield refusals.duplicate(f"spec.ipFamilies[{index}]", family)
    if spec.get("ipFamilyPolicy") is not None:
        allowed = ("PreferDualStack", "RequireDualStack", "SingleStack")
        yield from common.option("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], allowed)
    for index, address in enumerate(given or ([first] if first else [])):
        if index == 0 and address == "None":
            if len(given) > 1:
                yield refusals.bad(path, given, "'None' must be the first and only value")
        else:
            yield from addresses.address(f"{path}[{index}]", address)
    if len(given) > 2:
        yield refusals.bad(path, given, "may only hold up to 2 values")
    if not all(addresses.is_address(address) for address in given if address != "None") or "None" in given:
        return
    if len(given) > 1 and {addresses.family(address) for address in given} != {4, 6}:
        yield refusals.bad(path, given, "may specify no more than one IP for each IP family")
    for index, (address, family) in enumerate(zip(given, families, strict=False)):
        if family in ("IPv4", "IPv6") and f"IPv{addresses.family(address)}" != family:
            text = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield refusals.bad(f"{path}[{index}]", address, text)


def _balancer_errors(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    ranges, path = items(spec, "loadBalancerSourceRanges"), "spec.LoadBalancerSourceRanges"
    if ranges and kind != "LoadBalancer":
        yield refusals.forbidden_field(path, _FOR_BALANCERS)
    for index, source in enumerate(ranges):
        yield from addresses.address_range(f"{path}[{index}]", source.strip())
    if kind != "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not None:
        yield refusals.forbidden_field("spec.allocateLoadBalancerNodePorts", _FOR_BALANCERS)
    yield from _class_errors(spec)


def _traffic_errors(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    outer, inner, path = (
        spec.get("externalTrafficPolicy", ""),
        spec.get("internalTrafficPolicy"),
        "spec.externalTrafficPolicy",
    )
    reached = is_reached(spec)
    if not reached and outer:
        yield refusals.bad(path, outer, "may only be set for externally-accessible services")
    elif reached and not outer:
        yield refusals.required(path)
    elif reached:
        yield from common.option(path, outer, _TRAFFIC)
    number = spec.get("healthCheckNodePort", 0)
    if number and not (kind == "LoadBalancer" and outer == "Local"):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield refusals.bad("spec.healthCheckNodePort", number, text)
    elif number:
        yield from common.port("spec.healthCheckNodePort", number)
    if inner is not None:
        yield from common.option("spec.internalTrafficPolicy", inner, _TRAFFIC)
    elif kind in (*OUTWARD, "ClusterIP"):
        yield refusals.required("spec.internalTrafficPolicy")
    if spec.get("trafficDistribution") is not None:
        yield from common.option("spec.trafficDistribution", spec["trafficDistribution"], _DISTRIBUTIONS)


def _port_errors(port: Mapping[str, Any], path: str, taken: set[str], *, alone: bool) -> Iterator[FieldError]:
    """Yield what is wrong with one port (upstream validateServicePort); ``taken``: the names of those before it."""
    text = f"must be between 1 and {_LAST_PORT}, inclusive"
    yield from _name_errors(port.get("name", ""), f"{path}.name", taken, alone=alone)
    if not 0 < port["port"] <= _LAST_PORT:
        yield refusals.bad(f"{path}.port", port["port"], text)
    if not port.get("protocol", "TCP"):
        yield refusals.required(f"{path}.protocol")
    elif port.get("protocol", "TCP") not in _PROTOCOLS:
        yield refusals.unsupported(f"{path}.protocol", port["protocol"], _PROTOCOLS)
    target = port.get("targetPort")
    if isinstance(target, int) and not 0 < target <= _LAST_PORT:
        yield refusals.bad(f"{path}.targetPort", target, text)
    elif isinstance(target, str):
        yield from port_name_errors(f"{path}.targetPort", target)
    if port.get("appProtocol") is not None:
        yield from names.qualified_errors(f"{path}.appProtocol", port["appProtocol"])


def _name_errors(name: str, path: str, taken: set[str], *, alone: bool) -> Iterator[FieldError]:
    if not name:
        if not alone:
            yield refusals.required(path)
        return
    yield from common.label(path, name)
    if name in taken:
        yield refusals.duplicate(path, name)
    taken.add(name)


def _shown(protocol: str, port: int) -> dict[str, Any]:
    """Return what of a port counts when it is compared, as Go prints it."""
    nothing = {"AppProtocol": None, "Port": port, "TargetPort": 0, "NodePort": 0}
    return {"Name": "", "Protocol": protocol, **nothing}


def _prepare_update(new: Object, old: Object) -> None:
    """What it was given stays, but for what depends on its type."""
    drop_of_type(new["spec"], old["spec"])
    allocation.keep(new["spec"], old["spec"])


def _change_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Return what is wrong with a Service that is updated: what is fixed first, then all the rest."""
    if subresource:
        return []
    return [*_fixed_errors(new["spec"], old["spec"]), *_errors(new)]


def _fixed_errors(spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[FieldError]:
    address, former = spec.get("clusterIP"), before.get("clusterIP")
    if former and former != address and "ExternalName" not in (before.get("type"), spec.get("type")):
        yield refusals.bad("spec.clusterIPs[0]", [address] if address else None, "may not change once set")
    name = spec.get("loadBalancerClass")
    if spec.get("type") == before.get("type") == "LoadBalancer" and name != before.get("loadBalancerClass"):
        yield refusals.bad("spec.loadBalancerClass", name, "may not change once set")
    yield from _class_errors(spec)
    number = spec.get("healthCheckNodePort", 0)
    if is_checked(spec) and is_checked(before) and number != before.get("healthCheckNodePort", 0):
        yield refusals.forbidden_field("spec.healthCheckNodePort", common.IMMUTABLE)


def _class_errors(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    name = spec.get("loadBalancerClass")
    if name is not None and spec.get("type") != "LoadBalancer":
        yield refusals.forbidden_field("spec.loadBalancerClass", _FOR_BALANCERS)
    elif name is not None:
        yield from names.qualified_errors("spec.loadBalancerClass", name)


def _status_errors(new: Object, _: Object) -> list[FieldError]:
    balancer = common.part_of(common.part_of(new, "status"), "loadBalancer")
    return list(_ingress_errors(items(balancer, "ingress"), new["spec"].get("type", "")))


def _ingress_errors(given: Sequence[Any], kind: str) -> Iterator[FieldError]:
    path = "status.loadBalancer.ingress"
    if given and kind != "LoadBalancer":
        yield refusals.forbidden_field(path, "may only be used when `spec.type` is 'LoadBalancer'")
        return
    for index, ingress in enumerate(given):
        here, address = f"{path}[{index}]", (ingress or {}).get("ip", "")
        mode, host = (ingress or {}).get("ipMode"), (ingress or {}).get("hostname", "")
        if address:
            yield from addresses.address(f"{here}.ip", address)
        if mode is None and address:
            yield refusals.required(f"{here}.ipMode", "must be specified when `ip` is set")
        elif mode is not None and not address:
            yield refusals.forbidden_field(f"{here}.ipMode", "may not be specified when `ip` is not set")
        elif mode is not None:
            yield from common.option(f"{here}.ipMode", mode, ("Proxy", "VIP"))
        if host:
            yield from names.subdomain_errors(f"{here}.hostname", host)
            if addresses.is_address(host):
                yield refusals.bad(f"{here}.hostname", host, "must be a DNS name, not an IP address")


_OLD_HINTS, _HINTS = "service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode"


# Complex: one branch for each warning, in upstream's order.
def _warn(new: Object, _: Object | None) -> list[str]:  # noqa: C901
    spec, found = new["spec"], list[str]()
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    if _OLD_HINTS in annotations_of(new):
        found.append(f"annotation {_OLD_HINTS} is deprecated, please use {_HINTS} instead")
    for index, text in enumerate(items(spec, "clusterIPs") if spec.get("clusterIP") not in ("", None, "None") else ()):
        found += addresses.address_warnings(f"spec.clusterIPs[{index}]", text)
    if headless and spec.get("loadBalancerIP"):
        found.append("spec.loadBalancerIP is ignored for headless services")
    if headless and items(spec, "externalIPs"):
        found.append("spec.externalIPs is ignored for headless services")
    if headless and spec.get("sessionAffinity") != "None":
        found.append("spec.SessionAffinity is ignored for headless services")
    for index, text in enumerate(items(spec, "externalIPs")):
        found += addresses.address_warnings(f"spec.externalIPs[{index}]", text)
    if spec.get("loadBalancerIP"):
        found += addresses.address_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, text in enumerate(items(spec, "loadBalancerSourceRanges")):
        found += addresses.range_warnings(f"spec.loadBalancerSourceRanges[{index}]", text)
    if spec.get("type") == "ExternalName" and items(spec, "externalIPs"):
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if spec.get("type") != "ExternalName" and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    return found


def _service(obj: Object, now_s: float) -> Row:
    spec = obj.get("spec") or {}
    ports = [
        f"{port['port']}:{port['nodePort']}/{port['protocol']}"
        if port.get("nodePort")
        else f"{port['port']}/{port['protocol']}"
        for port in spec.get("ports") or ()
    ]
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        none_if_empty(spec.get("clusterIP")),
        _external(obj),
        none_if_empty(",".join(ports)),
        meta_age(obj, now_s),
        labels_text(spec.get("selector")),
    ]


def _external(service: Object) -> str:
    """Return where a service is reached from outside."""
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    addresses = spec.get("externalIPs") or []
    if spec.get("type") != "LoadBalancer":
        return none_if_empty(",".join(addresses))
    entries = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    balanced = sorted({entry.get("ip") or entry.get("hostname", "") for entry in entries})
    return ",".join([*balanced, *addresses]) or "<pending>"


RULES = Rules(
    printer=Printer(_service),
    default=_default,
    allocate=_allocate,
    validate=_errors,
    validate_update=_change_errors,
    validate_status_update=_status_errors,
    prepare_update=_prepare_update,
    after_commit=service_committed,
    warn=_warn,
    metadata=MetadataChecks(name_texts=dns_1035_named),
)
