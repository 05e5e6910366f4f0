"""What pods may ask of Koordinator that is not played here: refused in words, and never ignored. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from mews.systems.koordinator.names import GROUP, QUOTAS

RESERVATIONS = tuple(
    f"{GROUP}/{name}"
    for name in (
        *("reservation-affinity", "reservation-allocated", "reservation-restricted-options"),
        "exact-match-reservation",
    )
)
"""Annotations by which a pod asks for a Reservation (v1.6.0, apis/extension/reservation.go)."""


def unsupported(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return why the pod cannot be placed; "" where it asks for nothing of the sort."""
    for key, value in labels.items():
        if key.startswith(QUOTAS):
            return f"label {key}={value}: elastic quotas are not part of this scheduler; a ResourceQuota is"
    for key in RESERVATIONS:
        if key in annotations:
            return f"annotation {key}: reservations are not part of this scheduler"
    return ""
