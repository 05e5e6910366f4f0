"""IPAddresses (pkg/apis/networking/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age, spec_of


def _address_errors(address: Object) -> list[FieldError]:
    parent = part_of(address, "spec").get("parentRef")
    if parent is None:
        return [refusals.required("spec.parentRef")]
    path, found = "spec.parentRef", list[FieldError]()
    if parent.get("group"):
        found += names.subdomain_errors(f"{path}.group", parent["group"])
    for name in ("resource", "name"):
        given = parent.get(name)
        found += common.path_segment(f"{path}.{name}", given) if given else [refusals.required(f"{path}.{name}")]
    if parent.get("namespace"):
        found += common.path_segment(f"{path}.namespace", parent["namespace"])
    return found


def _compare_address(new: Object, old: Object) -> list[FieldError]:
    after, before = (part_of(obj, "spec").get("parentRef") for obj in (new, old))
    if after == before:
        return []
    fields = ("group", "resource", "namespace", "name")
    shown = {field.title(): after.get(field, "") for field in fields} if after is not None else None
    return [refusals.bad("spec.parentRef", shown, common.IMMUTABLE)]


def named_by_address(_obj: Object, text: str, _prefix: bool) -> list[str]:
    """An IPAddress is named by its address."""
    return [error.text.partition(": ")[2] for error in addresses.strict_address("", text)]


def _address(obj: Object, now_s: float) -> Row:
    """Its age has no column, as upstream."""
    parent = spec_of(obj).get("parentRef") or {}
    group, place = parent.get("group"), parent.get("namespace")
    what = f"{parent.get('resource', '')}{f'.{group}' if group else ''}".lower()
    named = f"{what}{f'/{place}' if place else ''}/{parent.get('name', '')}" if parent else "<none>"
    return [obj["metadata"]["name"], named, meta_age(obj, now_s)]


RULES = Rules(
    printer=Printer(_address),
    validate=_address_errors,
    compare=_compare_address,
    metadata=MetadataChecks(name_texts=named_by_address, on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
