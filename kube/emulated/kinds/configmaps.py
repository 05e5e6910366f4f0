"""ConfigMaps: keys, and what is immutable."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.store import limits, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age
from mews.kube.emulated.kinds.held_data import fixed_errors, key_errors


def _validate_configmap(configmap: Object) -> list[FieldError]:
    binary, found = configmap.get("binaryData") or {}, list[FieldError]()
    for key in sorted(configmap.get("data") or ()):
        found += key_errors("data", key)
        if key in binary:
            found.append(refusals.bad(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in sorted(binary):
        found += key_errors("binaryData", key)
    return found + limits.config_map_errors(configmap)


def _configmap_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return [*fixed_errors(new, old), *_validate_configmap(new)]


def _configmap(obj: Object, now_s: float) -> Row:
    count = len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    return [obj["metadata"]["name"], count, meta_age(obj, now_s)]


RULES = Rules(
    printer=Printer(_configmap),
    validate=_validate_configmap,
    validate_update=_configmap_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)
