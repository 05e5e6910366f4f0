"""The slices of one pool, as they should be. Pure.

A pool is the devices of one chassis. All that are on no node are in one slice for the nodes that are cabled to it; each
binds to the node for which it is allocated. Where devices move between slices, those on a node are in a slice of that
node. All have conditions that must be true before a pod is bound to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, name_of
from mews.kube.dra.gpus import DRIVER
from mews.systems.pooldra.config import PoolChassis
from mews.systems.pooldra.names import ATTACH_FAILED, ATTACHED, DOMAIN, HOSTNAME, REALLOCATE
from mews.systems.pooldra.policy import Slot

Device = dict[str, Any]


class OfferedSlice(Struct, frozen=True):
    """A slice of the pool; ``node``: "" for the pool's own."""

    name: str
    node: str
    devices: tuple[Device, ...]


def device_of(slot: Slot, chassis: PoolChassis, attributes: Mapping[str, str], *, on_node: bool) -> Device:
    """Return a device as a slice has it; its attributes are named as those of the node's driver are."""
    strings = {**attributes, "type": "gpu", "uuid": slot.uuid, f"{DOMAIN}/chassis": chassis.name}
    strings[f"{DOMAIN}/slot"] = slot.device
    # On a node, too: its host may let go of the device while a scheduler still allocates it from an older slice.
    made: Device = {
        "name": slot.name,
        "attributes": {name: {"string": text} for name, text in strings.items()},
        "bindingConditions": [ATTACHED],
        "bindingFailureConditions": [ATTACH_FAILED, REALLOCATE],
    }
    return made if on_node else {**made, "bindsToNode": True}


def own_slice_name(chassis: PoolChassis) -> str:
    """Return the slice of the pool's devices that are on no node."""
    return f"pooldra-{chassis.pool}-pool"


def slices_of(
    chassis: PoolChassis,
    pool: Sequence[Slot],
    nodes: Mapping[str, Sequence[Slot]],
    device: Callable[[Slot, bool], Device],
) -> list[OfferedSlice]:
    """Return the pool's own slice, and one for each node that has any. ``device`` makes a device on a node or on none
    (``device_of``)."""
    # Within a pool slices are tried by name: what is on the node already comes before what must be attached.
    own = tuple(device(slot, False) for slot in pool)
    made = [OfferedSlice(own_slice_name(chassis), "", own)]
    for node, slots in sorted(nodes.items()):
        devices = tuple(device(slot, True) for slot in slots)
        made.append(OfferedSlice(f"pooldra-{chassis.pool}-node-{node}", node, devices))
    return made


class SlicePlan(Struct, frozen=True):
    """What is to be written, in this order, and what is to be deleted after it."""

    written: tuple[Object, ...] = ()
    deleted: tuple[str, ...] = ()


def plan(chassis: PoolChassis, wanted: Sequence[OfferedSlice], there: Mapping[str, Object]) -> SlicePlan:
    """Return how to come from the slices that are there (by name) to those that are wanted.

    A change that needs one write keeps the generation, more begin a new one: until all have it, the pool is incomplete
    and nothing of it is allocated (contract dra.md sections 8 and 10).
    """
    generations = {name: int(each["spec"]["pool"]["generation"]) for name, each in there.items()}
    top = max(generations.values(), default=0)
    changed = [each for each in wanted if each.name not in there or not _has(there[each.name], each)]
    deleted = tuple(sorted(there.keys() - {each.name for each in wanted}))
    is_whole = not deleted and all(name in generations for name in (each.name for each in wanted))
    is_whole = is_whole and set(generations.values()) == {top} and _counts(there) == {len(wanted)}
    if is_whole and len(changed) <= 1:
        return SlicePlan(tuple(_body(chassis, each, top, len(wanted), there) for each in changed))
    return SlicePlan(tuple(_body(chassis, each, top + 1, len(wanted), there) for each in wanted), deleted)


def _counts(there: Mapping[str, Object]) -> set[int]:
    return {int(each["spec"]["pool"]["resourceSliceCount"]) for each in there.values()}


def _has(found: Object, wanted: OfferedSlice) -> bool:
    return list(found["spec"].get("devices") or ()) == list(wanted.devices)


def _body(
    chassis: PoolChassis, wanted: OfferedSlice, generation: int, count: int, there: Mapping[str, Object]
) -> Object:
    spec: dict[str, Any] = {
        "driver": DRIVER,
        "pool": {"name": chassis.pool, "generation": generation, "resourceSliceCount": count},
        "devices": list(wanted.devices),
    }
    if wanted.node:
        spec["nodeName"] = wanted.node
    else:
        among = {"key": HOSTNAME, "operator": "In", "values": sorted(chassis.ports)}
        spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [among]}]}
    found = there.get(wanted.name)
    if found is None:
        return {"metadata": {"name": wanted.name}, "spec": spec}
    assert name_of(found) == wanted.name
    return {**found, "spec": spec}


def lost_fields(written: Object, answer: Object) -> list[str]:
    """Return the fields that the API server dropped from the devices of a slice, for a gate is off."""
    kept = {str(each["name"]): each for each in answer["spec"].get("devices") or ()}
    return sorted(
        {field for each in written["spec"]["devices"] for field in each if field not in kept.get(str(each["name"]), {})}
    )
