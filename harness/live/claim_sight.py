"""What a pod's resource claims are weighed against, asked of the API."""

from __future__ import annotations

from typing import Any

from mews.harness.scenario.device_features import device_features
from mews.harness.scenario.model import Scenario
from mews.kube.api.objects import Object
from mews.kube.api.resource_claims import names_claims
from mews.kube.api.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, taint_rules_of
from mews.kube.client.port import KubeApi


async def claim_sight(kube: KubeApi, scenario: Scenario, pod: Object | None) -> dict[str, Any]:
    """Return the parts of a ``Sight`` that a pod with resource claims needs, none for others.

    Raises ApiError, UnavailableError.
    """
    if pod is None or not names_claims(pod):
        return {}
    devices = device_features(scenario)
    named = {"claims": RESOURCE_CLAIMS, "slices": RESOURCE_SLICES, "device_classes": DEVICE_CLASSES}
    if devices.taint_rules:
        named["taint_rules"] = taint_rules_of(devices.taint_rules)
    return {"devices": devices, **{name: (await kube.list(resource)).items for name, resource in named.items()}}
