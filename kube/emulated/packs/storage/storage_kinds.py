"""Rules of storage classes, drivers, their nodes and capacities, and attachments (pkg/apis/storage/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors, persistent_volume_spec_errors

_MOST_PARAMETERS = 512
_LARGEST_PARAMETERS = 256 * 1024
_LONGEST_NODE_ID = 256
_LONGEST_ERROR = 1024
_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32


def _provisioner_errors(name: str, path: str) -> list[FieldError]:
    if not name:
        return [refusals.required(path)]
    return names.qualified_errors(path, name.lower())


def _parameter_errors(parameters: Mapping[str, str], path: str, *, needed: bool = False) -> Iterator[FieldError]:
    if len(parameters) > _MOST_PARAMETERS:
        yield common.too_long(path, _MOST_PARAMETERS)
        return
    for key in parameters:
        if not key:
            yield refusals.bad(path, key, "field can not be empty.")
    if sum(len(key) + len(value) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        yield common.too_long(path, _LARGEST_PARAMETERS)
    if needed and not parameters:
        yield refusals.required(path, "must contain at least one key/value pair")


def _class_errors(storage_class: Object) -> list[FieldError]:
    found = _provisioner_errors(storage_class.get("provisioner", ""), "provisioner")
    found += _parameter_errors(storage_class.get("parameters") or {}, "parameters")
    if storage_class.get("reclaimPolicy"):
        found += common.option("reclaimPolicy", storage_class["reclaimPolicy"], ("Delete", "Retain"))
    mode = storage_class.get("volumeBindingMode")
    found += common.option("volumeBindingMode", mode, ("Immediate", "WaitForFirstConsumer"))
    terms: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(items(storage_class, "allowedTopologies")):
        path = f"allowedTopologies[{index}]"
        found += _term_errors(term, path)
        expressions = items(term, "matchLabelExpressions")
        values = {entry.get("key", ""): frozenset(items(entry, "values")) for entry in expressions}
        # Upstream begins with as many empty terms as there are to come, and so takes each empty one for a repetition.
        before = terms.count(values) + (0 if values else len(items(storage_class, "allowedTopologies")))
        found += [refusals.duplicate(f"{path}.matchLabelExpressions", "")] * before
        terms.append(values)
    return found


def _term_errors(term: Part, path: str) -> Iterator[FieldError]:
    """Yield a topology by labels (core validation, ValidateTopologySelectorTerm)."""
    seen: set[str] = set()
    for index, expression in enumerate(items(term, "matchLabelExpressions")):
        here, key = f"{path}.matchLabelExpressions[{index}]", expression.get("key", "")
        given = items(expression, "values")
        if not given:
            yield refusals.required(f"{here}.values")
        for number, value in enumerate(given):
            if value in given[:number]:
                yield refusals.duplicate(f"{here}.values[{number}]", value)
        yield from names.qualified_errors(f"{here}.key", key)
        if key in seen:
            yield refusals.duplicate(f"{here}.key", key)
        seen.add(key)


def _compare_class(new: Object, old: Object) -> list[FieldError]:
    found = []
    for name in ("parameters", "provisioner", "reclaimPolicy"):
        if (new.get(name) or None) != (old.get(name) or None):
            found.append(refusals.forbidden_field(name, f"updates to {name} are forbidden."))
    mode = "volumeBindingMode"
    return found + common.fixed(mode, new.get(mode), old.get(mode))


def _attributes_class_errors(attributes_class: Object) -> list[FieldError]:
    found = _provisioner_errors(attributes_class.get("driverName", ""), "driverName")
    return [*found, *_parameter_errors(attributes_class.get("parameters") or {}, "parameters", needed=True)]


def _attributes_class_change(new: Object, old: Object, _: str) -> list[FieldError]:
    """Upstream looks at the whole a second time when it is updated."""
    found = _attributes_class_errors(new)
    for name in ("driverName", "parameters"):
        if (new.get(name) or None) != (old.get(name) or None):
            found.append(refusals.forbidden_field(name, f"updates to {name} are forbidden."))
    return found + _attributes_class_errors(new)


def _attachment_errors(attachment: Object) -> list[FieldError]:
    spec = common.part_of(attachment, "spec")
    source, attacher = common.part_of(spec, "source"), spec.get("attacher", "")
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    found = [] if attacher else [refusals.required("spec.attacher")]
    text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if volume is None and inline is None:
        found.append(refusals.required("spec.source", text))
    elif volume is not None and inline is not None:
        found.append(refusals.forbidden_field("spec.source", text))
    elif volume == "":
        text = "must specify non empty persistentVolumeName"
        found.append(refusals.required("spec.source.persistentVolumeName", text))
    elif inline is not None:
        found += persistent_volume_spec_errors(inline, "spec.source.inlineVolumeSpec", inline=True)
    found += names.subdomain_errors("spec.nodeName", spec.get("nodeName", ""))
    return found + _attachment_status_errors(common.part_of(attachment, "status"))


def _new_attachment_errors(attachment: Object) -> list[FieldError]:
    """Return what is asked of a new one only, since older ones may be without it."""
    spec = common.part_of(attachment, "spec")
    found = driver_name_errors(spec.get("attacher", ""), "spec.attacher")
    volume = common.part_of(spec, "source").get("persistentVolumeName")
    return found + (names.subdomain_errors("spec.source.persistentVolumeName", volume) if volume is not None else [])


def _attachment_status_errors(status: Part) -> list[FieldError]:
    found = []
    for name in ("attachError", "detachError"):
        error = common.part_of(status, name)
        if len(error.get("message", "")) > _LONGEST_ERROR:
            found.append(common.too_long(f"status.{name}.message", _LARGEST_PARAMETERS))
        if error.get("errorCode", 0) < 0:
            text = "must be between 0 and 2147483647, inclusive"
            found.append(refusals.bad(f"status.{name}.errorCode", error["errorCode"], text))
    return found


def _attachment_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return 2 * _attachment_errors(new) + common.fixed("spec", new["spec"], old["spec"], "storage.VolumeAttachmentSpec")


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


def _default_driver(driver: Object) -> None:
    spec = driver["spec"]
    defaults = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    for name, value in defaults.items():
        spec.setdefault(name, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _csi_driver_errors(driver: Object) -> list[FieldError]:
    spec, found = driver["spec"], []
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    found += common.option("spec.fsGroupPolicy", spec.get("fsGroupPolicy", policies[0]), policies)
    period_s = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period_s is not None and period_s < 10:
        text = "must be greater than or equal to 10 seconds"
        found.append(refusals.bad("spec.nodeAllocatableUpdatePeriodSeconds", period_s, text))
    seen: set[str] = set()
    for index, request in enumerate(items(spec, "tokenRequests")):
        found += _token_errors(request, f"spec.tokenRequests[{index}]", seen)
    for mode in items(spec, "volumeLifecycleModes"):
        found += common.option("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
    return found


def _token_errors(request: Part, path: str, seen: set[str]) -> Iterator[FieldError]:
    audience, lifetime = request.get("audience", ""), request.get("expirationSeconds")
    if audience in seen:
        yield refusals.duplicate(f"{path}.audience", audience)
        return
    seen.add(audience)
    if lifetime is not None and lifetime < _SHORTEST_TOKEN_S:
        yield refusals.bad(f"{path}.expirationSeconds", lifetime, "may not specify a duration less than 10 minutes")
    if lifetime is not None and lifetime > _LONGEST_TOKEN_S:
        text = "may not specify a duration larger than 2^32 seconds"
        yield refusals.bad(f"{path}.expirationSeconds", lifetime, text)


def _compare_driver(new: Object, old: Object) -> list[FieldError]:
    found = []
    for name, shown in (("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")):
        found += common.fixed(f"spec.{shown}", new["spec"].get(name), old["spec"].get(name))
    return found


def _capacity_errors(capacity: Object) -> list[FieldError]:
    found = [*selector_errors(capacity.get("nodeTopology") or {}, "nodeTopology")]
    found += names.subdomain_errors("storageClassName", capacity.get("storageClassName", ""))
    return found + common.amount_not_negative("capacity", capacity.get("capacity"))


def _compare_capacity(new: Object, old: Object) -> list[FieldError]:
    return [
        error
        for name in ("nodeTopology", "storageClassName")
        for error in common.fixed(name, new.get(name), old.get(name))
    ]


CLASSES = Rules(
    validate=_class_errors,
    compare=_compare_class,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
ATTRIBUTES_CLASSES = Rules(
    validate=_attributes_class_errors,
    validate_update=_attributes_class_change,
    metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE, METADATA)),
)
ATTACHMENTS = Rules(
    validate=lambda attachment: _attachment_errors(attachment) + _new_attachment_errors(attachment),
    validate_update=_attachment_change,
    metadata=MetadataChecks(on_update=(METADATA, METADATA), status_leaves=RESET_WITH_STATUS),
)
NODES = Rules(
    validate=_node_errors,
    compare=_compare_node,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA, OBJECT, CHANGE)),
)
DRIVERS = Rules(default=_default_driver, validate=_csi_driver_errors, compare=_compare_driver)
CAPACITIES = Rules(
    validate=_capacity_errors,
    compare=_compare_capacity,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
