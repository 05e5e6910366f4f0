"""Whether the devices of a claim are ready for its pod (KEP-5007; upstream isClaimReadyForBinding). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, condition_of, name_of, seconds
from mews.kube.api.resource_claims import allocation_of, results_of

"""From the allocation on (BindingTimeoutDefaultSeconds)."""
POLL_S = 5.0
"""Between two looks at a claim that is not ready."""


class BindingFailedError(Exception):
    """A device says that it will not be ready; the text is upstream's."""


def has_conditions(claim: Object) -> bool:
    """Return whether any device of the claim has to become ready."""
    return any(result.get("bindingConditions") for result in results_of(claim))


def is_ready(claim: Object, *, minor: int) -> bool:
    """Return whether all binding conditions of all devices are true.

    Raises BindingFailedError where a failure condition is.
    """
    if allocation_of(claim) is None:
        return False
    for result in results_of(claim):
        if not result.get("bindingConditions"):
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        for kind in result.get("bindingFailureConditions") or ():
            found = condition_of({"status": status}, kind)
            if found is not None and found["status"] == "True":
                raise BindingFailedError(_failure(claim, found, minor))
        if not all(_is_true(status, kind) for kind in result["bindingConditions"]):
            return False
    return True


def _failure(claim: Object, condition: Mapping[str, Any], minor: int) -> str:
    described = f'reason={condition.get("reason", "")}, message="{condition.get("message", "")}"'
    if minor >= 36:
        return f"device binding failed: claim={name_of(claim)}, {described}"
    return f"claim {name_of(claim)} binding failed: {described}"


def is_late(claim: Object, now_s: float, timeout_s: float) -> bool:
    """Return whether the devices had long enough."""
    stamp = (allocation_of(claim) or {}).get("allocationTimestamp")
    return stamp is not None and has_conditions(claim) and seconds(str(stamp)) + timeout_s < now_s


def _is_true(status: Mapping[str, Any], kind: str) -> bool:
    found = condition_of({"status": status}, kind)
    return found is not None and bool(found["status"] == "True")


def _status_of(claim: Object, result: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = tuple(result[name] for name in ("driver", "pool", "device"))
    for status in (claim.get("status") or {}).get("devices") or ():
        if tuple(status.get(name) for name in ("driver", "pool", "device")) == wanted:
            return status  # type: ignore[no-any-return]
    return None
