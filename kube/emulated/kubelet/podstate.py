"""Pod life as a pure table: from what is to what is done next and to the phase (contract kubelet.md section 10).

``decide``, ``phase_of`` and ``podstatus.status_of`` see one frozen ``PodState``; the worker acts, the status manager
writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import (
    Object,
    all_containers_of,
    containers_of,
    ephemeral_containers_of,
    init_containers_of,
    is_deleting,
    is_terminal,
)
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.probe import WELL, Health


class ContainerWaiting(Struct, frozen=True):
    """Why a container does not run: ``CrashLoopBackOff`` and the like."""

    reason: str
    message: str = ""


class ResizeVerdict(Struct, frozen=True):
    """Why a pod has not the resources that its spec wants, as a condition of its status."""

    condition: str
    reason: str
    message: str


class PodState(Struct, frozen=True):
    """All that the kubelet knows of a pod at one moment.

    ``ip`` is the sandbox's address ("" before the first), ``up`` whether it runs; ``instances`` the starts of each
    container, oldest first; ``health`` what probes say of those that run; ``waiting`` what the last sync found;
    ``ended``: everything is stopped for good;
    ``killed``: reason and message of the kubelet's own decision to end the pod, "" for none; ``resize``: why it has
    not the resources that its spec wants.
    """

    pod: Object
    ip: str = ""
    up: bool = False
    instances: Mapping[str, tuple[ContainerInstance, ...]] = field(default_factory=dict)
    health: Mapping[str, Health] = field(default_factory=dict)
    waiting: Mapping[str, ContainerWaiting] = field(default_factory=dict)
    ended: bool = False
    killed: tuple[str, str] = ("", "")
    resize: ResizeVerdict | None = None

    def latest(self, container: str) -> ContainerInstance | None:
        """Return the container's latest start, or None."""
        starts = self.instances.get(container, ())
        return starts[-1] if starts else None

    def previous(self, container: str) -> ContainerInstance | None:
        """Return the start before the last."""
        starts = self.instances.get(container, ())
        return starts[-2] if len(starts) > 1 else None

    def well(self, container: str) -> Health:
        """Return what is known of a container that may run: neither started nor ready if it does not."""
        latest = self.latest(container)
        return self.health.get(container, WELL) if latest is not None and latest.running else Health(False, False)


class PodPlan(Struct, frozen=True):
    """What to do now: bring up a sandbox, kill containers (name and why, as the event says it), start containers in
    that order, or end the pod."""

    sandbox: bool = False
    kill: tuple[tuple[str, str], ...] = ()
    start: tuple[str, ...] = ()
    end: bool = False


def container_of(pod: Object, name: str) -> Mapping[str, Any]:
    """Return a container of a pod by its name."""
    return next(container for container in all_containers_of(pod) if container["name"] == name)


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """Return an init container that runs beside the main ones."""
    return container.get("restartPolicy") == "Always"


def restarts(pod: Object, container: Mapping[str, Any], exit_code: int, *, init: bool) -> bool:
    """Return whether a container that ended is started again."""
    if is_sidecar(container):
        return True
    policy = pod["spec"].get("restartPolicy", "Always")
    if init:
        return exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def decide(state: PodState) -> PodPlan:
    """Return the next step of a pod.

    ===============================================  ==========================================
    what is                                          what is done
    ===============================================  ==========================================
    deleted, killed, terminal, or nothing left to    end
    run
    no sandbox                                       sandbox
    an ephemeral container never ran                 start it, before all others
    an init container never ran, or is to run again  start it; those after it wait
    a sidecar does not run                           start it
    a sidecar has not passed its startup probe       those after it wait
    a main container never ran, or is to run again   start it
    a container has failed its liveness or startup   kill it, and start it again unless its pod never restarts (a
    probe                                            sidecar always is)
    ===============================================  ==========================================
    """
    if is_deleting(state.pod) or is_terminal(state.pod) or state.killed[0]:
        return PodPlan(end=True)
    if outcome_of(state) in ("Succeeded", "Failed"):
        return PodPlan(end=True)
    if not state.up:
        return PodPlan(sandbox=True)
    plan = _containers(state)
    ephemeral = [str(container["name"]) for container in ephemeral_containers_of(state.pod)]
    new = [name for name in ephemeral if state.latest(name) is None]
    return PodPlan(kill=plan.kill, start=(*new, *plan.start)) if new else plan


def _containers(state: PodState) -> PodPlan:
    kill: list[tuple[str, str]] = []
    start: list[str] = []
    begun = has_begun(state)
    for container in init_containers_of(state.pod):
        name, latest = container["name"], state.latest(container["name"])
        if latest is not None and latest.running:
            health = state.well(name)
            if is_sidecar(container) and health.failed:
                kill.append((name, f"Init container {name} failed {health.failed} probe"))
                start.append(name)
            if not is_sidecar(container) or not (health.started or begun):
                return PodPlan(kill=tuple(kill), start=tuple(start))
            continue
        if latest is not None and not is_sidecar(container) and latest.exit_code == 0:
            continue
        start.append(name)
        if not begun:
            return PodPlan(kill=tuple(kill), start=tuple(start))
        break
    return PodPlan(kill=(*kill, *_failed(state)), start=(*start, *_mains(state)))


def has_begun(state: PodState) -> bool:
    """Return whether a main container was ever started: the pod is past its initialisation."""
    return any(state.latest(container["name"]) is not None for container in containers_of(state.pod))


def _mains(state: PodState) -> Iterator[str]:
    for container in containers_of(state.pod):
        latest = state.latest(container["name"])
        if latest is None:
            due = True
        elif latest.exit_code is None:
            due = bool(state.well(container["name"]).failed) and _again(state.pod)
        else:
            due = restarts(state.pod, container, latest.exit_code, init=False)
        if due:
            yield container["name"]


def _failed(state: PodState) -> Iterator[tuple[str, str]]:
    for container in containers_of(state.pod):
        failed = state.well(container["name"]).failed
        if failed:
            then = ", will be restarted" if _again(state.pod) else ""
            yield container["name"], f"Container {container['name']} failed {failed} probe{then}"


def _again(pod: Object) -> bool:
    return bool(pod["spec"].get("restartPolicy", "Always") != "Never")


def phase_of(state: PodState) -> str:
    """Return the phase that the containers add up to (getPhase of pkg/kubelet/kubelet_pods.go): a pod whose main
    containers have ended is Running until its sidecars have, too (as seen on a kubelet 1.34.2)."""
    phase = outcome_of(state)
    held = phase in ("Succeeded", "Failed") and not state.ended and not state.killed[0] and has_begun(state)
    return "Running" if held and _runs_sidecar(state) else phase


def _runs_sidecar(state: PodState) -> bool:
    latests = (state.latest(container["name"]) for container in init_containers_of(state.pod) if is_sidecar(container))
    return any(latest is not None and latest.running for latest in latests)


def outcome_of(state: PodState) -> str:
    """Return the phase without regard to sidecars: once it is terminal, nothing is left for which they would run."""
    if state.killed[0]:
        return "Failed"
    pod, ended = state.pod, state.ended
    for container in init_containers_of(pod):
        latest = state.latest(container["name"])
        if is_sidecar(container):
            continue
        if latest is None or latest.exit_code is None:
            return "Failed" if ended else "Pending"
        if latest.exit_code != 0:
            return "Pending" if restarts(pod, container, latest.exit_code, init=True) and not ended else "Failed"
    latests = [state.latest(container["name"]) for container in containers_of(pod)]
    if any(latest is None for latest in latests):
        return "Failed" if ended else "Pending"
    codes = [latest.exit_code for latest in latests if latest is not None]
    if any(code is None for code in codes):
        return "Failed" if ended else "Running"
    again = (
        restarts(pod, container, code, init=False)
        for container, code in zip(containers_of(pod), codes, strict=True)
        if code is not None
    )
    if not ended and any(again):
        return "Running"
    return "Succeeded" if not any(codes) else "Failed"
