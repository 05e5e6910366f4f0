"""The allocator's features as the gates of a cluster have them. Apart, as the tables of gates are slow to import."""

from __future__ import annotations

from mews.kube.releases.feature_gates import FeatureGates
from mews.kube.releases.release_data import minor
from mews.kube.scheduling.devices.features import DeviceFeatures


def features_of(gates: FeatureGates) -> DeviceFeatures:
    """What the gates of a cluster turn on; binding conditions need the devices' status, too."""
    return DeviceFeatures(
        minor=minor(gates.release),
        admin_access=gates.on("DRAAdminAccess"),
        prioritized_list=gates.on("DRAPrioritizedList"),
        partitionable_devices=gates.on("DRAPartitionableDevices"),
        device_taints=gates.on("DRADeviceTaints"),
        binding_conditions=gates.on("DRADeviceBindingConditions") and gates.on("DRAResourceClaimDeviceStatus"),
        consumable_capacity=gates.on("DRAConsumableCapacity"),
    )
