"""Ingresses (pkg/apis/networking/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, annotations_of
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.pods.spec_errors import port_name_errors
from mews.kube.emulated.packs.networking.references import reference_errors

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


_SEQUENCES, _SUFFIXES = ("//", "/./", "/../", "%2f", "%2F"), ("/..", "/.")


_CLASS_ANNOTATION = "kubernetes.io/ingress.class"


_NO_NAME = "must be a DNS name, not an IP address"

_SHOWN_ADDRESSES = 3


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
        yield from reference_errors(resource, f"{path}.resource")
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


def _ingress(obj: Object, _: float) -> Row:
    spec, rules = spec_of(obj), spec_of(obj).get("rules") or ()
    hosts: list[str] = []
    rest = len(rules)
    for rule in rules:
        if len(hosts) == _SHOWN_ADDRESSES:
            break
        rest -= 1
        hosts += [rule["host"]] if rule.get("host") else []
    # Upstream says how many rules there are beyond three, whether or not the first ones name a host.
    more = f" + {len(rules) - _SHOWN_ADDRESSES} more..." if rest else ""
    named = ",".join(hosts) + more if hosts else "*"
    balanced = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    addresses = sorted({entry.get("ip") or entry.get("hostname", "") for entry in balanced})
    return [spec.get("ingressClassName", "<none>"), named, ",".join(addresses), "80, 443" if spec.get("tls") else "80"]


RULES = Rules(
    printer=Printer(_ingress, is_part=True),
    validate=_new_ingress_errors,
    validate_update=lambda new, _old, _part: _ingress_errors(new),
    validate_status_update=_balancer_errors,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
