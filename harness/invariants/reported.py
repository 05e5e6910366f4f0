"""Invariant 76: what is done to a pod or a node is reported by an event on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MappingProxyType

from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, RunState
from mews.kube.system.reported_acts import ReportedActs

_REGISTERED = "RegisteredNode"
_REBOOTED = "Rebooted"
_BOOTS = (_REBOOTED, "NodeReady")
_ACTS = {
    ("DisruptionTarget", "True", "PreemptionByScheduler"): ("Preempted",),
    ("DisruptionTarget", "True", "DeletionByTaintManager"): ("TaintManagerEviction",),
    ("DisruptionTarget", "True", "DeletionByDeviceTaintManager"): ("DeviceTaintManagerEviction",),
    ("Ready", "True", "KubeletReady"): ("NodeReady",),
    ("Ready", "Unknown", "NodeStatusUnknown"): ("NodeNotReady",),
    ("Ready", "False", ""): ("NodeNotReady",),
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"): ("NodeHasSufficientMemory",),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"): ("NodeHasNoDiskPressure",),
    ("PIDPressure", "False", "KubeletHasSufficientPID"): ("NodeHasSufficientPID",),
}
"""Type, status and reason of a condition -> reasons of the events. Kubelets give a reason for a pod that is not ready;
the node lifecycle controller gives none."""


def _condition(line: Line) -> tuple[str, ...]:
    fields = line.fields
    if not line.actor.startswith(("pod/", "node/")):
        return ()
    return _ACTS.get((fields["type"], fields["status"], fields["reason"]), ())


def _made(line: Line) -> tuple[str, ...]:
    return (_REGISTERED,) if line.actor.startswith("node/") else ()


class Reports(ReportedActs):
    """As upstream does, these components report what they do by an event:

    - A scheduler that preempts a pod (preemption.go). Before it deletes the pod, it adds the condition
      DisruptionTarget.
    - A controller that evicts a pod by the taints of its node (taint_eviction.go) or of its devices
      (device_taint_eviction.go).
    - A controller that calls the pods of a silent node not ready (node_lifecycle_controller.go).
    - A controller that has seen a new node (node_lifecycle_controller.go).
    - A kubelet whose node is ready, or has enough of a resource (kubelet_node_status.go).
    - A kubelet whose machine was switched off and on. It reports ``Rebooted`` before its node is ready, and at no other
      time (kubelet_node_status.go)."""

    number = 76
    name = "what is done to a pod or a node is reported by an event on it"
    of_time = True
    events = frozenset(
        {
            ("api", event)
            for event in ("event", "condition", "created", "deleting", "deleted", "phase", "bound", "taints")
        }
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("host", "powered-on"), ("host", "powered-off")}
    )
    acts = MappingProxyType({("api", "condition"): _condition, ("api", "created"): _made})

    def __init__(self) -> None:
        super().__init__()
        self._unregistered: list[Breach] = []
        """Of nodes, until a node's taints are changed: a cluster without that controller reports no node."""
        self._is_tended = False
        self._targets: set[str] = set()
        """Pods that bear the condition DisruptionTarget."""
        self._deleting: dict[str, Line] = {}
        self._rebooted: dict[str, Line] = {}
        """Nodes whose machine was switched on, of which nobody has reported it yet."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in what is done, and what is reported."""
        if line.layer == "host":
            if line.event == "powered-on":
                self._rebooted[f"node/{line.actor.partition('/')[2]}"] = line
            return
        if line.event == "event" and line.fields["reason"] in _BOOTS and not state.bound_s("lag_s"):
            yield from self._boot(line)
        if line.event == "taints" and not line.fields["taints"]:
            self._is_tended = True
        elif line.actor.startswith("pod/"):
            self._pod(line)
        elif line.event == "event" and line.fields["reason"] == "Preempted":
            yield from self._preempted(line, state)
        yield from self._of_controllers(super().on_line(line, state))

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what nobody has reported in its moment."""
        yield from self._of_controllers(super().on_time(t, state))

    def _pod(self, line: Line) -> None:
        if line.event == "condition" and line.fields["type"] == "DisruptionTarget":
            self._targets.add(line.actor)
        elif line.event == "deleting":
            self._deleting[line.actor] = line
        elif line.event in ("created", "deleted"):
            self._targets.discard(line.actor)
            self._deleting.pop(line.actor, None)

    def _boot(self, line: Line) -> Iterator[Breach]:
        node = str(line.fields["object"])
        switched = self._rebooted.pop(node, None)
        if (switched is None) == (line.fields["reason"] == _REBOOTED):
            how = "and was not switched off" if switched is None else "and no event says that it was rebooted"
            what = f"{node} has the event {line.fields['reason']}, {how}"
            yield Breach((node, "boot", str(line.number)), what, line, after=switched)

    def _preempted(self, line: Line, state: RunState) -> Iterator[Breach]:
        pod = str(line.fields["object"])
        deleting = self._deleting.get(pod)
        if deleting is not None and pod not in self._targets and not state.bound_s("lag_s"):
            what = f"{pod} is preempted, and bears no condition DisruptionTarget"
            yield Breach((pod, "target", str(line.number)), what, deleting)

    def _of_controllers(self, found: Iterable[Breach]) -> Iterator[Breach]:
        for breach in found:
            if breach.key[1] == _REGISTERED:
                self._unregistered.append(breach)
            else:
                yield breach
        if self._is_tended and self._unregistered:
            yield from self._unregistered
            self._unregistered = []
