"""Rules of claims."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store import refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _claim_faults(claim: Object) -> list[FieldError]:
    spec = claim["spec"]
    modes, found = spec.get("accessModes") or (), []
    if not modes:
        found.append(refusals.required("spec.accessModes", "at least 1 access mode is required"))
    found += [refusals.unsupported("spec.accessModes", mode, _MODES) for mode in modes if mode not in _MODES]
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        found.append(refusals.required("spec.resources[storage]"))
    return found


RULES = Rules(validate=_claim_faults)
