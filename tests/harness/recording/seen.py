"""Observations for tests: a small cluster with one chassis, told in seconds from T."""

from mews.harness.recording.observations import ClusterObservations, ObjectSighting, SeenDevice, TableReading
from mews.harness.recording.reduction import reduced
from mews.kube.api.objects import timestamp

T = 1_790_000_000.0
RESOURCE = "falcon.com/gpu"


def a_node(name, gpus, at=T, *, ready=True, resource=RESOURCE):
    status = {
        "allocatable": {"cpu": "8", resource: str(gpus)},
        "capacity": {"cpu": "8", "memory": "16Gi", resource: str(gpus)},
        "conditions": [
            {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": timestamp(at)},
        ],
    }
    obj = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}, "status": status}
    return ObjectSighting(reduced(obj), at)


def raw_pod(name, gpus, created=T, *, node="", phase=None, started=None, resource=RESOURCE, **more):
    limits = {resource: str(gpus)} if gpus else {}
    container = {"name": "main", "image": "registry.test/train:1", "resources": {"limits": limits}}
    spec = {"schedulerName": "kubecomp-scheduler", "containers": [container | more.pop("container", {})]}
    status = {"phase": phase or ("Running" if node else "Pending"), "conditions": []}
    if node:
        spec["nodeName"] = node
        bound = timestamp(created + 1)
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": bound}]
        state = {"running": {"startedAt": timestamp(started if started is not None else created + 2)}}
        status["containerStatuses"] = [{"name": "main", "state": more.pop("state", state)}]
    metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": timestamp(created)}
    metadata |= more.pop("metadata", {})
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec | more, "status": status}


def a_pod(name, gpus, created=T, **more):
    return ObjectSighting(reduced(raw_pod(name, gpus, created, **more)), created + 1)


def a_table(places, at=T, chassis="A"):
    """``places``: device -> port."""
    rows = tuple(SeenDevice(device, f"GPU-{device}", port) for device, port in places.items())
    return TableReading(chassis, rows, ("1", "2"), at)


PLACES = {"000100": "1", "000200": "1", "000300": "2", "000800": "2"}
NODES = (a_node("host-1", 2), a_node("host-2", 2))


def seen(*parts, readings=(), ended=T + 60, **more):
    return ClusterObservations(
        objects=(*NODES, *parts), readings=(a_table(PLACES), *readings), began=T, ended=ended, **more
    )
