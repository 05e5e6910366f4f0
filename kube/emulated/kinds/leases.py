"""Leases: how long one lasts, how often it changed hands (pkg/apis/coordination/validation)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import Rules
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, meta_age


def _validate(lease: Object) -> list[FieldError]:
    spec, found = lease.get("spec") or {}, []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        found.append(refusals.bad("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    return found + common.not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def _lease(obj: Object, now_s: float) -> Row:
    holder = (obj.get("spec") or {}).get("holderIdentity") or ""
    return [obj["metadata"]["name"], holder, meta_age(obj, now_s)]


RULES = Rules(printer=Printer(_lease), validate=_validate)
