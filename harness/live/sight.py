"""What is looked at when a pod is explained: cluster and hardware at one moment. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.harness.live.standing import StandingFault, StandingTroubles
from mews.kube.api.objects import Object
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.system.system import Pooled

Finding = tuple[str, str]
"""A cause and its sentence."""


class ExplainedSight(Struct, frozen=True):
    """What is looked at.

    ``events`` are those of the pod's namespace, oldest first. ``schedulers``: schedulerName -> the component that
    answers to it; ``extenders``: components that the default scheduler asks, each with the resources that it is asked
    about (none: about every pod); ``pools``: what the systems that run move between nodes; ``workers``: the components
    of the systems that run -> the resource that their system moves, "" for none; ``table`` as ``HardwareControl.table``
    has it; ``held``: what the kubelet of its node says of the pod; ``since_s``: when the journal saw it created;
    ``namespaces``: those there are, where that is known; ``faults``: those that were added and not cleared.
    ``claims``, ``slices``, ``device_classes``, ``taint_rules``: all there are, for a pod with resource claims;
    ``devices`` is what the cluster's scheduler honours of them.
    """

    namespace: str
    name: str
    pod: Object | None
    pods: Sequence[Object] = ()
    nodes: Sequence[Object] = ()
    events: Sequence[Object] = ()
    schedulers: Mapping[str, str] = field(default_factory=dict)
    extenders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pools: Sequence[Pooled] = ()
    table: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    held: PodDevices | None = None
    since_s: float | None = None
    standing: StandingTroubles = field(default_factory=StandingTroubles)
    workers: Mapping[str, str] = field(default_factory=dict)
    namespaces: Sequence[str] | None = None
    faults: Sequence[StandingFault] = ()
    claims: Sequence[Object] = ()
    slices: Sequence[Object] = ()
    device_classes: Sequence[Object] = ()
    taint_rules: Sequence[Object] = ()
    devices: DeviceFeatures = DEFAULT_FEATURES


def ending_of(sight: ExplainedSight, component: str) -> str:
    """Return how and when a component that is down ended."""
    line = sight.standing.down[component]
    cause = line.fields.get("cause")
    return f"{line.event} at {line.t:.1f} s{f' ({cause})' if cause else ''}"
