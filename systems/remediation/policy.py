"""What is to be done, decided from what is known. Pure.

After NVSentinel's published design (docs/OVERVIEW.md and docs/configuration of github.com/NVIDIA/NVSentinel): fault
quarantine cordons and limits how many nodes, the node drainer sends pods away by mode of their namespace, fault
remediation resets the GPU, and the node is given back once all is well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import Object, annotations_of, is_terminal, namespace_of, uid_of
from mews.systems.remediation.config import APPLICATION_XIDS, DEVICE, NODE, RemediationConfig
from mews.systems.remediation.host_gpus import HostGpu, LoggedXid, last_seen, unseen, uuid_at
from mews.systems.remediation.records import Cordon, Incident, IncidentState, NodeGpus, NodeWork, incident_key

LOST = "fallen off the bus"
_MIRROR = "kubernetes.io/config.mirror"


# ------------------------------------------------------------------------------------------------------------ the agent


class Observed(Struct, frozen=True):
    """``struck``: UUID -> an XID since the last look, of GPUs that have an incident already."""

    gpus: NodeGpus
    struck: Mapping[str, int]


def observed(
    before: NodeGpus,
    gpus: Mapping[str, HostGpu],
    *,
    logged: Collection[LoggedXid],
    functions: Collection[str],
    now_s: float,
) -> Observed:
    """Return what the agent says after a look at its host: new incidents, and none of a GPU whose PCI function is gone.
    XIDs from before the very first look are somebody else's."""
    new, seen = ([], last_seen(logged)) if before.seen is None else unseen(logged, before.seen)
    incidents = {uuid: each for uuid, each in before.incidents.items() if each.bdf in functions}
    struck = {}
    for each in new:
        uuid = uuid_at(gpus, each.place)
        if uuid is None or each.xid in APPLICATION_XIDS:
            continue
        if uuid in incidents:
            struck[uuid] = each.xid
        else:
            incidents[uuid] = _begun(before, uuid, gpus[uuid], f"XID {each.xid}", now_s)
    for uuid, gpu in gpus.items():
        if not gpu.answers and uuid not in incidents:
            incidents[uuid] = _begun(before, uuid, gpu, LOST, now_s)
    there = gpus.keys() | incidents.keys()
    mended = {uuid: number for uuid, number in before.mended.items() if uuid in there}
    return Observed(NodeGpus(seen, dict(sorted(incidents.items())), mended), struck)


def with_users(found: Observed, users: Mapping[str, Sequence[str]]) -> Observed:
    """Return the same with the pods that use each broken GPU, by its address. Who has been seen once stays: what a
    pod's process has closed its pod may still hold, and open again."""
    incidents = found.gpus.incidents.items()
    used = {uuid: replace(each, pods=tuple(sorted({*each.pods, *users.get(each.bdf, ())}))) for uuid, each in incidents}
    return replace(found, gpus=replace(found.gpus, incidents=used))


def _begun(before: NodeGpus, uuid: str, gpu: HostGpu, cause: str, now_s: float) -> Incident:
    return Incident(before.mended.get(uuid, 0) + 1, IncidentState.BROKEN, cause, now_s, gpu.bdf)


def changed(gpus: NodeGpus, uuid: str, state: IncidentState, reason: str = "") -> NodeGpus:
    """Return the same with that state of one of its incidents."""
    incident = replace(gpus.incidents[uuid], state=state, reason=reason)
    return replace(gpus, incidents={**gpus.incidents, uuid: incident})


def mended(gpus: NodeGpus, uuid: str) -> NodeGpus:
    """Return the same with one of its incidents over."""
    number = gpus.incidents[uuid].number
    incidents = {other: each for other, each in gpus.incidents.items() if other != uuid}
    return replace(gpus, incidents=incidents, mended={**gpus.mended, uuid: number})


# ------------------------------------------------------------------------------------------------------- the controller


class NodeStep(Struct, frozen=True):
    """What is to be written onto a node: the work, and whether it takes pods (None: as it does). ``held``: nothing is,
    for as many nodes as may be are worked on."""

    work: NodeWork | None
    unschedulable: bool | None = None
    held: bool = False


def next_step(
    config: RemediationConfig,
    gpus: NodeGpus,
    work: NodeWork | None,
    *,
    unschedulable: bool,
    gone: Collection[str],
    may_begin: bool,
) -> NodeStep:
    """``unschedulable``: the node is; ``gone``: the UUIDs of broken GPUs from which all have gone who have to;
    ``may_begin``: fewer nodes are worked on than may be."""
    keys = {incident_key(uuid, each.number) for uuid, each in gpus.open.items()}
    if not keys:
        return NodeStep(None, False if work is not None and work.cordon is Cordon.OURS and unschedulable else None)
    if work is None:
        if not may_begin:
            return NodeStep(None, held=True)
        cordon = Cordon.NONE if config.scope == DEVICE else Cordon.FOREIGN if unschedulable else Cordon.OURS
        return NodeStep(NodeWork(tuple(sorted(keys)), cordon), True if cordon is Cordon.OURS else None)
    cordon, wanted = work.cordon, None
    if cordon is Cordon.OURS and not unschedulable:
        cordon = Cordon.BY_HAND
    if cordon is Cordon.BY_HAND and not keys <= set(work.incidents):
        cordon, wanted = Cordon.OURS, True
    reset = {uuid: each.number for uuid, each in gpus.open.items() if uuid in gone or uuid in work.reset}
    return NodeStep(NodeWork(tuple(sorted({*work.incidents, *keys})), cordon, reset), wanted)


def to_go(config: RemediationConfig, incident: Incident, on_node: Iterable[Object]) -> list[Object]:
    """Return the pods of the node that have to go for an incident; those that end already are among them until they
    have."""
    pods = set(incident.pods)
    return [
        pod
        for pod in on_node
        if (config.drain == NODE or uid_of(pod) in pods) and not is_terminal(pod) and not stays(config, pod)
    ]


def stays(config: RemediationConfig, pod: Object) -> bool:
    """Return whether nobody sends this pod away: of a namespace that is kept, of a DaemonSet (it would be back at
    once), or of the kubelet's own files."""
    owners = pod["metadata"].get("ownerReferences") or ()
    by_daemon_set = any(owner.get("kind") == "DaemonSet" and owner.get("controller") for owner in owners)
    return namespace_of(pod) in config.kept or by_daemon_set or _MIRROR in annotations_of(pod)
