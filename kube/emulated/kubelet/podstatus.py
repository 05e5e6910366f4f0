"""What a pod's status says, from its state alone (contract kubelet.md sections 4 and 10). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import (
    Object,
    containers_of,
    ephemeral_containers_of,
    init_containers_of,
    is_deleting,
    is_terminal,
    timestamp,
)
from mews.kube.emulated.kubelet.container_resources import resources_now
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.podstate import (
    ContainerWaiting,
    PodState,
    ResizeVerdict,
    has_begun,
    is_sidecar,
    phase_of,
)

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
"""The kubelet's conditions, in the order in which it writes them."""
KUBELET_CONDITIONS = (*OWN_CONDITIONS, "PodResizePending", "PodResizeInProgress")
"""These, and those that it writes while they hold only."""


def status_of(state: PodState, *, now: float, host_ip: str, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status to publish; ``before`` is the last one. A terminal phase is held back until everything is
    stopped.

    Conditions that are not the kubelet's (DisruptionTarget) are kept, and so is a terminal phase that the API shows,
    with its reason: a pod does not leave it (generateAPIPodStatus of pkg/kubelet/kubelet_pods.go).
    """
    pod, generation = state.pod, state.pod["metadata"].get("generation", 1)
    theirs = pod["status"] if is_terminal(pod) else {}
    phase = theirs.get("phase") or phase_of(state)
    terminal = phase in ("Succeeded", "Failed")
    published = before.get("phase", "Pending") if terminal and not state.ended and not theirs else phase
    status: dict[str, Any] = {"observedGeneration": generation, "phase": published}
    if state.killed[0] and state.ended:
        status["reason"], status["message"] = state.killed
    status |= {key: theirs[key] for key in ("reason", "message") if theirs.get(key)}
    status["conditions"] = _conditions(state, phase, now=now, before=before, generation=generation)
    status["hostIP"], status["hostIPs"] = host_ip, [{"ip": host_ip}]
    if state.ip:
        status["podIP"], status["podIPs"] = state.ip, [{"ip": state.ip}]
    status["startTime"] = before.get("startTime") or timestamp(now)
    inits = [_container(state, container, init=True) for container in init_containers_of(pod)]
    if inits:
        status["initContainerStatuses"] = inits
    mains = [_container(state, container, init=False) for container in containers_of(pod)]
    status["containerStatuses"] = sorted(mains, key=lambda entry: str(entry["name"]))
    ephemeral = [_ephemeral(state, container) for container in ephemeral_containers_of(pod)]
    if ephemeral:
        status["ephemeralContainerStatuses"] = ephemeral
    status["qosClass"] = before.get("qosClass", "BestEffort")
    return status


def rejected_status(pod: Object, reason: str, message: str, *, now: float, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a pod that is refused for good: no conditions, no containers, no address (section 4)."""
    return {
        "phase": "Failed",
        "reason": reason,
        "message": message,
        "startTime": before.get("startTime") or timestamp(now),
        "qosClass": before.get("qosClass", "BestEffort"),
        "observedGeneration": pod["metadata"].get("generation", 1),
        "conditions": [entry for entry in before.get("conditions") or () if entry["type"] not in KUBELET_CONDITIONS],
    }


def _conditions(
    state: PodState, phase: str, *, now: float, before: Mapping[str, Any], generation: int
) -> list[dict[str, Any]]:
    old = {entry["type"]: entry for entry in before.get("conditions") or ()}
    verdicts = {
        "PodReadyToStartContainers": (state.up, "", ""),
        "Initialized": _initialized(state, phase),
        "Ready": _with_gates(state.pod, _ready(state, phase)),
        "ContainersReady": _ready(state, phase),
        "PodScheduled": (True, "", ""),
    }
    conditions: list[dict[str, Any]] = []
    for kind in OWN_CONDITIONS:
        holds, reason, message = verdicts[kind]
        status = "True" if holds else "False"
        known = old.get(kind, {})
        since = known["lastTransitionTime"] if known.get("status") == status else timestamp(now)
        entry: dict[str, Any] = {"type": kind, "observedGeneration": generation, "status": status}
        entry["lastProbeTime"], entry["lastTransitionTime"] = None, since
        if reason:
            entry["reason"] = reason
        if message:
            entry["message"] = message
        conditions.append(entry)
    others = [entry for kind, entry in old.items() if kind not in KUBELET_CONDITIONS]
    return others + _resize(state.resize, old, now=now, generation=generation) + conditions


def _resize(
    verdict: ResizeVerdict | None, old: Mapping[str, Mapping[str, Any]], *, now: float, generation: int
) -> list[dict[str, Any]]:
    if verdict is None:
        return []
    known = old.get(verdict.condition, {})
    since = known["lastTransitionTime"] if known.get("reason") == verdict.reason else timestamp(now)
    entry = {"type": verdict.condition, "observedGeneration": generation, "status": "True", "lastProbeTime": since}
    return [entry | {"lastTransitionTime": since, "reason": verdict.reason, "message": verdict.message}]


def _initialized(state: PodState, phase: str) -> tuple[bool, str, str]:
    if phase == "Succeeded":
        return True, "PodCompleted", ""
    incomplete = []
    for container in init_containers_of(state.pod):
        latest = state.latest(container["name"])
        done = state.well(container["name"]).started if is_sidecar(container) else latest and latest.exit_code == 0
        if not done:
            incomplete.append(container["name"])
    if incomplete and not has_begun(state):
        return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"
    return True, "", ""


def _ready(state: PodState, phase: str) -> tuple[bool, str, str]:
    if phase in ("Succeeded", "Failed"):
        return False, "PodCompleted" if phase == "Succeeded" else "PodFailed", ""
    counted = [container for container in init_containers_of(state.pod) if is_sidecar(container)]
    both = (*counted, *containers_of(state.pod))
    unready = [container["name"] for container in both if not state.well(container["name"]).ready]
    if unready:
        return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    return True, "", ""


def gates_of(pod: Object) -> list[tuple[str, str]]:
    """Return the pod's readiness gates, each with the status of its condition; "" where there is none."""
    conditions = {entry["type"]: entry["status"] for entry in (pod.get("status") or {}).get("conditions") or ()}
    gates = [str(gate["conditionType"]) for gate in pod["spec"].get("readinessGates") or ()]
    return [(gate, conditions.get(gate, "")) for gate in gates]


def _with_gates(pod: Object, ready: tuple[bool, str, str]) -> tuple[bool, str, str]:
    """Return a pod whose containers are ready is ready when its gates are open, too
    (pkg/kubelet/status/generate.go)."""
    if not ready[0]:
        return ready
    closed = [
        f'the status of pod readiness gate "{gate}" is not "True", but {status}'
        if status
        else f'corresponding condition of pod readiness gate "{gate}" does not exist.'
        for gate, status in gates_of(pod)
        if status != "True"
    ]
    return (False, "ReadinessGatesNotReady", ", ".join(closed)) if closed else ready


def _container(state: PodState, container: Mapping[str, Any], *, init: bool) -> dict[str, Any]:
    name, image = container["name"], container.get("image", "")
    latest, previous, waits = state.latest(name), state.previous(name), state.waiting.get(name)
    entry: dict[str, Any] = {"name": name, "state": {}, "lastState": {}, "ready": False, "restartCount": 0}
    entry |= {"image": image, "imageID": "", "started": False}
    if latest is None:
        entry["state"] = _never_started(state, waits, is_missing=_is_missing(state, name, init=init))
    else:
        entry["state"] = {"running": {"startedAt": timestamp(latest.started_at)}} if latest.running else _ended(latest)
        if waits is not None and not latest.running and not state.ended and not is_deleting(state.pod):
            entry["state"], entry["lastState"] = {"waiting": _reason(waits)}, _ended(latest)
        elif previous is not None:
            entry["lastState"] = _ended(previous)
        plain_init = init and not is_sidecar(container)
        health = state.well(name)
        entry["ready"] = latest.exit_code == 0 if plain_init else health.ready
        entry["restartCount"], entry["started"] = latest.attempt, health.started
        entry["imageID"], entry["containerID"] = image_id(image), f"containerd://{latest.id}"
        resources = resources_now(container, latest)
        if resources.get("requests"):
            entry["allocatedResources"] = dict(resources["requests"])
        entry["resources"] = {key: dict(resources[key]) for key in ("limits", "requests") if resources.get(key)}
    mounts = [_mount(mount) for mount in container.get("volumeMounts") or ()]
    if mounts:
        entry["volumeMounts"] = mounts
    return entry


def _ephemeral(state: PodState, container: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing waits for an ephemeral container: it is never ready, and nobody says that it has started."""
    entry = _container(state, container, init=False)
    del entry["started"]
    return {**entry, "ready": False}


def _is_missing(state: PodState, name: str, *, init: bool) -> bool:
    """Return whether a container that never started should have, now that all has ended: a main one of a pod that was
    initialized, an init one before another that started, or the first (pkg/kubelet/status/status_manager.go)."""
    inits = [str(container["name"]) for container in init_containers_of(state.pod)]
    started = [each for each in inits if state.latest(each) is not None]
    if init:
        return inits.index(name) <= (inits.index(started[-1]) if started else 0)
    last = state.latest(inits[-1]) if inits else None
    return not inits or has_begun(state) or (last is not None and last.exit_code == 0)


def _never_started(state: PodState, waits: ContainerWaiting | None, *, is_missing: bool) -> dict[str, Any]:
    if state.ended and is_missing:
        message = "The container could not be located when the pod was terminated"
        return {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": message}}
    usual = "PodInitializing" if state.pod["spec"].get("initContainers") else "ContainerCreating"
    return {"waiting": _reason(waits or ContainerWaiting(usual))}


def _reason(waits: ContainerWaiting) -> dict[str, str]:
    return {"reason": waits.reason, "message": waits.message} if waits.message else {"reason": waits.reason}


def _ended(instance: ContainerInstance) -> dict[str, Any]:
    assert instance.finished_at is not None
    message = {"message": instance.message} if instance.message else {}
    return {
        "terminated": {
            "exitCode": instance.exit_code,
            "reason": instance.reason or ("Completed" if instance.exit_code == 0 else "Error"),
            **message,
            "startedAt": timestamp(instance.started_at),
            "finishedAt": timestamp(instance.finished_at),
            "containerID": f"containerd://{instance.id}",
        }
    }


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"name": mount["name"], "mountPath": mount["mountPath"]}
    return {**shown, "readOnly": True, "recursiveReadOnly": "Disabled"} if mount.get("readOnly") else shown


def image_id(image: str) -> str:
    """Return a digest of an image, made from its name alone."""
    return f"docker.io/library/import-mews@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
