"""Nodes: what they hold and may have (pkg/apis/core/validation, pkg/registry/core/node)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mews.kube.api.objects import Object, clone, condition_of, labels_of
from mews.kube.emulated.core.checks import addresses
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age, none_if_empty
from mews.kube.emulated.core.tables.durations import UNKNOWN
from mews.kube.emulated.kinds.pods.resource_errors import quantity_errors
from mews.kube.emulated.kinds.pods.spec_errors import taint_errors

_RANGES = "spec.podCIDRs"
_SET_ONCE = 'node updates may not change {} except from "" to valid'


def _default(node: Object) -> None:
    """The range of pods in its two forms; configurations from the API are no more."""
    spec, status = node["spec"], node.get("status") or {}
    spec.pop("configSource", None)
    status.pop("config", None)
    if "capacity" in status and "allocatable" not in status:
        status["allocatable"] = clone(status["capacity"])
    first, several = spec.get("podCIDR", ""), items(spec, "podCIDRs")
    if first and (not several or several[0] != first):
        spec["podCIDRs"] = [first]
    elif several:
        spec["podCIDR"] = several[0]


def _node_errors(node: Object) -> list[FieldError]:
    return [*_own_errors(node)]


def _own_errors(node: Object) -> Iterator[FieldError]:
    yield from taint_errors(items(node["spec"], "taints"), "metadata.taints")
    yield from _amount_errors(node)
    swap = part_of(part_of(part_of(node, "status"), "nodeInfo"), "swap").get("capacity")
    if swap is not None and swap <= 0:
        yield refusals.bad("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero")
    ranges = items(node["spec"], "podCIDRs")
    for index, text in enumerate(ranges):
        yield from addresses.address_range(f"{_RANGES}[{index}]", text)
    if len(ranges) > 1:
        yield from _pair_errors(ranges)


def _pair_errors(ranges: Sequence[str]) -> Iterator[FieldError]:
    """Several ranges of pods are one of each family."""
    families = [addresses.family(text) for text in ranges]
    if 0 in families:
        index = families.index(0)
        text = f"invalid CIDR[{index}]: <nil> (invalid CIDR address: {ranges[index]})"
        whole = f"invalid PodCIDRs. failed to check with dual stack with error:{text}"
        yield FieldError(_RANGES, "InternalError", whole)
    if {*families} != {4, 6} or len(ranges) > 2:
        yield refusals.bad(_RANGES, list(ranges), "may specify no more than one CIDR for each IP family")


def _amount_errors(node: Object) -> Iterator[FieldError]:
    for part in ("capacity", "allocatable"):
        for name, amount in sorted(part_of(part_of(node, "status"), part).items()):
            yield from quantity_errors(name, amount, f"status.{part}.{name}")


def _update_errors(new: Object, old: Object) -> Iterator[FieldError]:
    yield from _amount_errors(new)
    seen: list[Any] = []
    for index, address in enumerate(items(part_of(new, "status"), "addresses")):
        if address in seen:
            shown = {"Type": address.get("type", ""), "Address": address.get("address", "")}
            yield refusals.duplicate(f"status.addresses[{index}]", shown)
        seen.append(address)
    spec, before = new["spec"], old["spec"]
    ranges, known = items(spec, "podCIDRs"), items(before, "podCIDRs")
    if known and len(ranges) != len(known):
        yield refusals.forbidden_field(_RANGES, _SET_ONCE.format("podCIDR"))
    elif known:
        for text, former in zip(ranges, known, strict=True):
            if text != former:
                yield refusals.forbidden_field(_RANGES, _SET_ONCE.format("podCIDR"))
    if before.get("providerID") and spec.get("providerID", "") != before["providerID"]:
        yield refusals.forbidden_field("spec.providerID", _SET_ONCE.format("providerID"))
    yield from taint_errors(items(spec, "taints"), "metadata.taints")
    if spec.get("externalID", "") != before.get("externalID", ""):
        yield refusals.forbidden_field("spec.externalID", "may not be updated")


def _change_errors(new: Object, old: Object, _: str) -> list[FieldError]:
    return [*_own_errors(new), *_update_errors(new, old)]


def _status_errors(new: Object, old: Object) -> list[FieldError]:
    return [*_update_errors(new, old)]


def _warn(node: Object, _: Object | None) -> list[str]:
    found: list[str] = []
    if node["spec"].get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, text in enumerate(items(node["spec"], "podCIDRs")):
        found += addresses.range_warnings(f"{_RANGES}[{index}]", text)
    return found


_ROLE = "node-role.kubernetes.io/"


def _node(node: Object, now_s: float) -> Row:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    ready = condition_of(node, "Ready")
    words = ["Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    addresses = {address["type"]: address["address"] for address in reversed(status.get("addresses") or [])}
    return [
        node["metadata"]["name"],
        ",".join(words),
        _roles(node),
        meta_age(node, now_s),
        info.get("kubeletVersion", ""),
        none_if_empty(addresses.get("InternalIP")),
        none_if_empty(addresses.get("ExternalIP")),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(node: Object) -> str:
    roles = {label.removeprefix(_ROLE) for label in labels_of(node) if label.startswith(_ROLE) and label != _ROLE}
    named = labels_of(node).get("kubernetes.io/role")
    return none_if_empty(",".join(sorted({*roles, *([named] if named else [])})))


RULES = Rules(
    printer=Printer(_node),
    default=_default,
    validate=_node_errors,
    validate_update=_change_errors,
    validate_status_update=_status_errors,
    warn=_warn,
    keeps_status=True,
    metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE)),
)
