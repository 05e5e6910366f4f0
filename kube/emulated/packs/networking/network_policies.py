"""NetworkPolicies (pkg/apis/networking/validation)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, selector_text, spec_of
from mews.kube.emulated.kinds.pods.spec_errors import port_name_errors

_PROTOCOLS = ("TCP", "UDP", "SCTP")


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


RULES = Rules(
    printer=Printer(lambda obj, _: [selector_text(spec_of(obj).get("podSelector"))], is_part=True),
    default=_default_policy,
    validate=_policy_errors,
    warn=_policy_warnings,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, OBJECT, CHANGE)),
)
