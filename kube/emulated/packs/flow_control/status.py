"""The status of flow schemas and priority levels."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError


def status_errors(obj: Object) -> Iterator[FieldError]:
    """Yield what is wrong with the conditions of a status."""
    seen: set[str] = set()
    for index, condition in enumerate(items(part_of(obj, "status"), "conditions")):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield refusals.duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield refusals.required(path)
