"""DeviceTaintRules: taints of devices that an administrator sets (pkg/registry/resource/devicetaintrule).

Those of 1.34 select by device class and expression, too; later types have no such fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.store import names
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.core.tables.durations import age
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors
from mews.kube.emulated.packs.devices.device_errors import label_errors, pool_name_errors, selectors_errors
from mews.kube.emulated.packs.devices.device_feature_errors import device_taint_errors
from mews.kube.emulated.packs.devices.resource_slices import default_taint_time

_MOST_CONDITIONS = 8


def _default_time(rule: Object, now: str) -> None:
    default_taint_time(rule["spec"].get("taint"), now)


def stamp_update(new: Object, old: Object, now: str) -> None:
    """From 1.36 on another effect counts from now, unless the client says since when."""
    taint, before = (common.part_of(each["spec"], "taint") for each in (new, old))
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        new["spec"]["taint"] = {**taint, "timeAdded": now}


def _errors(rule: Object, *, shares: bool = False) -> list[FieldError]:
    return list(_spec_errors(rule["spec"], shares=shares))


def _spec_errors(spec: Mapping[str, Any], *, shares: bool) -> Iterator[FieldError]:
    chosen, path = common.part_of(spec, "deviceSelector"), "spec.deviceSelector"
    if chosen.get("deviceClassName") is not None:
        yield from names.subdomain_errors(f"{path}.deviceClassName", chosen["deviceClassName"])
    if chosen.get("driver") is not None:
        yield from driver_name_errors(chosen["driver"], f"{path}.driver")
    if chosen.get("pool") is not None:
        yield from pool_name_errors(chosen["pool"], f"{path}.pool")
    if chosen.get("device") is not None:
        yield from label_errors(f"{path}.device", chosen["device"])
    yield from selectors_errors(common.items(chosen, "selectors"), f"{path}.selectors", shares=shares)
    yield from device_taint_errors(common.part_of(spec, "taint"), "spec.taint")


def _status_errors(new: Object, _old: Object) -> list[FieldError]:
    conditions = common.items(common.part_of(new, "status"), "conditions")
    found = list(common.conditions("status.conditions", [condition or {} for condition in conditions]))
    if len(conditions) > _MOST_CONDITIONS:
        found.append(common.too_many("status.conditions", len(conditions), _MOST_CONDITIONS))
    return found


sharing_errors = partial(_errors, shares=True)
"""Where devices may be shared (DRAConsumableCapacity)."""


def _taint_rule(obj: Object, now_s: float) -> Row:
    taint = spec_of(obj).get("taint") or {}
    added = taint.get("timeAdded")
    words = [taint.get(name, "") for name in ("key", "value", "effect")]
    return [*words, age(added, now_s) if added else ""]


RULES = Rules(
    printer=Printer(_taint_rule, is_part=True),
    default_times=_default_time,
    validate=_errors,
    validate_status_update=_status_errors,
    metadata=MetadataChecks(status_leaves=RESET_WITH_STATUS),
)
