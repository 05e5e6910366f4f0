"""ServiceCIDRs (pkg/apis/networking/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.base import RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, spec_of


def _range_errors(service_range: Object) -> list[FieldError]:
    given, path = items(part_of(service_range, "spec"), "cidrs"), "spec.cidrs"
    found = [] if given else [refusals.required(path, "at least one CIDR required")]
    if len(given) > 2:
        found.append(refusals.bad(path, {"CIDRs": [*given]}, "may only hold up to 2 values"))
        return found
    for index, text in enumerate(given):
        found += addresses.strict_range(f"{path}[{index}]", text)
    if len(given) == 2 and addresses.family(given[0]) == addresses.family(given[1]) != 0:
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        found.append(refusals.bad(path, [*given], text))
    return found


def _range_change(new: Object, old: Object, _: str) -> list[FieldError]:
    after, before = (items(part_of(obj, "spec"), "cidrs") for obj in (new, old))
    path = "spec.cidrs"
    if len(after) == len(before) or (len(before), len(after)) == (1, 2):
        pairs = enumerate(zip(after, before, strict=False))
        found = [refusals.bad(f"{path}[{index}]", a, common.IMMUTABLE) for index, (a, b) in pairs if a != b]
        return found + (_range_errors(new) if len(after) != len(before) else [])
    return [refusals.bad(path, [*after] or None, common.IMMUTABLE)]


RULES = Rules(
    printer=Printer(lambda obj, _: [",".join(spec_of(obj).get("cidrs") or ())], is_part=True),
    validate=_range_errors,
    validate_update=_range_change,
    validate_status_update=lambda _new, _old: [],
    metadata=MetadataChecks(status_leaves=RESET_WITH_STATUS),
)
