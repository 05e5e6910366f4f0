"""How ``kubectl get pods`` sums up a pod in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, condition_of, is_terminal
from mews.kube.emulated.core.tables.cells import Row, none_if_empty
from mews.kube.emulated.core.tables.durations import age

Status = Mapping[str, Any]


class _Summary(Struct):
    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""
    of_sidecars: _Summary | None = None

    def restarted(self, container: Status) -> None:
        self.restarts += container.get("restartCount", 0)
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt")
        if ended:
            self.last_restart = max(self.last_restart, ended)


def cells(pod: Object, now_s: float) -> Row:
    """Return the row of a pod."""
    spec, status = pod["spec"], pod.get("status") or {}
    summary = _summarise(pod)
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    total = len(spec.get("containers") or ()) + len(sidecars)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({age(summary.last_restart, now_s)} ago)"
    addresses = status.get("podIPs") or []
    return [
        pod["metadata"]["name"],
        f"{summary.ready}/{total}",
        summary.reason,
        restarts,
        age(pod["metadata"].get("creationTimestamp"), now_s),
        none_if_empty(addresses[0]["ip"] if addresses else status.get("podIP")),
        none_if_empty(spec.get("nodeName")),
        none_if_empty(status.get("nominatedNodeName")),
        _gates(pod),
    ]


def _summarise(pod: Object) -> _Summary:
    status = pod.get("status") or {}
    summary = _Summary(status.get("reason") or status.get("phase") or "")
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    initializing = _sum_up_init(pod, summary)
    if not initializing or _is_true(pod, "Initialized"):
        former = summary.of_sidecars or _Summary("")
        summary.restarts, summary.last_restart = former.restarts, former.last_restart
        _sum_up_main(pod, summary)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif not is_terminal(pod):
            summary.reason = "Terminating"
    return summary


def _sum_up_init(pod: Object, summary: _Summary) -> bool:
    """Return whether the pod is still initializing."""
    specs = pod["spec"].get("initContainers") or []
    sidecars = {c["name"] for c in specs if c.get("restartPolicy") == "Always"}
    for index, container in enumerate((pod.get("status") or {}).get("initContainerStatuses") or ()):
        summary.restarted(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            summary.of_sidecars = summary.of_sidecars or _Summary("")
            summary.of_sidecars.restarted(container)
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if is_sidecar and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            summary.reason = f"Init:{_ended(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{len(specs)}"
        return True
    return False


def _ended(terminated: Status) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _sum_up_main(pod: Object, summary: _Summary) -> None:
    running = False
    for container in reversed((pod.get("status") or {}).get("containerStatuses") or []):
        summary.restarted(container)
        state = container.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            summary.reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            summary.reason = _ended(state["terminated"])
        elif container.get("ready") and state.get("running") is not None:
            running = True
            summary.ready += 1
    if summary.reason == "Completed" and running:
        summary.reason = "Running" if _is_true(pod, "Ready") else "NotReady"


def _is_true(pod: Object, kind: str) -> bool:
    condition = condition_of(pod, kind)
    return condition is not None and condition.get("status") == "True"


def _gates(pod: Object) -> str:
    gates = pod["spec"].get("readinessGates") or []
    if not gates:
        return "<none>"
    return f"{sum(_is_true(pod, gate['conditionType']) for gate in gates)}/{len(gates)}"


def conditions(pod: Object) -> list[dict[str, Any]]:
    """Row conditions: finished pods are Completed."""
    if not is_terminal(pod):
        return []
    phase = pod["status"]["phase"]
    text = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": text}]
