"""ControllerRevisions (pkg/apis/apps/validation)."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row


def _revision_errors(revision: Object) -> list[FieldError]:
    data, found = revision.get("data"), common.not_negative("revision", revision.get("revision"))
    if data is None:
        found.append(refusals.required("data", "data is mandatory"))
    elif not isinstance(data, Mapping):
        found.append(refusals.required("data", "data must be a valid JSON object"))
    return found


def _compare_revision(new: Object, old: Object) -> list[FieldError]:
    return common.fixed("data", new.get("data"), old.get("data"))


def _revision_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return common.not_negative("revision", new.get("revision")) + _compare_revision(new, old)


def _revision(obj: Object, _: float) -> Row:
    owners = [owner for owner in obj["metadata"].get("ownerReferences") or () if owner.get("controller")]
    named = "<none>"
    for owner in owners:
        group = owner["apiVersion"].rpartition("/")[0]
        named = f"{owner['kind'].lower()}{f'.{group}' if group else ''}/{owner['name']}"
    return [named, obj.get("revision", 0)]


RULES = Rules(
    printer=Printer(_revision, is_part=True),
    validate=_revision_errors,
    validate_update=_revision_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
