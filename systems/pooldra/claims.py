"""Which devices of the pools claims were given, and on which node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, key_of, uid_of
from mews.kube.api.resource_claims import allocation_of, results_of
from mews.kube.dra.gpus import DRIVER, VISIBLE
from mews.kube.dra.port import CdiSpec
from mews.systems.pooldra.names import ATTACH_FAILED, REALLOCATE, device_name

FAILURES = frozenset({ATTACH_FAILED, REALLOCATE})


class Use(Struct, frozen=True):
    """A claim that was given a device: on which node, the conditions that are True of it there, and since when
    (``allocationTimestamp``, "" without)."""

    claim: str
    uid: str
    pool: str
    device: str
    node: str
    true: frozenset[str] = frozenset()
    since: str = ""
    admin: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether the scheduler was told to allocate the claim anew."""
        return bool(self.true & FAILURES)


def uses_of(claims: Iterable[Object]) -> list[Use]:
    """Return all devices of ours that claims have, those of the earliest allocation first."""
    return in_order(use for claim in claims for use in _uses(claim))


def in_order(uses: Iterable[Use]) -> list[Use]:
    """Return those of the earliest allocation first."""
    return sorted(uses, key=lambda use: (use.admin, use.since, use.claim, use.device))


def _uses(claim: Object) -> Iterator[Use]:
    node, since = node_of(claim), str((allocation_of(claim) or {}).get("allocationTimestamp") or "")
    for result in results_of(claim):
        if result["driver"] == DRIVER:
            entry = entry_of(claim, str(result["pool"]), str(result["device"])) or {}
            true = frozenset(each["type"] for each in entry.get("conditions") or () if each["status"] == "True")
            yield Use(
                key_of(claim),
                uid_of(claim),
                str(result["pool"]),
                str(result["device"]),
                node,
                true,
                since,
                bool(result.get("adminAccess")),
            )


def node_of(claim: Object) -> str:
    """Return the node that an allocation is for, "" where it is for several: a device that binds to its node, as one of
    a node's own slice, names it (contract dra.md section 8)."""
    terms = ((allocation_of(claim) or {}).get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    for term in terms:
        for each in term.get("matchFields") or ():
            if each["key"] == "metadata.name" and each["operator"] == "In":
                return str(each["values"][0])
    return ""


def entry_of(claim: Object, pool: str, device: str) -> Mapping[str, Any] | None:
    """Return what the claim's ``status.devices`` says of a device of ours."""
    for entry in (claim.get("status") or {}).get("devices") or ():
        if (entry["driver"], entry["pool"], entry["device"]) == (DRIVER, pool, device):
            found: Mapping[str, Any] = entry
            return found
    return None


def kept_for(uuid: str, node: str, own: str, specs: Iterable[CdiSpec], uses: Iterable[Use]) -> str:
    """Return why a node keeps a device, "" where it need not: a claim is prepared with it, or is given it for a pod
    that comes there. ``own`` is what the node's own slice calls the device."""
    for spec in specs:
        for each in spec.get("devices") or ():
            if f"{VISIBLE}={uuid}" in ((each.get("containerEdits") or {}).get("env") or ()):
                return f"it is prepared for claim {(spec.get('annotations') or {}).get('claim', '?')}"
    for use in uses:
        is_own = use.pool == node and use.device == own
        is_pooled = use.pool != node and use.device == device_name(uuid) and use.node == node
        if (is_own or is_pooled) and not use.has_failed:
            return f"claim {use.claim} has it"
    return ""


class ClaimCondition(Struct, frozen=True):
    """A condition that a claim is to show of one of its devices."""

    use: Use
    condition: str
    reason: str
    message: str = ""


def with_condition(claim: Object, verdict: ClaimCondition, stamp: str) -> list[dict[str, Any]] | None:
    """``status.devices`` with the condition; None where it is there, or the claim has the device no more."""
    use = verdict.use
    if uid_of(claim) != use.uid or node_of(claim) != use.node or not _has(claim, use):
        return None
    before = entry_of(claim, use.pool, use.device)
    conditions: Sequence[Mapping[str, Any]] = (before or {}).get("conditions") or ()
    if any(each["type"] == verdict.condition and each["status"] == "True" for each in conditions):
        return None
    made = {
        "type": verdict.condition,
        "status": "True",
        "reason": verdict.reason,
        "message": verdict.message,
        "lastTransitionTime": stamp,
    }
    kept = [dict(each) for each in conditions if each["type"] != verdict.condition]
    entry = {**(before or {"driver": DRIVER, "pool": use.pool, "device": use.device}), "conditions": [*kept, made]}
    others = [dict(each) for each in (claim.get("status") or {}).get("devices") or () if each is not before]
    return [*others, entry]


def _has(claim: Object, use: Use) -> bool:
    since = str((allocation_of(claim) or {}).get("allocationTimestamp") or "")
    return since == use.since and any(
        (each["driver"], each["pool"], each["device"]) == (DRIVER, use.pool, use.device) for each in results_of(claim)
    )
