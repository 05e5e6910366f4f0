"""EndpointSlices (pkg/apis/discovery/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, labels_of
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import METADATA, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, first_texts
from mews.kube.emulated.kinds.server_conditions import slice_committed
from mews.kube.emulated.kinds.services.reachable import PROTOCOLS, reachable

_TYPES = ("FQDN", "IPv4", "IPv6")


_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20_000, 8


def _slice_errors(endpoint_slice: Object) -> list[FieldError]:
    return [*_slice(endpoint_slice), *_slice_endpoint_errors(endpoint_slice)]


def _slice(endpoint_slice: Object) -> Iterator[FieldError]:
    kind = endpoint_slice.get("addressType", "")
    if not kind:
        yield refusals.required("addressType")
    else:
        yield from common.option("addressType", kind, _TYPES)
    ports = items(endpoint_slice, "ports")
    if len(ports) > _MOST_PORTS:
        yield common.too_many("ports", len(ports), _MOST_PORTS)
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name", "")
        if name:
            yield from common.label(f"{path}.name", name)
        if name in seen:
            yield refusals.duplicate(f"{path}.name", name)
        seen.add(name)
        if "protocol" not in port:
            yield refusals.required(f"{path}.protocol")
        else:
            yield from common.option(f"{path}.protocol", port["protocol"], PROTOCOLS)
        if port.get("appProtocol") is not None:
            yield from names.qualified_errors(f"{path}.appProtocol", port["appProtocol"])


def _slice_endpoint_errors(endpoint_slice: Object) -> Iterator[FieldError]:
    endpoints, kind = items(endpoint_slice, "endpoints"), endpoint_slice.get("addressType", "")
    if len(endpoints) > _MOST_ENDPOINTS:
        yield common.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)
    for index, endpoint in enumerate(endpoints):
        yield from _endpoint_errors(endpoint, f"endpoints[{index}]", kind)


def _endpoint_errors(endpoint: Part, path: str, kind: str) -> Iterator[FieldError]:
    addresses = items(endpoint, "addresses")
    if not addresses:
        yield refusals.required(f"{path}.addresses", "must contain at least 1 address")
    elif len(addresses) > _MOST_ADDRESSES:
        yield common.too_many(f"{path}.addresses", len(addresses), _MOST_ADDRESSES)
    for index, address in enumerate(addresses):
        yield from _typed_address_errors(address, f"{path}.addresses", index, kind)
    if endpoint.get("nodeName") is not None:
        yield from names.subdomain_errors(f"{path}.nodeName", endpoint["nodeName"])
    if endpoint.get("hostname") is not None:
        yield from common.label(f"{path}.hostname", endpoint["hostname"])
    yield from _hint_errors(part_of(endpoint, "hints"), f"{path}.hints")


def _typed_address_errors(address: str, path: str, index: int, kind: str) -> Iterator[FieldError]:
    here = f"{path}[{index}]"
    if kind == "FQDN":
        yield from _domain_errors(address, here)
        return
    if kind not in ("IPv4", "IPv6"):
        return
    wrong = addresses.address(here, address) if kind == "IPv4" else addresses.strict_address(here, address)
    yield from wrong
    if wrong:
        return
    if addresses.family(address) != (4 if kind == "IPv4" else 6):
        yield refusals.bad(path, address, f"must be an {kind} address")
    yield from reachable(here, address)


def _domain_errors(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield refusals.required(path)
        return
    plain = name.removesuffix(".")
    wrong = names.subdomain_texts(plain)
    if wrong:
        yield from common.bads(path, name if plain == name else plain, wrong)
    elif "." not in plain:
        yield refusals.bad(path, name, "should be a domain with at least two segments separated by dots")
    else:
        for part in plain.split("."):
            if len(part) > 63:
                yield refusals.bad(path, part, "must be no more than 63 characters")


def _hint_errors(hints: Part, path: str) -> Iterator[FieldError]:
    for place in ("forZones", "forNodes"):
        given = items(hints, place)
        if len(given) > _MOST_HINTS:
            yield common.too_many(f"{path}.{place}", len(given), _MOST_HINTS)
            return
        seen: set[str] = set()
        for index, hint in enumerate(given):
            here, name = f"{path}.{place}[{index}].name", hint.get("name", "")
            if name in seen:
                yield refusals.duplicate(here, name)
            seen.add(name)
            zone = place == "forZones"
            yield from names.label_value_errors(here, name) if zone else names.subdomain_errors(here, name)


def _slice_change(new: Object, old: Object, _: str) -> list[FieldError]:
    found = [*_slice(new)]
    if new.get("endpoints") != old.get("endpoints"):
        found += _slice_endpoint_errors(new)
    return found + common.fixed("addressType", new.get("addressType", ""), old.get("addressType", ""))


_SLICE_MADE_BY = "endpointslice.kubernetes.io/managed-by"


_SLICE_CONTROLLERS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


def _forget_topology(endpoint_slice: Object) -> None:
    """The first version takes no labels of old."""
    for endpoint in items(endpoint_slice, "endpoints"):
        endpoint.pop("deprecatedTopology", None)


def _slice_warnings(endpoint_slice: Object, _: Object | None) -> list[str]:
    found: list[str] = []
    if endpoint_slice.get("addressType") == "FQDN":
        found.append("spec.addressType: FQDN endpoints are deprecated")
    if labels_of(endpoint_slice).get(_SLICE_MADE_BY) in _SLICE_CONTROLLERS:
        return found
    for index, endpoint in enumerate(items(endpoint_slice, "endpoints")):
        for place, text in enumerate(items(endpoint, "addresses")):
            found += addresses.address_warnings(f"endpoints[{index}].addresses[{place}]", text)
    return found


def _cells(obj: Object, _: float) -> Row:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    listed = [first_texts(texts, len(texts)).replace("<none>", "<unset>") for texts in (ports, addresses)]
    return [obj.get("addressType", ""), *listed]


RULES = Rules(
    printer=Printer(_cells, is_part=True),
    default=_forget_topology,
    warn=_slice_warnings,
    validate=_slice_errors,
    validate_update=_slice_change,
    metadata=MetadataChecks(on_update=(METADATA,)),
    after_commit=slice_committed,
)
