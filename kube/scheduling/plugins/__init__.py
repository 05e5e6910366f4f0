"""The default plugins (upstream pkg/scheduler/apis/config/v1/default_plugins.go), in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.framework import PluginFactory
from mews.kube.scheduling.plugins.balanced import NodeResourcesBalancedAllocation
from mews.kube.scheduling.plugins.claims import DynamicResources
from mews.kube.scheduling.plugins.default_binder import DefaultBinder
from mews.kube.scheduling.plugins.default_preemption import DefaultPreemption
from mews.kube.scheduling.plugins.inter_pod_affinity import InterPodAffinity
from mews.kube.scheduling.plugins.node_affinity import NodeAffinity
from mews.kube.scheduling.plugins.node_basics import NodeName, NodeUnschedulable
from mews.kube.scheduling.plugins.node_ports import NodePorts
from mews.kube.scheduling.plugins.queueing import PrioritySort, SchedulingGates
from mews.kube.scheduling.plugins.resources_fit import CPU_AND_MEMORY, NodeResourcesFit, Strategy
from mews.kube.scheduling.plugins.taints import TaintToleration
from mews.kube.scheduling.plugins.topology_spread import PodTopologySpread
from mews.kube.scheduling.plugins.volume_binding import VolumeBinding
from mews.kube.scheduling.plugins.volume_limits import NodeVolumeLimits
from mews.kube.scheduling.plugins.volume_restrictions import VolumeRestrictions
from mews.kube.scheduling.plugins.volume_zone import VolumeZone

__all__ = [
    "CPU_AND_MEMORY",
    "DefaultBinder",
    "DefaultPreemption",
    "DynamicResources",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "PrioritySort",
    "SchedulingGates",
    "Strategy",
    "TaintToleration",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
    "default_plugins",
]


def default_plugins(
    *,
    ignored_resource_groups: Sequence[str] = (),
    strategy: Strategy = Strategy.LEAST_ALLOCATED,
    resources: Mapping[str, int] = CPU_AND_MEMORY,
    devices: DeviceFeatures = DEFAULT_FEATURES,
) -> tuple[PluginFactory, ...]:
    """Return all of the default profile; ``devices`` goes to DynamicResources too, all arguments to
    NodeResourcesFit."""
    fit = partial(
        NodeResourcesFit,
        ignored_resource_groups=ignored_resource_groups,
        strategy=strategy,
        resources=resources,
        devices=devices,
    )
    return (
        SchedulingGates,
        PrioritySort,
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinity,
        NodePorts,
        fit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        partial(DynamicResources, features=devices),
        DefaultPreemption,
        NodeResourcesBalancedAllocation,
        DefaultBinder,
    )
