"""Names on the API: today's, and the seed's as aliases of them (contract koordinator.md section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mews.kube.api.resources import Resource

DOMAIN, SEED_DOMAIN = "koordinator.sh/", "kubernetes.io/"
GROUP = "scheduling.koordinator.sh"
DEVICES = Resource(GROUP, "v1alpha1", "devices", "Device", namespaced=False)
"""The kind of which each node has one object of its own name."""

NAMESPACE = "koordinator-system"
SCHEDULER = "koord-scheduler"

GPU, RDMA, FPGA = "gpu", "rdma", "fpga"
"""Types of devices that requests know without having seen one; any other comes with the Device objects."""

NVIDIA = "nvidia.com/gpu"
"""A name to request by. The reporter never writes it to a node."""
AMD, HYGON = "amd.com/gpu", "dcu.com/gpu"
VENDORS = (NVIDIA, AMD, HYGON)
"""Names of vendors' device plugins, each of which asks for whole GPUs (v1.6.0, apis/extension/device_share.go)."""
WHOLE = DOMAIN + "gpu"
CORE, MEMORY, RATIO = DOMAIN + "gpu-core", DOMAIN + "gpu-memory", DOMAIN + "gpu-memory-ratio"
SHARED = DOMAIN + "gpu.shared"
GPU_NAMES = (*VENDORS, WHOLE, CORE, MEMORY, RATIO, SHARED)
"""What a pod may say of GPUs."""
RDMA_RESOURCE, FPGA_RESOURCE = DOMAIN + RDMA, DOMAIN + FPGA

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        SEED_DOMAIN + "gpu": WHOLE,
        SEED_DOMAIN + "gpu-core": CORE,
        SEED_DOMAIN + "gpu-memory": MEMORY,
        SEED_DOMAIN + "gpu-memory-ratio": RATIO,
        SEED_DOMAIN + "rdma": RDMA_RESOURCE,
        SEED_DOMAIN + "fpga": FPGA_RESOURCE,
        SEED_DOMAIN + "gpu-mem": MEMORY,
        SEED_DOMAIN + "gpu-mem-ratio": RATIO,
        DOMAIN + "gpu-mem": MEMORY,
        DOMAIN + "gpu-mem-ratio": RATIO,
    }
)
"""Name of the seed -> name of today; the last four stand in its annotation alone."""
SEED_NAMES: Mapping[str, str] = MappingProxyType({today: seed for seed, today in list(ALIASES.items())[:6]})
"""Name of today -> the seed's, for whoever publishes both."""

ALLOCATED = GROUP + "/device-allocated"
"""On a pod: which devices it has, and how much of each; JSON."""
HINT, JOINT = GROUP + "/device-allocate-hint", GROUP + "/device-joint-allocate"
PARTITION_SPEC = GROUP + "/gpu-partition-spec"
PARTITIONS = GROUP + "/gpu-partitions"
"""On a Device: sets of GPUs that may be given together, by their number; JSON."""
LINKS = GROUP + "/device-links"
"""On a Device, ours: how fast its devices reach each other; JSON."""
CHECKPOINTS, OLD_CHECKPOINTS = "node.koordinator.sh/devices-checkpoints", "node.koordinator.sh/gpu-checkpoints"
"""On a Device: what its kubelet's checkpoint says is held; JSON. The first is written, both are read."""
FOUND = GROUP + "/devices-found"
"""On a Device, ours: what the runtime hook found in the environment of pods without an annotation; JSON as of
``CHECKPOINTS``."""

POD_GROUP, MIN_AVAILABLE = "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/min-available"
"""Labels of a pod that is to be placed with others on one node or not at all, as the design has it."""
POD_GROUP_NAME, POD_GROUP_MATCH_POLICY = f"{POD_GROUP}/name", f"{POD_GROUP}/match-policy"
GANG_PREFIX = "gang." + GROUP
GANG_NAME, GANG_MIN, GANG_TOTAL = GANG_PREFIX + "/name", GANG_PREFIX + "/min-available", GANG_PREFIX + "/total-number"
GANG_MODE, GANG_WAIT, GANG_GROUPS = GANG_PREFIX + "/mode", GANG_PREFIX + "/waiting-time", GANG_PREFIX + "/groups"
GANG_MATCH_POLICY = GANG_PREFIX + "/match-policy"
"""Annotations of Koordinator's own gangs (v1.6.0, apis/extension/coscheduling.go); those of a PodGroup likewise."""
POD_GROUPS = Resource("scheduling.sigs.k8s.io", "v1alpha1", "podgroups", "PodGroup")

GPU_MODEL, GPU_VENDOR = "node.koordinator.sh/gpu-model", "node.koordinator.sh/gpu-vendor"
GPU_DRIVER_VERSION = "node.koordinator.sh/gpu-driver-version"
GPU_PRODUCT = "nvidia.com/gpu.product"
PARTITION_POLICY = "node.koordinator.sh/gpu-partition-policy"
WELL_PLANNED = "node.koordinator.sh/secondary-device-well-planned"
"""On a Device, "true": where the first type of devices that belong together has room, the others have, too."""
RESERVE_POD = GROUP + "/reserve-pod"
"""Annotation of the pods that stand for a Reservation in upstream's scheduler; nobody else may set it."""
QUOTAS = "quota." + GROUP + "/"
"""Labels by which a pod belongs to an ElasticQuota (v1.6.0, apis/extension/elastic_quota.go)."""
PREEMPTIBLE = QUOTAS + "preemptible"
ISOLATION, HAMI_CORE = DOMAIN + "gpu-isolation-provider", "HAMi-core"
VISIBLE = "NVIDIA_VISIBLE_DEVICES"


def today(name: str) -> str:
    """Return the name that is used today for a resource of the seed; any other name is its own."""
    return ALIASES.get(name, name)


def type_of_resource(name: str) -> str:
    """Return the type of device that a resource of today's is of when no Device object says it: ``koordinator.sh/xpu``
    -> xpu; "" for one that is no device's."""
    if name in GPU_NAMES:
        return GPU
    kind = name.removeprefix(DOMAIN)
    return kind if kind != name and kind.isalnum() else ""


def first_of(obj: Mapping[str, Any], *tags: str) -> Any:
    """Return the value of the first of these tags that an object has; None for none of them."""
    return next((obj[tag] for tag in tags if tag in obj), None)
