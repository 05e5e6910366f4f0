"""Every controller of ours, by the name that kube-controller-manager gives it, and the choice of those that run.

What a controller needs is imported as it is made: those of workloads are not before the first workload is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from mews.kube.api.brought_claims import brings_ephemeral_volumes, concerns_resource_claims
from mews.kube.api.resources import (
    AUTOSCALERS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICE_CIDRS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
    taint_rules_of,
)
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures

if TYPE_CHECKING:  # the names alone are asked of scenarios
    from mews.kube.api.objects import Object
    from mews.kube.clock import Pace
    from mews.kube.component import Context, Runnable
    from mews.kube.emulated.controllers.owners import Informers
    from mews.kube.events import EventRecorder

ALL = "*"
ROOT_CA = "root-ca-certificate-publisher-controller"
"""It runs where there is something to publish: where the API is served over TLS."""
DEVICE_TAINTS = "device-taint-eviction-controller"
"""It runs where the gate DRADeviceTaints is on."""


class Parts(Struct, frozen=True):
    """What a controller is made of. ``recorder`` makes one that records under a name; ``authority``: the certificates
    that clients in the cluster trust, in PEM. ``devices``: what the release's gates let controllers do with devices."""

    context: Context
    pace: Pace
    informers: Informers
    recorder: Callable[[str], EventRecorder]
    authority: str | None = None
    devices: DeviceFeatures = DEFAULT_FEATURES


Make = Callable[[Parts], "Runnable"]


def _nodes(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.node_lifecycle import NodeLifecycle

    nodes, pods = parts.informers.of(NODES), parts.informers.of(PODS)
    return NodeLifecycle(parts.context, parts.pace, nodes=nodes, pods=pods, events=parts.recorder("node-controller"))


def _taints(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.taint_eviction import TaintEviction

    nodes, pods = parts.informers.of(NODES), parts.informers.of(PODS)
    events = parts.recorder("taint-eviction-controller")
    return TaintEviction(parts.context, parts.pace, nodes=nodes, pods=pods, events=events)


def _pod_garbage(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.pod_garbage import PodGarbage

    return PodGarbage(parts.context, parts.pace, nodes=parts.informers.of(NODES), pods=parts.informers.of(PODS))


def _garbage(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.garbage import GarbageCollector

    return GarbageCollector(parts.context, parts.pace, informers=parts.informers)


def _namespaces(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.namespaces import NamespaceDeletion

    return NamespaceDeletion(parts.context, parts.pace)


def _replica_sets(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.replicaset.controller import ReplicaSetController

    events = parts.recorder("replicaset-controller")
    return ReplicaSetController(parts.context, informers=parts.informers, events=events)


def _replication_controllers(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.replicaset.controller import ReplicaSetController

    events, informers = parts.recorder("replication-controller"), parts.informers
    return ReplicaSetController(parts.context, informers=informers, events=events, resource=REPLICATION_CONTROLLERS)


def _deployments(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.deployment.controller import DeploymentController

    events = parts.recorder("deployment-controller")
    return DeploymentController(parts.context, informers=parts.informers, events=events)


def _jobs(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.job.controller import JobController

    return JobController(parts.context, informers=parts.informers, events=parts.recorder("job-controller"))


def _ended_jobs(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.job.ttl import TtlAfterFinished

    return TtlAfterFinished(parts.context, informers=parts.informers)


def _daemon_sets(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.daemonset.controller import DaemonSetController

    events = parts.recorder("daemonset-controller")
    return DaemonSetController(parts.context, informers=parts.informers, events=events)


def _stateful_sets(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.statefulset.controller import StatefulSetController

    events = parts.recorder("statefulset-controller")
    return StatefulSetController(parts.context, informers=parts.informers, events=events)


def _cron_jobs(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.cronjob.controller import CronJobController

    return CronJobController(parts.context, informers=parts.informers, events=parts.recorder("cronjob-controller"))


def _budgets(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.disruption.controller import DisruptionController

    events = parts.recorder("controllermanager")
    return DisruptionController(parts.context, informers=parts.informers, events=events)


def _autoscalers(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.podautoscaler.controller import PodAutoscaler

    events = parts.recorder("horizontal-pod-autoscaler")
    return PodAutoscaler(parts.context, informers=parts.informers, events=events)


def _slices(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.endpointslice.controller import EndpointSliceController

    return EndpointSliceController(parts.context, informers=parts.informers)


def _endpoints(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.endpointslice.controller import EndpointsController

    return EndpointsController(parts.context, informers=parts.informers)


def _mirrored(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.endpointslice.mirroring import EndpointsMirroring

    events = parts.recorder("endpoint-slice-mirroring-controller")
    return EndpointsMirroring(parts.context, informers=parts.informers, events=events)


def _quotas(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.quotas import QuotaController

    return QuotaController(parts.context, informers=parts.informers)


def _volumes(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.volumebinder.controller import VolumeBinder

    events = parts.recorder("persistentvolume-controller")
    return VolumeBinder(parts.context, informers=parts.informers, events=events)


def _claims_in_use(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.storage_protection import ClaimProtection

    return ClaimProtection(parts.context, informers=parts.informers)


def _volumes_in_use(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.storage_protection import VolumeProtection

    return VolumeProtection(parts.context, informers=parts.informers)


def _attributes_classes_in_use(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.storage_protection import AttributesClassProtection

    return AttributesClassProtection(parts.context, informers=parts.informers)


def _service_ranges(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.service_ranges import ServiceRanges

    return ServiceRanges(parts.context, informers=parts.informers)


def _accounts(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.service_accounts import ServiceAccounts

    return ServiceAccounts(parts.context, informers=parts.informers)


def _root_ca(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.root_ca import RootCaPublisher

    assert parts.authority is not None
    return RootCaPublisher(parts.context, informers=parts.informers, authority=parts.authority)


def _ephemeral_volumes(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.pod_claims import EphemeralVolumes

    events = parts.recorder("ephemeral_volume")
    return EphemeralVolumes(parts.context, informers=parts.informers, events=events)


def _resource_claims(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.resource_claims import ResourceClaims

    return ResourceClaims(parts.context, informers=parts.informers, events=parts.recorder("resource_claim"))


def _device_taints(parts: Parts) -> Runnable:
    from mews.kube.emulated.controllers.devicetaints.controller import DeviceTaintEviction

    events = parts.recorder(DEVICE_TAINTS)
    return DeviceTaintEviction(parts.context, informers=parts.informers, events=events, devices=parts.devices)


def _device_taints_once_needed(parts: Parts) -> Runnable:
    """Made when the first claim is there, or the first rule where rules act: each gets a status."""
    version = parts.devices.taint_rules
    rules = (taint_rules_of(version),) if version else ()
    return _asleep(_device_taints, RESOURCE_CLAIMS, *rules)(parts)


def _asleep_until(make: Make, concerns: Callable[[Object], bool], *others: Resource) -> Make:
    """Made when the first such pod is there, or the first such object of the other resources."""

    def dormant(parts: Parts) -> Runnable:
        from mews.kube.emulated.controllers.lazy_controller import LazyController

        informers = tuple(parts.informers.of(resource) for resource in (PODS, *others))
        return LazyController(informers, lambda: make(parts), concerns)

    return dormant


def _asleep(make: Make, *resources: Resource) -> Make:
    """Made when the first object of one of the resources is there."""

    def dormant(parts: Parts) -> Runnable:
        from mews.kube.emulated.controllers.lazy_controller import LazyController

        return LazyController(tuple(parts.informers.of(resource) for resource in resources), lambda: make(parts))

    return dormant


CONTROLLERS: Mapping[str, Make] = {
    "node-lifecycle-controller": _nodes,
    "taint-eviction-controller": _taints,
    "pod-garbage-collector-controller": _pod_garbage,
    "garbage-collector-controller": _garbage,
    "namespace-controller": _namespaces,
    "replicaset-controller": _asleep(_replica_sets, REPLICA_SETS),
    "deployment-controller": _asleep(_deployments, DEPLOYMENTS),
    "job-controller": _asleep(_jobs, JOBS),
    "cronjob-controller": _asleep(_cron_jobs, CRON_JOBS),
    "ttl-after-finished-controller": _asleep(_ended_jobs, JOBS),
    "daemonset-controller": _asleep(_daemon_sets, DAEMON_SETS),
    "statefulset-controller": _asleep(_stateful_sets, STATEFUL_SETS),
    "disruption-controller": _asleep(_budgets, DISRUPTION_BUDGETS),
    "endpointslice-controller": _asleep(_slices, SERVICES),
    "endpoints-controller": _asleep(_endpoints, SERVICES),
    "endpointslice-mirroring-controller": _asleep(_mirrored, SERVICES),
    "resourcequota-controller": _asleep(_quotas, RESOURCE_QUOTAS),
    "serviceaccount-controller": _accounts,
    ROOT_CA: _root_ca,
    "ephemeral-volume-controller": _asleep_until(_ephemeral_volumes, brings_ephemeral_volumes),
    "resourceclaim-controller": _asleep_until(_resource_claims, concerns_resource_claims, RESOURCE_CLAIMS),
    DEVICE_TAINTS: _device_taints_once_needed,
    "persistentvolume-binder-controller": _asleep(_volumes, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
    "persistentvolumeclaim-protection-controller": _asleep(_claims_in_use, PERSISTENT_VOLUME_CLAIMS),
    "persistentvolume-protection-controller": _asleep(_volumes_in_use, PERSISTENT_VOLUMES),
    "volumeattributesclass-protection-controller": _asleep(_attributes_classes_in_use, VOLUME_ATTRIBUTES_CLASSES),
    "service-cidr-controller": _asleep(_service_ranges, SERVICE_CIDRS),
    "replicationcontroller-controller": _asleep(_replication_controllers, REPLICATION_CONTROLLERS),
    "horizontal-pod-autoscaler-controller": _asleep(_autoscalers, AUTOSCALERS),
}


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the controllers that run, by wishes as kube-controller-manager's ``--controllers``: ``*`` all, ``name``
    that one, ``-name`` all the same not that one; none of them: none.

    Raises ValueError for a name that is none of ours.
    """
    for asked_for in names:
        if asked_for != ALL and asked_for.removeprefix("-") not in CONTROLLERS:
            raise ValueError(
                f"controller {asked_for!r}: must be * or, with or without -, one of {', '.join(CONTROLLERS)}"
            )
    everything = ALL in names
    return tuple(name for name in CONTROLLERS if name in names or (everything and f"-{name}" not in names))
