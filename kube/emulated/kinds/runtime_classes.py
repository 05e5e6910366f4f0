"""RuntimeClasses (pkg/apis/node/validation)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, field_cell
from mews.kube.emulated.kinds.pods.resource_errors import resource_errors
from mews.kube.emulated.kinds.pods.spec_errors import toleration_errors


def _runtime_errors(runtime: Object) -> list[FieldError]:
    found = common.label("handler", runtime.get("handler", ""))
    if runtime.get("overhead") is not None:
        found += resource_errors({"limits": part_of(runtime["overhead"], "podFixed")}, "overhead")
    scheduling = runtime.get("scheduling")
    if scheduling is None:
        return found
    for key, value in part_of(scheduling, "nodeSelector").items():
        found += names.label_pair_errors("scheduling.nodeSelector", key, value)
    path, seen = "scheduling.tolerations", list[Any]()
    for index, toleration in enumerate(items(scheduling, "tolerations")):
        found += toleration_errors(toleration, f"{path}.tolerations[{index}]")
    for index, toleration in enumerate(items(scheduling, "tolerations")):
        parts = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if parts in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), parts, strict=True))
            shown["TolerationSeconds"] = toleration.get("tolerationSeconds")
            found.append(refusals.duplicate(f"{path}[{index}]", shown))
        seen.append(parts)
    return found


def _compare_runtime(new: Object, old: Object) -> list[FieldError]:
    return common.fixed("handler", new.get("handler", ""), old.get("handler", ""))


RULES = Rules(
    printer=Printer(field_cell("handler"), is_part=True),
    validate=_runtime_errors,
    compare=_compare_runtime,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
