"""Drawn objects with drawn statuses, as rows of tables: what ``kubectl get`` shows of a pod in no usual state."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.differential.model import TABLE, Sent

Body = dict[str, Any]

_EARLY, _LATE = "2019-01-01T00:00:00Z", "2020-06-01T10:00:00Z"
_APPS = "/apis/apps/v1/namespaces/default"
_WAITING = ("CrashLoopBackOff", "ContainerCreating", "PodInitializing", "ImagePullBackOff")
_COUNTS = {
    "deployments": ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"),
    "replicasets": ("replicas", "readyReplicas", "availableReplicas"),
    "statefulsets": ("replicas", "readyReplicas", "availableReplicas"),
    "daemonsets": (
        "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
        "numberMisscheduled",
    ),
}  # fmt: skip


class Draw(random.Random):
    """Chance with a word for how often."""

    def often(self, chance: float) -> bool:
        return self.random() < chance


def cases(seeds: Iterable[int]) -> tuple[Sent, ...]:
    """An object of each seed: made, given its status, perhaps deleted, and shown."""
    return tuple(case for seed in seeds for case in _of(seed))


def _of(seed: int) -> Iterator[Sent]:
    rng = Draw(f"row {seed}")
    folder, spec, status = rng.choice(_KINDS)(rng)
    name = f"row-{seed}"
    metadata: Body = {"name": name}
    if rng.often(0.25):
        metadata["finalizers"] = ["example.com/stays"]
    if folder.endswith("/nodes"):
        labels = ("node-role.kubernetes.io/control-plane", "kubernetes.io/role", "node-role.kubernetes.io/a")
        metadata["labels"] = {label: rng.choice(("", "x")) for label in labels if rng.often(0.3)}
    yield Sent(f"{seed}: make", "POST", folder, {"metadata": metadata, "spec": spec})
    where = f"{folder}/{name}"
    if status is not None:
        yield Sent(f"{seed}: status", "PUT", f"{where}/status", edits=(where, _with_status(status)))
    if "finalizers" in metadata:
        yield Sent(f"{seed}: delete", "DELETE", where)
    yield Sent(f"{seed}: show", "GET", where, accept=TABLE)


def _with_status(status: Body) -> Callable[[Any], Any]:
    def changed(found: Any) -> Any:
        return {**found, "status": status}

    return changed


# Pods


def _pod(rng: Draw) -> tuple[str, Body, Body]:
    mains, inits = (tuple(f"{word}{n}" for n in range(rng.choice(counts))) for word, counts in _OF_A_POD.items())
    spec: Body = {"containers": [{"name": name, "image": "x"} for name in mains]}
    spec["initContainers"] = [
        {"name": name, "image": "x", **({"restartPolicy": "Always"} if rng.often(0.4) else {})} for name in inits
    ]
    if rng.often(0.3):
        spec["readinessGates"] = [{"conditionType": "example.com/gate"}]
    if rng.often(0.2):
        spec["schedulingGates"] = [{"name": "example.com/waits"}]
    elif rng.often(0.4):
        spec["nodeName"] = "somewhere"
    status: Body = {
        "phase": rng.choice(("Pending", "Running", "Succeeded", "Failed", "Unknown")),
        "conditions": _conditions(rng, ("PodScheduled", "Ready", "example.com/gate", "Initialized")),
        "containerStatuses": [_container(rng, name) for name in mains if rng.often(0.9)],
        "initContainerStatuses": [_container(rng, name) for name in inits if rng.often(0.9)],
    }
    if rng.often(0.2):
        status["reason"] = rng.choice(("Evicted", "NodeLost", "NodeAffinity"))
    if rng.often(0.6):
        status |= {"podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}
    if rng.often(0.2):
        status["nominatedNodeName"] = "elsewhere"
    return "/api/v1/namespaces/default/pods", spec, status


_OF_A_POD = {"main": (1, 1, 2, 3), "init": (0, 0, 1, 2)}


def _conditions(rng: Draw, kinds: Iterable[str]) -> list[Body]:
    words = ("A", "SchedulingGated", "PodFailed")
    return [
        {
            "type": kind,
            "status": rng.choice(("True", "False", "Unknown")),
            "reason": rng.choice(words),
            "lastTransitionTime": _EARLY,
        }
        for kind in kinds
        if rng.often(0.5)
    ]


def _container(rng: Draw, name: str) -> Body:
    found: Body = {"name": name, "image": "x", "imageID": "", "ready": rng.often(0.5), "state": _state(rng)}
    found["restartCount"] = rng.choice((0, 0, 1, 7))
    if rng.often(0.4):
        found["lastState"] = {"terminated": {"exitCode": 1, "startedAt": _EARLY, "finishedAt": _LATE}}
    if rng.often(0.4):
        found["started"] = rng.often(0.6)
    return found


def _state(rng: Draw) -> Body:
    kind = rng.choice(("waiting", "running", "terminated", ""))
    if kind == "waiting":
        return {"waiting": {"reason": rng.choice(_WAITING)} if rng.often(0.9) else {}}
    if kind == "running":
        return {"running": {"startedAt": _EARLY}}
    if not kind:
        return {}
    ended: Body = {"exitCode": rng.choice((0, 0, 1, 137))}
    if rng.often(0.6):
        ended["reason"] = rng.choice(("Error", "Completed", "OOMKilled"))
    if rng.often(0.2):
        ended["signal"] = 9
    return {"terminated": ended}


# Other kinds


def _node(rng: Draw) -> tuple[str, Body, Body]:
    words = (
        "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
        "kubeProxyVersion", "operatingSystem", "architecture",
    )  # fmt: skip
    kinds = ("InternalIP", "ExternalIP", "Hostname")
    status = {
        "conditions": _conditions(rng, ("Ready", "MemoryPressure")),
        "addresses": [{"type": kind, "address": "1.1.1.1"} for kind in kinds if rng.often(0.5)],
        "nodeInfo": {word: rng.choice(("v1", "", "x y")) for word in words},
    }
    return "/api/v1/nodes", {"unschedulable": True} if rng.often(0.3) else {}, status


def _job(rng: Draw) -> tuple[str, Body, Body]:
    spec: Body = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}
    drawn: Body = {"completions": rng.choice((1, 3)), "parallelism": rng.choice((0, 1, 5)), "suspend": True}
    spec |= {name: value for name, value in drawn.items() if rng.often(0.4)}
    counts: Body = {"startTime": _EARLY, "succeeded": 1, "active": 1}
    status = {name: value for name, value in counts.items() if rng.often(0.4)}
    return "/apis/batch/v1/namespaces/default/jobs", spec, status


def _workload(rng: Draw) -> tuple[str, Body, Body]:
    plural = rng.choice(sorted(_COUNTS))
    pod: Body = {"containers": [{"name": f"c{n}", "image": f"i{n}"} for n in range(rng.choice((1, 2)))]}
    spec: Body = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod},
    }
    if plural == "daemonsets" and rng.often(0.4):
        pod["nodeSelector"] = {"x": "y", "a": "b"}
    elif plural != "daemonsets" and rng.often(0.6):
        spec["replicas"] = rng.choice((0, 2, 5))
    counts = sorted((rng.choice((0, 1, 2)) for _ in _COUNTS[plural]), reverse=True)
    return f"{_APPS}/{plural}", spec, dict(zip(_COUNTS[plural], counts, strict=True))


def _volume(rng: Draw) -> tuple[str, Body, Body]:
    modes = rng.choice((["ReadWriteOncePod"], ["ReadWriteMany", "ReadOnlyMany"], ["ReadWriteOnce"]))
    spec: Body = {"capacity": {"storage": "1Gi"}, "accessModes": modes, "hostPath": {"path": "/x"}}
    drawn: Body = {"storageClassName": "sc", "claimRef": {"namespace": "a", "name": "b"}, "volumeMode": "Block"}
    spec |= {name: value for name, value in drawn.items() if rng.often(0.4)}
    phase = rng.choice(("Available", "Bound", "Released", "Failed", "Pending"))
    return "/api/v1/persistentvolumes", spec, {"phase": phase, "reason": rng.choice(("", "why"))}


def _ingress(rng: Draw) -> tuple[str, Body, Body | None]:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    paths = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    rules = [
        {"http": paths, **({"host": f"h{n}.example.com"} if rng.often(0.7) else {})}
        for n in range(rng.choice((1, 2, 3, 4, 5)))
    ]
    drawn: Body = {"tls": [{"hosts": ["a.b"]}], "ingressClassName": "c", "defaultBackend": backend}
    spec = {"rules": rules, **{name: value for name, value in drawn.items() if rng.often(0.4)}}
    status = {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}]}} if rng.often(0.5) else None
    return "/apis/networking.k8s.io/v1/namespaces/default/ingresses", spec, status


_KINDS: tuple[Callable[[Draw], tuple[str, Body, Body | None]], ...] = (
    *(_pod, _pod, _pod, _pod),
    *(_node, _job, _workload, _workload, _volume, _ingress),
)
