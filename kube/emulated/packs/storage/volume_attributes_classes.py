"""VolumeAttributesClasses (pkg/apis/storage/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, field_cell
from mews.kube.emulated.packs.storage.parameters import parameter_errors, provisioner_errors


def _attributes_class_errors(attributes_class: Object) -> list[FieldError]:
    found = provisioner_errors(attributes_class.get("driverName", ""), "driverName")
    return [*found, *parameter_errors(attributes_class.get("parameters") or {}, "parameters", needed=True)]


def _attributes_class_change(new: Object, old: Object, _: str) -> list[FieldError]:
    """Upstream looks at the whole a second time when it is updated."""
    found = _attributes_class_errors(new)
    for name in ("driverName", "parameters"):
        if (new.get(name) or None) != (old.get(name) or None):
            found.append(refusals.forbidden_field(name, f"updates to {name} are forbidden."))
    return found + _attributes_class_errors(new)


RULES = Rules(
    printer=Printer(field_cell("driverName"), is_part=True),
    validate=_attributes_class_errors,
    validate_update=_attributes_class_change,
    metadata=MetadataChecks(on_update=(METADATA, METADATA_UPDATE, METADATA)),
)
