"""What a scenario's release of Kubernetes does with devices that pods claim."""

from __future__ import annotations

from mews.harness.scenario.model import Scenario
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures


def device_features(scenario: Scenario) -> DeviceFeatures:
    """Return what the cluster's feature gates let its schedulers and controllers do with devices."""
    release = scenario.stack.release
    if release.is_default:
        return DEFAULT_FEATURES
    from mews.kube.scheduling.devices.gated_features import features_of  # the tables of gates are slow to import

    return features_of(release)
