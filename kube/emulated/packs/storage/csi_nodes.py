"""CSINodes (pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, spec_of
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors

_LONGEST_NODE_ID = 256


def _node_errors(node: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate(items(common.part_of(node, "spec"), "drivers")):
        found += _driver_errors(driver, f"spec.drivers[{index}]", seen)
    return found


def _driver_errors(driver: Part, path: str, seen: set[str]) -> Iterator[FieldError]:
    name, node_id = driver.get("name", ""), driver.get("nodeID", "")
    yield from driver_name_errors(name, f"{path}.name")
    if not node_id:
        yield refusals.required(f"{path}.nodeID")
    if len(node_id) > _LONGEST_NODE_ID:
        yield refusals.bad(f"{path}.nodeID", node_id, f"must be {_LONGEST_NODE_ID} characters or less")
    yield from common.not_negative(f"{path}.allocatable.count", common.part_of(driver, "allocatable").get("count"))
    if name in seen:
        yield refusals.duplicate(f"{path}.name", name)
    seen.add(name)
    keys = items(driver, "topologyKeys")
    for index, key in enumerate(keys):
        if not key:
            yield refusals.required(path)
        if key in keys[:index]:
            yield refusals.duplicate(path, key)
        yield from names.qualified_errors(path, key)


def compare_identities(new: Object, old: Object) -> list[FieldError]:
    """Return what may not change of a node's drivers where their limits may (MutableCSINodeAllocatableCount)."""

    def without_limits(node: Object) -> Object:
        drivers = [
            {name: value for name, value in driver.items() if name != "allocatable"}
            for driver in items(common.part_of(node, "spec"), "drivers")
        ]
        return {**node, "spec": {**common.part_of(node, "spec"), "drivers": drivers}}

    return _compare_node(without_limits(new), without_limits(old))


def _compare_node(new: Object, old: Object) -> list[FieldError]:
    found = []
    for before in items(common.part_of(old, "spec"), "drivers"):
        for driver in items(common.part_of(new, "spec"), "drivers"):
            if driver.get("name") == before.get("name") and driver != before:
                keys = items(driver, "topologyKeys")
                shown = {"Name": driver["name"], "NodeID": driver.get("nodeID", ""), "TopologyKeys": [*keys] or None}
                count = common.part_of(driver, "allocatable")
                shown["Allocatable"] = {"Count": count.get("count")} if "allocatable" in driver else None
                found.append(refusals.bad("spec.drivers", shown, common.IMMUTABLE))
    return found


RULES = Rules(
    printer=Printer(lambda obj, _: [len(spec_of(obj).get("drivers") or ())], is_part=True),
    validate=_node_errors,
    compare=_compare_node,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA, OBJECT, CHANGE)),
)
