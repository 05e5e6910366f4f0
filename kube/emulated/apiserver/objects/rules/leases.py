"""Leases: how long one lasts."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError


def _validate(lease: Object) -> list[FieldError]:
    duration = (lease.get("spec") or {}).get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        return [refusals.bad("spec.leaseDurationSeconds", duration, "must be greater than 0")]
    return []


RULES = Rules(validate=_validate)
