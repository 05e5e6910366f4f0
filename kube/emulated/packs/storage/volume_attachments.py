"""VolumeAttachments (pkg/apis/storage/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.volumes.volume_errors import driver_name_errors, persistent_volume_spec_errors
from mews.kube.emulated.packs.storage.parameters import LARGEST_PARAMETERS

_LONGEST_ERROR = 1024


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
            found.append(common.too_long(f"status.{name}.message", LARGEST_PARAMETERS))
        if error.get("errorCode", 0) < 0:
            text = "must be between 0 and 2147483647, inclusive"
            found.append(refusals.bad(f"status.{name}.errorCode", error["errorCode"], text))
    return found


def _attachment_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return 2 * _attachment_errors(new) + common.fixed("spec", new["spec"], old["spec"], "storage.VolumeAttachmentSpec")


def _attachment(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), bool(status_of(obj).get("attached"))]


RULES = Rules(
    printer=Printer(_attachment, is_part=True),
    validate=lambda attachment: _attachment_errors(attachment) + _new_attachment_errors(attachment),
    validate_update=_attachment_change,
    metadata=MetadataChecks(on_update=(METADATA, METADATA), status_leaves=RESET_WITH_STATUS),
)
