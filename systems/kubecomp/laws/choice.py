"""Equation 1 prefers a node that has enough devices to one that lacks some (contract kubecomp.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, condition_of, is_terminal, node_name_of
from mews.kube.api.pod_requests import pod_amount
from mews.kube.api.quantities import parse, whole
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.policy import Policy

KNOWN_S = 2.0
"""What has been so for this long the scheduler knows."""
ALIKE = 0.05
"""By so much of a node's CPU and memory two nodes may differ and are as loaded: what the default plugins score then
differs by less than equation 1."""
_CONSTRAINTS = ("nodeSelector", "affinity", "topologySpreadConstraints", "resourceClaims")
_FALLS = ("nvml-hidden", "driver-unbound", "function-removed", "link-down", "lost", "xid", "powered-off")
"""After which a node has fewer devices than its kubelet shows."""
_LOADS = {"cpu": parse, "memory": whole}


class _Doubt(Struct, frozen=True):
    """A pod that was made to wait for devices on a node, and the nodes that had enough for it, each with the line by
    which it had them."""

    line: Line
    uid: str
    target: str
    better: Mapping[str, Line]


class EnoughFirst(Invariant[RunState]):
    """Of two nodes that are equally loaded and equally open to a pod, the node with enough announced devices scores
    higher. Each policy of the paper does this, so that nobody waits for devices on the other node. The law judges where
    both nodes have been unchanged for long enough, by pods that ask only for resources."""

    number = 85
    name = "no pod waits for devices while another node has enough"
    of_time = True
    ours_alone = True
    events = (
        BOARD_EVENTS
        | POD_EVENTS
        | {("api", "allocatable"), ("component", "killed"), ("component", "crashed")}
        | {("host", event) for event in _FALLS}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._pools = {node.name: node.pool for node in config.nodes}
        self._judges = not config.faults and config.policy != Policy.NONE
        self._lists: dict[str, Line] = {}
        self._allocatable: dict[str, Line] = {}
        self._reported: list[Line] = []
        self._doubts: list[_Doubt] = []

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what nodes announce and which pods wait."""
        self._board.take(line)
        if not self._judges or state.bound_s("lag_s"):
            return iter(())
        if line.layer in ("component", "host"):
            self._lists.pop(line.actor.partition("/")[2], None)  # until its kubelet shows what is there by now
        elif line.layer == "kubelet" and line.event == "devices" and line.fields["resource"] == self._resource:
            self._lists[line.actor.partition("/")[2]] = line
        elif line.event == "allocatable" and line.fields["resource"] == self._resource:
            self._allocatable[line.actor.partition("/")[2]] = line
        elif line.event == "annotations":
            pod = self._board.pods.get(line.actor)
            if pod is not None and pod.noted is line and pod.target and pod.demand > 0:
                self._reported.append(line)
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Once the moment is over: who was bound in it counts."""
        if not self._reported or t <= self._reported[0].t:
            return iter(())
        for line in self._reported:
            pod = self._board.pods.get(line.actor)
            if pod is not None and pod.noted is line and pod.bound is None and pod.ended is None:
                asked = int(pod.requests.get(self._resource, 0))
                better = {node: list_ for node, list_ in self._with(asked, line) if node != pod.target}
                if better:
                    self._doubts.append(_Doubt(line, pod.uid, pod.target, better))
        self._reported.clear()
        return iter(())

    def _with(self, asked: int, line: Line) -> Iterator[tuple[str, Line]]:
        """Nodes that have had so many devices free for long enough."""
        withdrawn = {each.node for each in self._board.all_standing()}
        for node, announced in self._lists.items():
            shown = self._allocatable.get(node)
            if (
                shown is None
                or node in withdrawn
                or not self._has_pool(node, asked, line)
                or line.t - max(announced.t, shown.t) <= KNOWN_S
            ):
                continue
            there = min(len(announced.fields["healthy"]), int(shown.fields["new"] or 0))
            if there - self._taken(node, line) >= asked > 0:
                yield node, announced

    def _has_pool(self, node: str, asked: int, line: Line) -> bool:
        """Return whether the node's pool surely has so many free: pods of other nodes may claim what this one shows."""
        members = [name for name, pool in self._pools.items() if pool == self._pools.get(node)]
        shown = sum(len(self._lists[name].fields["healthy"]) for name in members if name in self._lists)
        return shown - sum(self._taken(name, line) for name in members) >= asked

    def _taken(self, node: str, line: Line) -> int:
        """Return what pods ask that are there, are awaited there, or were until a moment ago."""
        found = 0
        for actor, pod in self._board.pods.items():
            is_over = pod.ended is not None and line.t - pod.ended.t > KNOWN_S
            if actor != line.actor and node in (pod.node, pod.target) and not is_over:
                found += int(pod.requests.get(self._resource, 0))
        return found

    def on_objects(self, t: float, objects: ClusterObjects, state: RunState) -> Iterator[Breach]:
        """Judge with what pods and nodes say of themselves."""
        doubts, self._doubts = self._doubts, []
        for doubt in doubts:
            pod = objects.pods.get(doubt.line.actor.removeprefix("pod/"))
            target = objects.nodes.get(doubt.target)
            if pod is None or target is None or any((pod.get("spec") or {}).get(name) for name in _CONSTRAINTS):
                continue
            for node, announced in sorted(doubt.better.items()):
                other = objects.nodes.get(node)
                if other is not None and _is_open(other) and _is_open(target) and _alike(pod, other, target, objects):
                    what = f"{doubt.line.actor} waits for devices on {doubt.target}, and {node} has enough for it"
                    yield Breach((doubt.uid, str(doubt.line.number)), what, doubt.line, after=announced)
                    break


def _is_open(node: Object) -> bool:
    spec = node.get("spec") or {}
    ready = condition_of(node, "Ready") or {}
    return ready.get("status") == "True" and not spec.get("unschedulable") and not spec.get("taints")


def _alike(pod: Object, one: Object, other: Object, objects: ClusterObjects) -> bool:
    """Return whether both are as loaded by other pods, and the pod fits the first one."""
    for resource, count in _LOADS.items():
        loads = [_load(node, pod, resource, count, objects) for node in (one, other)]
        if abs(loads[0] - loads[1]) > ALIKE or loads[0] > 0.9:
            return False
    return True


def _load(node: Object, pod: Object, resource: str, count: Any, objects: ClusterObjects) -> float:
    """Return that of what the node has of it, the part that its pods would ask for with that one more."""
    name = node["metadata"]["name"]
    there = [each for each in objects.pods.values() if node_name_of(each) == name and not is_terminal(each)]
    asked = sum(float(pod_amount(each, resource, count)) for each in (*there, pod))
    has = float(count(((node.get("status") or {}).get("allocatable") or {}).get(resource, 0)))
    return asked / has if has else 1.0
