"""Endpoints (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, labels_of
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, first_texts
from mews.kube.emulated.kinds.services.reachable import PROTOCOLS, reachable


def _endpoints_errors(endpoints: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for index, subset in enumerate(items(endpoints, "subsets")):
        found += _subset_errors(subset, f"subsets[{index}]")
    return found


def _subset_errors(subset: Part, path: str) -> Iterator[FieldError]:
    if not items(subset, "addresses") and not items(subset, "notReadyAddresses"):
        yield refusals.required(path, "must specify `addresses` or `notReadyAddresses`")
    for place in ("addresses", "notReadyAddresses"):
        for index, address in enumerate(items(subset, place)):
            yield from _address_errors(address, f"{path}.{place}[{index}]")
    ports = items(subset, "ports")
    for index, port in enumerate(ports):
        yield from _port_errors(port, f"{path}.ports[{index}]", named=len(ports) > 1)


def _address_errors(address: Part, path: str) -> Iterator[FieldError]:
    yield from addresses.address(f"{path}.ip", address.get("ip", ""))
    if address.get("hostname"):
        yield from common.label(f"{path}.hostname", address["hostname"])
    if address.get("nodeName") is not None:
        yield from names.subdomain_errors(f"{path}.nodeName", address["nodeName"])
    yield from reachable(f"{path}.ip", address.get("ip", ""))


def _port_errors(port: Part, path: str, *, named: bool) -> Iterator[FieldError]:
    name = port.get("name", "")
    if name:
        yield from common.label(f"{path}.name", name)
    elif named:
        yield refusals.required(f"{path}.name")
    yield from common.port(f"{path}.port", port.get("port", 0))
    yield from _protocol_errors(port, path)


def _protocol_errors(port: Part, path: str) -> Iterator[FieldError]:
    if not port.get("protocol"):
        yield refusals.required(f"{path}.protocol")
    else:
        yield from common.option(f"{path}.protocol", port["protocol"], PROTOCOLS)
    if port.get("appProtocol") is not None:
        yield from names.qualified_errors(f"{path}.appProtocol", port["appProtocol"])


_MADE_BY = "endpoints.kubernetes.io/managed-by"


def _endpoints_warnings(endpoints: Object, _: Object | None) -> list[str]:
    """Return the warnings of addresses that are written in an old way, but not by the controller."""
    found: list[str] = []
    if labels_of(endpoints).get(_MADE_BY) == "endpoint-controller":
        return found
    for index, subset in enumerate(items(endpoints, "subsets")):
        for name in ("addresses", "notReadyAddresses"):
            for place, each in enumerate(items(subset, name)):
                path = f"subsets[{index}].{name}[{place}].ip"
                found += addresses.address_warnings(path, each.get("ip", ""))
    return found


def _endpoints(obj: Object, _: float) -> Row:
    found: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [f"{_bracketed(ip)}:{port['port']}" for port in ports for ip in addresses] if ports else addresses
    return [first_texts(found, len(found))]


def _bracketed(ip: str) -> str:
    return f"[{ip}]" if ":" in ip else ip


RULES = Rules(
    printer=Printer(_endpoints, is_part=True),
    validate=_endpoints_errors,
    warn=_endpoints_warnings,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
