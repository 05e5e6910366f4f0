"""What the allocator honours, by Kubernetes version and feature gates (pkg/features/kube_features.go)."""

from __future__ import annotations

from msgspec import Struct


class DeviceFeatures(Struct, frozen=True):
    """The gates by their upstream names without ``DRA``; ``minor`` is the Kubernetes minor version.

    ``taint_rules`` is the API version whose DeviceTaintRules act, "" where none do. ``minor`` decides what no gate
    does: from 1.36 on incomplete and invalid pools are passed over, and results carry the requests' tolerations.
    ``binding_timeout_s`` is how long devices may take to meet their binding conditions (DynamicResourcesArgs).
    """

    minor: int = 34
    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = False
    device_taints: bool = False
    taint_rules: str = ""
    binding_conditions: bool = False
    consumable_capacity: bool = False
    extended_resource: bool = False
    binding_timeout_s: float = 600.0
    scheduler_filter_timeout: bool = True

    @property
    def settled(self) -> bool:
        """Whether pools are judged as from 1.36 on."""
        return self.minor >= 36

    @property
    def tracks_rules(self) -> bool:
        """Whether the taints of rules stand on slices before anything looks at them, as in 1.34: rules may select by
        class and expression, and have no status."""
        return self.minor < 35

    @property
    def names_classes(self) -> bool:
        """Whether each class has a resource of its own name, and an extended resource of amount zero is none."""
        return self.minor >= 35


DEFAULT_FEATURES = DeviceFeatures()
"""Of Kubernetes 1.34 with its gates as they are."""
