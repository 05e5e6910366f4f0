"""LimitRanges: a name when none is given, and limits in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import parse
from mews.kube.emulated.core.checks.base import METADATA, Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds.pods.resource_errors import resource_name_errors


def _default_limits(limits: Object) -> None:
    for item in limits["spec"].get("limits") or ():
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        item.update({name: amounts for name, amounts in (("default", default), ("defaultRequest", request)) if amounts})


_LIMITING = ("min", "max", "default", "defaultRequest")


_ORDERED = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""(not more, than this, the field that is told, the text)."""


def _limit_errors(limits: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(limits["spec"].get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type", "")
        found += _limit_type_errors(kind, f"{path}.type")
        if kind in seen:
            found.append(refusals.duplicate(f"{path}.type", kind))
        seen.add(kind)
        found += _limited_name_errors(item, kind, path)
        for name in sorted({name for field in (*_LIMITING, _RATIO) for name in item.get(field) or ()}):
            found += _order_errors(item, name, path)
    return found


_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


_RATIO = "maxLimitRequestRatio"


def _limit_type_errors(kind: str, path: str) -> list[FieldError]:
    found = names.qualified_errors(path, kind)
    if not found and "/" not in kind and kind not in _LIMIT_TYPES:
        found.append(refusals.bad(path, kind, "must be a standard limit type or fully qualified"))
    return found


def _limited_name_errors(item: Mapping[str, Any], kind: str, path: str) -> Iterator[FieldError]:
    for field in ("max", "min", "default", "defaultRequest", "", _RATIO):
        given = item.get(field) or {}
        if kind == "PersistentVolumeClaim" and not field:
            if not any("storage" in (item.get(place) or {}) for place in ("min", "max")):
                text = "either minimum or maximum storage value is required, but neither was provided"
                yield refusals.required(f"{path}.limits", text)
        elif kind == "Pod" and field.startswith("default"):
            if given:
                yield refusals.forbidden_field(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
        else:
            for name in given:
                here = f"{path}.{field}[{name}]"
                is_of_pods = kind in ("Pod", "Container")
                yield from resource_name_errors(name, here) if is_of_pods else names.qualified_errors(here, name)


def _order_errors(item: Mapping[str, Any], name: str, path: str) -> Iterator[FieldError]:
    for low, high, key, text in _ORDERED:
        less, more = (item.get(low) or {}).get(name), (item.get(high) or {}).get(name)
        if less is not None and more is not None and parse(less) > parse(more):
            # Upstream shows the other end of the comparison for a default that is out of its bounds.
            shown = (more if low == "default" else less) if key == "default" else item[key][name]
            yield refusals.bad(f"{path}.{key}[{name}]", shown, text.format(less, more))
    ratio, least, most = ((item.get(field) or {}).get(name) for field in (_RATIO, "min", "max"))
    if ratio is None:
        return
    if parse(ratio) < 1:
        yield refusals.bad(f"{path}.{_RATIO}[{name}]", ratio, f"ratio {ratio} is less than 1")
    if least is not None and most is not None and parse(least) and parse(ratio) > parse(most) / parse(least):
        text = f"ratio {ratio} is greater than max/min = {float(parse(most) / parse(least)):.6f}"
        yield refusals.bad(f"{path}.{_RATIO}[{name}]", ratio, text)


def _name_limits(store: Store, _kind: Kind, limits: Object) -> None:
    """One that is not named is named by chance."""
    if not limits["metadata"].get("name"):
        limits["metadata"]["name"] = store.new_uid()


RULES = Rules(
    default=_default_limits, admit=_name_limits, validate=_limit_errors, metadata=MetadataChecks(on_update=(METADATA,))
)
