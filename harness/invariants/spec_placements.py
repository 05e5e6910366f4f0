"""Invariant 1005: a pod is bound to a node that its own words, and those of the pods there, allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.scheduled import amounts_of, is_selected, takes
from mews.harness.journal import Line
from mews.kube.api.objects import (
    Object,
    containers_of,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
)
from mews.kube.api.quantities import parse
from mews.kube.api.selectors import match_expressions
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

SEEN_S = 1.0
"""What changed so lately a scheduler may not have seen."""
_COUNTED = ("cpu", "memory", "pods")
"""Resources of every node; law 25 judges the others."""
_NODES = ("taints", "unschedulable", "allocatable", "deleted")


class _Bound(Struct):
    """A pod that was bound, and whether what it was bound by is judged already."""

    line: Line
    pod: str
    is_judged: bool = False


class SpecPlacements(Invariant[ObservedState]):
    """The law judges each pod when one of the schedulers that run here binds it. The node has the labels that the
    pod selects, and no taint that it does not tolerate. What the pods there ask of CPU, memory and pods stays within
    what the node offers. No pod has its host port. Required anti-affinity holds, its own and that of pods that were
    bound before. Constraints of topology spread that forbid scheduling (``DoNotSchedule``) hold. Its resource claims
    are reserved for it. These are the filters of kube-scheduler's default plugins. The law does not judge terms with a
    namespace selector, nor a node that has just changed."""

    number = 1005
    name = "a pod is bound to a node that its own words, and those of the pods there, allow"
    ours_alone = True
    events = frozenset(
        {("api", event) for event in ("created", "bound", "deleted", "phase", "claim-reserved", "claim-freed", *_NODES)}
    )

    def __init__(self) -> None:
        self._waiting: set[str] = set()
        """Pods (uid) that came without a node, for one of our schedulers."""
        self._bound: dict[str, int] = {}
        """By uid, the number of the line by which a pod was bound."""
        self._fresh: dict[str, _Bound] = {}
        self._reserved: dict[str, frozenset[str]] = {}
        self._changed_s: dict[str, float] = {}
        """When a node changed last; "" for a pod that went."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Take in who is bound, and to whom claims are reserved."""
        if line.event == "claim-reserved":
            self._reserved[line.fields["claim"]] = frozenset(line.fields["pods"])
        elif line.actor.startswith("node/"):
            self._changed_s[line.actor.partition("/")[2]] = line.t
        elif line.actor.startswith("pod/"):
            self._pod(line, str(line.fields.get("uid")), state)
        return iter(())

    def _pod(self, line: Line, uid: str, state: ObservedState) -> None:
        if line.event == "created":
            if not line.fields.get("node") and line.fields.get("scheduler") in state.systems.schedulers:
                self._waiting.add(uid)
        elif line.event == "bound":
            self._bound[uid] = line.number
            if uid in self._waiting:
                self._waiting.discard(uid)
                self._fresh[uid] = _Bound(line, line.actor.removeprefix("pod/"))
        elif line.event == "deleted":
            self._waiting.discard(uid)
            self._bound.pop(uid, None)
            self._fresh.pop(uid, None)
            self._changed_s[""] = line.t
        elif line.fields.get("phase") in ("Succeeded", "Failed"):
            self._changed_s[""] = line.t

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge those that were bound since the last look."""
        if not self._fresh or state.bounds.lag_s:
            return
        for uid, bound in list(self._fresh.items()):
            pod = objects.pods.get(bound.pod)
            if pod is None or uid_of(pod) != uid or not node_name_of(pod):
                if t > bound.line.t + SEEN_S:
                    del self._fresh[uid]
                continue
            node = objects.nodes.get(node_name_of(pod))
            if not bound.is_judged and node is not None:
                bound.is_judged = True
                yield from self._judge(pod, node, bound.line, objects)
            if t > bound.line.t:
                del self._fresh[uid]
                yield from self._claims(pod, bound.line)

    def _judge(self, pod: Object, node: Object, line: Line, objects: ClusterObjects) -> Iterator[Breach]:
        if line.t - self._changed_s.get(name_of(node), -SEEN_S) < SEEN_S:
            return
        before = [each for each in objects.pods.values() if self._is_before(each, line)]
        wrong = _wrong(pod, node, before, objects)
        if not wrong and line.t - self._changed_s.get("", -SEEN_S) >= SEEN_S:
            wrong = _uneven(pod, node, before, objects)
        if wrong:
            what = f"pod {key_of(pod)} is bound to {name_of(node)}, {wrong}"
            yield Breach((uid_of(pod), "place"), what, line)

    def _is_before(self, pod: Object, line: Line) -> bool:
        if not node_name_of(pod) or is_terminal(pod):
            return False
        number = self._bound.get(uid_of(pod))
        return number is not None and number < line.number

    def _claims(self, pod: Object, line: Line) -> Iterator[Breach]:
        for name in _claims_of(pod):
            users = self._reserved.get(f"{namespace_of(pod)}/{name}")
            if (users is not None and name_of(pod) not in users) or (users is None and self._reserved):
                what = f"pod {key_of(pod)} is bound, and its claim {name} is not reserved for it"
                yield Breach((uid_of(pod), name), what, line)


def _claims_of(pod: Object) -> list[str]:
    made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    names = {each["name"]: each.get("resourceClaimName") for each in made}
    asked = pod.get("spec", {}).get("resourceClaims") or ()
    found = (each.get("resourceClaimName") or names.get(each["name"]) for each in asked)
    return [name for name in found if name]


def _wrong(pod: Object, node: Object, before: Sequence[Object], objects: ClusterObjects) -> str:
    spec = pod.get("spec", {})
    here = [each for each in before if node_name_of(each) == name_of(node)]
    if not is_selected(node, spec):
        return "whose labels it does not select"
    if not takes(node, spec):
        return "whose taints it does not tolerate"
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    asked = [amounts_of(each) for each in (pod, *here)]
    for name in _COUNTED:
        total = sum((each.get(name, Decimal(0)) for each in asked), Decimal(0))
        if asked[0].get(name) and name in allocatable and total > parse(allocatable[name]):
            return f"which offers less {name} than its pods ask for"
    taken = {port for each in here for port in _ports(each)}
    if any(_clash(port, other) for port in _ports(pod) for other in taken):
        return "where another pod has its host port"
    for other in before:
        if _excludes(pod, other, node, objects) or _excludes(other, pod, node, objects, holder=other):
            return f"where {key_of(other)} is, against required anti-affinity"
    return ""


def _ports(pod: Object) -> list[tuple[str, str, int]]:
    found = []
    for container in containers_of(pod):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"])))
    return found


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    anywhere = "0.0.0.0"
    return one[1:] == other[1:] and (one[0] == other[0] or anywhere in (one[0], other[0]))


def _excludes(one: Object, other: Object, node: Object, objects: ClusterObjects, holder: Object | None = None) -> bool:
    """Return whether a term of ``one`` forbids ``other`` in its domain. ``node`` is that of the pod at hand."""
    affinity = (one.get("spec", {}).get("affinity") or {}).get("podAntiAffinity") or {}
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    elsewhere = objects.nodes.get(node_name_of(holder if holder is not None else other))
    if not terms or elsewhere is None:
        return False
    for term in terms:
        if term.get("namespaceSelector") is not None or term.get("matchLabelKeys") or term.get("mismatchLabelKeys"):
            continue
        if namespace_of(other) not in (term.get("namespaces") or (namespace_of(one),)):
            continue
        if term.get("labelSelector") is None or not match_expressions(term["labelSelector"], _labels(other)):
            continue
        domain = _labels(node).get(term["topologyKey"])
        if domain is not None and _labels(elsewhere).get(term["topologyKey"]) == domain:
            return True
    return False


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def _uneven(pod: Object, node: Object, before: Sequence[Object], objects: ClusterObjects) -> str:
    spec = pod.get("spec", {})
    forbidding = [
        each for each in spec.get("topologySpreadConstraints") or () if each["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    keyed = [
        each for each in objects.nodes.values() if all(_labels(each).get(one["topologyKey"]) for one in forbidding)
    ]
    for constraint in forbidding:
        if constraint.get("matchLabelKeys") or constraint.get("minDomains"):
            continue
        counts = _counts(pod, constraint, keyed, before)
        domain = _labels(node).get(constraint["topologyKey"])
        if domain is None:
            return f"which has no label {constraint['topologyKey']}"
        own = match_expressions(constraint.get("labelSelector") or {}, _labels(pod))
        if domain in counts and counts[domain] + own - min(counts.values()) > int(constraint["maxSkew"]):
            return f"whose {constraint['topologyKey']} {domain} has more of its kind than others by too many"
    return ""


def _counts(
    pod: Object, constraint: Mapping[str, Any], nodes: Sequence[Object], before: Sequence[Object]
) -> dict[str, int]:
    spec, selector = pod.get("spec", {}), constraint.get("labelSelector") or {}
    counts: dict[str, int] = {}
    for node in nodes:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not is_selected(node, spec):
            continue
        if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor" and not takes(node, spec):
            continue
        domain = _labels(node)[constraint["topologyKey"]]
        counts.setdefault(domain, 0)
        counts[domain] += sum(
            node_name_of(each) == name_of(node)
            and namespace_of(each) == namespace_of(pod)
            and not is_deleting(each)
            and match_expressions(selector, _labels(each))
            for each in before
        )
    return counts
