"""The allocator's features as the gates of a cluster have them. Apart, as the tables of gates are slow to import."""

from __future__ import annotations

from mews.kube.releases.cluster_release import ClusterRelease
from mews.kube.releases.release_data import minor
from mews.kube.scheduling.devices.features import DeviceFeatures

_RULES = {34: "v1alpha3", 35: "v1alpha3", 36: "v1beta2"}
"""Minor version -> the API version in which kube-scheduler of that release reads DeviceTaintRules; v1 later."""


def features_of(release: ClusterRelease) -> DeviceFeatures:
    """Return what a cluster turns on; binding conditions need the devices' status, too."""
    gates, number = release.gates, minor(release.name)
    taints = gates.on("DRADeviceTaints")
    rules = _RULES.get(number, "v1")
    followed = taints and release.serves(f"resource.k8s.io/{rules}")
    if number >= 35:  # the gate for rules alone
        followed = followed and gates.on("DRADeviceTaintRules")
    return DeviceFeatures(
        minor=number,
        admin_access=gates.on("DRAAdminAccess"),
        prioritized_list=gates.on("DRAPrioritizedList"),
        partitionable_devices=gates.on("DRAPartitionableDevices"),
        device_taints=taints,
        taint_rules=rules if followed else "",
        binding_conditions=gates.on("DRADeviceBindingConditions") and gates.on("DRAResourceClaimDeviceStatus"),
        consumable_capacity=gates.on("DRAConsumableCapacity"),
        extended_resource=gates.on("DRAExtendedResource"),
        scheduler_filter_timeout=gates.on("DRASchedulerFilterTimeout"),
    )
