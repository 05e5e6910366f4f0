"""Rules of ingresses and their classes, network policies, addresses and ranges (pkg/apis/networking/validation)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.spec_errors import port_name_errors

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES, _SUFFIXES = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")
_LONGEST_CONTROLLER = 250
_CLASS_ANNOTATION = "kubernetes.io/ingress.class"
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_NO_NAME = "must be a DNS name, not an IP address"


def _ingress_errors(ingress: Object) -> list[FieldError]:
    return [*_ingress_spec_errors(ingress.get("spec") or {})]


def _new_ingress_errors(ingress: Object) -> list[FieldError]:
    found, given = _ingress_errors(ingress), annotations_of(ingress).get(_CLASS_ANNOTATION)
    named = part_of(ingress, "spec").get("ingressClassName")
    if given is not None and named is not None and given != named:
        text = "must match `ingressClassName` when both are specified"
        found.append(refusals.bad(f"annotations.{_CLASS_ANNOTATION}", given, text))
    return found


def _ingress_spec_errors(spec: Part) -> Iterator[FieldError]:
    if not items(spec, "rules") and spec.get("defaultBackend") is None:
        yield refusals.bad("spec", items(spec, "rules") or None, "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend_errors(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(items(spec, "rules")):
        yield from _host_errors(rule.get("host", ""), f"spec.rules[{index}].host")
        http = rule.get("http")
        if http is not None:
            yield from _http_errors(http, f"spec.rules[{index}].http")
    for index, tls in enumerate(items(spec, "tls")):
        yield from _tls_errors(tls, f"spec.tls[{index}]")
    if spec.get("ingressClassName") is not None:
        yield from names.subdomain_errors("spec.ingressClassName", spec["ingressClassName"])


def _host_errors(host: str, path: str) -> Iterator[FieldError]:
    if not host:
        return
    if addresses.is_address(host):
        yield refusals.bad(path, host, _NO_NAME)
    yield from common.wildcard_subdomain(path, host) if "*" in host else names.subdomain_errors(path, host)


def _http_errors(http: Part, path: str) -> Iterator[FieldError]:
    if not items(http, "paths"):
        yield refusals.required(f"{path}.paths")
    for index, entry in enumerate(items(http, "paths")):
        yield from _path_errors(entry, f"{path}.paths[{index}]")


def _path_errors(entry: Part, path: str) -> Iterator[FieldError]:
    kind, place = entry.get("pathType"), entry.get("path", "")
    if kind is None:
        yield refusals.required(f"{path}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield refusals.unsupported(f"{path}.pathType", kind, _PATH_TYPES)
    elif not place.startswith("/") and (place or kind != "ImplementationSpecific"):
        yield refusals.bad(f"{path}.path", place, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for sequence in _SEQUENCES:
            if sequence in place:
                yield refusals.bad(f"{path}.path", place, f"must not contain '{sequence}'")
        for suffix in _SUFFIXES:
            if place.endswith(suffix):
                yield refusals.bad(f"{path}.path", place, f"cannot end with '{suffix}'")
    yield from _backend_errors(part_of(entry, "backend"), f"{path}.backend")


def _backend_errors(backend: Part, path: str) -> Iterator[FieldError]:
    resource, service = backend.get("resource"), backend.get("service")
    if resource is not None and service is not None:
        yield refusals.bad(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference_errors(resource, f"{path}.resource")
    elif service is not None:
        yield from _service_errors(service, path)
    else:
        yield refusals.bad(path, "", "resource or service backend is required")


def _service_errors(service: Part, path: str) -> Iterator[FieldError]:
    name, port = service.get("name", ""), part_of(service, "port")
    if not name:
        yield refusals.required(f"{path}.service.name")
    else:
        yield from common.bads(f"{path}.service.name", name, names.dns_1035_errors(name))
    if port.get("name") and port.get("number"):
        yield refusals.bad(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from port_name_errors(f"{path}.service.port.name", port["name"])
    elif port.get("number"):
        yield from common.port(f"{path}.service.port.number", port["number"])
    else:
        yield refusals.required(path, "port name or number is required")


def _reference_errors(reference: Part, path: str) -> Iterator[FieldError]:
    if reference.get("apiGroup") is not None:
        yield from names.subdomain_errors(f"{path}.apiGroup", reference["apiGroup"])
    for name in ("kind", "name"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
        else:
            yield from common.path_segment(f"{path}.{name}", reference[name])


def _tls_errors(tls: Part, path: str) -> Iterator[FieldError]:
    for index, host in enumerate(items(tls, "hosts")):
        here = f"{path}.hosts[{index}]"
        yield from common.wildcard_subdomain(here, host) if "*" in host else names.subdomain_errors(here, host)
    if tls.get("secretName"):
        yield from names.subdomain_errors(f"{path}.secretName", tls["secretName"])


def _balancer_errors(new: Object, _: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for index, point in enumerate(items(part_of(part_of(new, "status"), "loadBalancer"), "ingress")):
        path, host = f"status.loadBalancer.ingress[{index}]", point.get("hostname", "")
        if point.get("ip"):
            found += addresses.address(f"{path}.ip", point["ip"])
        if host:
            found += names.subdomain_errors(f"{path}.hostname", host)
            found += [refusals.bad(f"{path}.hostname", host, _NO_NAME)] if addresses.is_address(host) else []
    return found


def _class_errors(ingress_class: Object) -> list[FieldError]:
    spec = part_of(ingress_class, "spec")
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    found = [common.too_long("spec.controller", _LONGEST_CONTROLLER)] if len(controller) > _LONGEST_CONTROLLER else []
    found += common.domain_path("spec.controller", controller)
    return found + ([*_parameter_errors(parameters, "spec.parameters")] if parameters is not None else [])


def _parameter_errors(parameters: Part, path: str) -> Iterator[FieldError]:
    yield from _reference_errors(parameters, path)
    scope, space = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield refusals.required(f"{path}.scope")
    if scope not in ("Cluster", "Namespace"):
        yield refusals.unsupported(f"{path}.scope", scope or "", ("Cluster", "Namespace"))
    elif scope == "Namespace" and space is None:
        yield refusals.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from common.label(f"{path}.namespace", str(space))
    elif space is not None:
        yield refusals.forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _default_class(ingress_class: Object) -> None:
    parameters = part_of(ingress_class, "spec").get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _compare_class(new: Object, old: Object) -> list[FieldError]:
    after, before = (part_of(obj, "spec").get("controller", "") for obj in (new, old))
    return [*common.fixed("spec.controller", after, before)]


def _default_policy(policy: Object) -> None:
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _policy_errors(policy: Object) -> list[FieldError]:
    spec = policy["spec"]
    found = [*selector_errors(part_of(spec, "podSelector"), "spec.podSelector")]
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(items(spec, rules)):
            path = f"spec.{rules}[{number}]"
            for index, port in enumerate(items(rule, "ports")):
                found += _policy_port_errors(port, f"{path}.ports[{index}]")
            for index, peer in enumerate(items(rule, peers)):
                found += _peer_errors(peer, f"{path}.{peers}[{index}]")
    types = items(spec, "policyTypes")
    if len(types) > 2:
        found.append(refusals.bad("spec.policyTypes", [*types], "may not specify more than two policyTypes"))
        return found
    for index, kind in enumerate(types):
        found += common.option(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return found


def _policy_port_errors(given: Part, path: str) -> Iterator[FieldError]:
    port, end = given.get("port"), given.get("endPort")
    if given.get("protocol") is not None:
        yield from common.option(f"{path}.protocol", given["protocol"], _PROTOCOLS)
    if port is None:
        if end is not None:
            yield refusals.bad(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(port, int):
        yield from common.port(f"{path}.port", port)
        if end is not None and end < port:
            yield refusals.bad(f"{path}.endPort", port, "must be greater than or equal to `port`")
        if end is not None:
            yield from common.port(f"{path}.endPort", end)
    else:
        if end is not None:
            yield refusals.bad(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from port_name_errors(f"{path}.port", port)


def _peer_errors(peer: Part, path: str) -> Iterator[FieldError]:
    for name in ("podSelector", "namespaceSelector"):
        yield from selector_errors(part_of(peer, name), f"{path}.{name}")
    block, others = peer.get("ipBlock"), [peer.get("podSelector"), peer.get("namespaceSelector")]
    if block is not None:
        yield from _block_errors(block, f"{path}.ipBlock")
    if block is None and others == [None, None]:
        yield refusals.required(path, "must specify a peer")
    elif block is not None and others != [None, None]:
        yield refusals.forbidden_field(path, "may not specify both ipBlock and another peer")


def _block_errors(block: Part, path: str) -> Iterator[FieldError]:
    whole = block.get("cidr", "")
    if not whole:
        yield refusals.required(f"{path}.cidr")
        return
    wrong = addresses.address_range(f"{path}.cidr", whole)
    yield from wrong
    for index, part in enumerate(items(block, "except") if not wrong else ()):
        here = f"{path}.except[{index}]"
        bad = addresses.address_range(here, part)
        yield from bad
        if not bad and not _is_within(part, whole):
            yield refusals.bad(here, part, "must be a strict subset of `cidr`")


def _is_within(part: str, whole: str) -> bool:
    inner, outer = (ipaddress.ip_network(text, strict=False) for text in (part, whole))
    return inner.version == outer.version and inner != outer and inner.subnet_of(outer)  # type: ignore[arg-type]


def _address_errors(address: Object) -> list[FieldError]:
    parent = part_of(address, "spec").get("parentRef")
    if parent is None:
        return [refusals.required("spec.parentRef")]
    path, found = "spec.parentRef", list[FieldError]()
    if parent.get("group"):
        found += names.subdomain_errors(f"{path}.group", parent["group"])
    for name in ("resource", "name"):
        given = parent.get(name)
        found += common.path_segment(f"{path}.{name}", given) if given else [refusals.required(f"{path}.{name}")]
    if parent.get("namespace"):
        found += common.path_segment(f"{path}.namespace", parent["namespace"])
    return found


def _compare_address(new: Object, old: Object) -> list[FieldError]:
    after, before = (part_of(obj, "spec").get("parentRef") for obj in (new, old))
    if after == before:
        return []
    fields = ("group", "resource", "namespace", "name")
    shown = {field.title(): after.get(field, "") for field in fields} if after is not None else None
    return [refusals.bad("spec.parentRef", shown, common.IMMUTABLE)]


def _range_errors(service_range: Object) -> list[FieldError]:
    given, path = items(part_of(service_range, "spec"), "cidrs"), "spec.cidrs"
    found = [] if given else [refusals.required(path, "at least one CIDR required")]
    if len(given) > 2:
        found.append(refusals.bad(path, {"CIDRs": [*given]}, "may only hold up to 2 values"))
        return found
    for index, text in enumerate(given):
        found += addresses.strict_range(f"{path}[{index}]", text)
    if len(given) == 2 and addresses.family(given[0]) == addresses.family(given[1]) != 0:
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        found.append(refusals.bad(path, [*given], text))
    return found


def _range_change(new: Object, old: Object, _: str) -> list[FieldError]:
    after, before = (items(part_of(obj, "spec"), "cidrs") for obj in (new, old))
    path = "spec.cidrs"
    if len(after) == len(before) or (len(before), len(after)) == (1, 2):
        pairs = enumerate(zip(after, before, strict=False))
        found = [refusals.bad(f"{path}[{index}]", a, common.IMMUTABLE) for index, (a, b) in pairs if a != b]
        return found + (_range_errors(new) if len(after) != len(before) else [])
    return [refusals.bad(path, [*after] or None, common.IMMUTABLE)]


INGRESSES = Rules(
    validate=_new_ingress_errors,
    validate_update=lambda new, _old, _part: _ingress_errors(new),
    validate_status_update=_balancer_errors,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
CLASSES = Rules(
    default=_default_class,
    validate=_class_errors,
    compare=_compare_class,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)


def _policy_warnings(policy: Object, _: Object | None) -> list[str]:
    """Return the warnings of ranges that are written in an old way."""
    found: list[str] = []
    for name, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(items(policy["spec"], name)):
            for place, peer in enumerate(items(rule, side)):
                path, block = f"spec.{name}[{index}].{side}[{place}].ipBlock", part_of(peer, "ipBlock")
                found += addresses.range_warnings(f"{path}.cidr", block.get("cidr", ""))
                for number, text in enumerate(items(block, "except")):
                    found += addresses.range_warnings(f"{path}.except[{number}]", text)
    return found


POLICIES = Rules(
    default=_default_policy,
    validate=_policy_errors,
    warn=_policy_warnings,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, OBJECT, CHANGE)),
)


def named_by_address(_obj: Object, text: str, _prefix: bool) -> list[str]:
    """An IPAddress is named by its address."""
    return [error.text.partition(": ")[2] for error in addresses.strict_address("", text)]


ADDRESSES = Rules(
    validate=_address_errors,
    compare=_compare_address,
    metadata=MetadataChecks(name_texts=named_by_address, on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
RANGES = Rules(
    validate=_range_errors,
    validate_update=_range_change,
    validate_status_update=lambda _new, _old: [],
    metadata=MetadataChecks(status_leaves=RESET_WITH_STATUS),
)
