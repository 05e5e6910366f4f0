"""DRA on the wire: messages to values and back (dra v1 and dra-health v1; v1beta1 and v1alpha1 are the same field by
field)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mews.kube.deviceplugin.pb import dra_health_v1_pb2 as health_pb
from mews.kube.deviceplugin.pb import dra_v1_pb2 as pb
from mews.kube.dra.port import HEALTHY, UNHEALTHY, UNKNOWN, ClaimReference, DeviceHealth, PreparedClaim, PreparedDevice

PLUGIN_TYPE = "DRAPlugin"
SERVICES: Mapping[str, str] = {
    "v1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin",
    "v1beta1.DRAPlugin": "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
}
"""What a driver says that it supports -> the service's full name."""
HEALTH_SERVICES = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""What a driver says that it supports where it reports health, which is the service's full name; the first is taken."""
_HEALTH = {1: HEALTHY, 2: UNHEALTHY}
_HEALTH_NUMBERS = {health: number for number, health in _HEALTH.items()}


def claim_message(claim: ClaimReference) -> Any:
    """Return a claim as a request names it."""
    return pb.Claim(namespace=claim.namespace, uid=claim.uid, name=claim.name)


def claim_value(message: Any) -> ClaimReference:
    """Return the same, read."""
    return ClaimReference(message.namespace, message.uid, message.name)


def device_message(device: PreparedDevice) -> Any:
    """Return a device that is ready, as the answer names it."""
    made = pb.Device(
        request_names=device.requests,
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=device.cdi_ids,
    )
    if device.share:
        made.share_id = device.share
    return made


def device_value(message: Any) -> PreparedDevice:
    """Return the same, read."""
    return PreparedDevice(
        message.pool_name,
        message.device_name,
        tuple(message.request_names),
        tuple(message.cdi_device_ids),
        message.share_id,
    )


def prepared_message(claims: Mapping[str, PreparedClaim]) -> Any:
    """Return what NodePrepareResources answers, by the claims' uids."""
    answers = {
        uid: pb.NodePrepareResourceResponse(devices=map(device_message, each.devices), error=each.error)
        for uid, each in claims.items()
    }
    return pb.NodePrepareResourcesResponse(claims=answers)


def prepared_value(message: Any) -> dict[str, PreparedClaim]:
    """Return the same, read."""
    return {
        uid: PreparedClaim(tuple(map(device_value, each.devices)), each.error) for uid, each in message.claims.items()
    }


def unprepared_message(errors: Mapping[str, str]) -> Any:
    """Return what NodeUnprepareResources answers, by the claims' uids."""
    answers = {uid: pb.NodeUnprepareResourceResponse(error=error) for uid, error in errors.items()}
    return pb.NodeUnprepareResourcesResponse(claims=answers)


def unprepared_value(message: Any) -> dict[str, str]:
    """Return the same, read."""
    return {uid: each.error for uid, each in message.claims.items()}


def health_message(devices: Iterable[DeviceHealth], now_s: float) -> Any:
    """Return an item of NodeWatchResources, looked at at ``now_s`` (unix): to a kubelet an older report says
    nothing."""
    return health_pb.NodeWatchResourcesResponse(
        devices=[
            health_pb.DeviceHealth(
                device=health_pb.DeviceIdentifier(pool_name=each.pool, device_name=each.device),
                health=_HEALTH_NUMBERS.get(each.health, 0),
                last_updated_time=int(now_s),
                health_check_timeout_seconds=int(each.timeout_s),
                message=each.message,
            )
            for each in devices
        ]
    )


def health_value(message: Any) -> tuple[DeviceHealth, ...]:
    """Return the same, read; a health that is not known, and a timeout below 0, are none."""
    return tuple(
        DeviceHealth(
            each.device.pool_name,
            each.device.device_name,
            _HEALTH.get(each.health, UNKNOWN),
            each.message,
            max(0.0, float(each.health_check_timeout_seconds)),
        )
        for each in message.devices
    )
