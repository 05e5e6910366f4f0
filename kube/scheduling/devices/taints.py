"""Taints of devices and what bears them (k8s.io/dynamic-resource-allocation/resourceclaim/devicetoleration.go)."""

from __future__ import annotations

from mews.kube.scheduling.devices.inventory import OfferedDevice
from mews.kube.scheduling.devices.requests import ClaimedRequest, Spec


def untolerated(device: OfferedDevice, request: ClaimedRequest) -> Spec | None:
    """Return the first taint that keeps the device from the request, None where there is none."""
    for taint in device.spec.get("taints") or ():
        if taint.get("effect") != "None" and not any(tolerates(each, taint) for each in request.tolerations):
            return taint  # type: ignore[no-any-return]
    return None


def tolerates(toleration: Spec, taint: Spec) -> bool:
    """An empty effect stands for all, an empty key with Exists for all keys."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return bool(operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or ""))
