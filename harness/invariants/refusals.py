"""What a scheduler's words say of the nodes that refuse a pod, held to what these nodes are. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal

from mews.harness.invariants.scheduled import amounts_of, is_open, is_selected, takes
from mews.kube.api.objects import Object, is_terminal, key_of, node_name_of
from mews.kube.api.quantities import parse
from mews.kube.system.invariant import ClusterObjects

_PREEMPTION = "preemption: "
_INSUFFICIENT = re.compile(r"(?:^|, |: )(\d+) Insufficient (\w[\w./-]*\w|\w)")
"""In the words of the plugin NodeResourcesFit (noderesources/fit.go), before those of preemption."""
_OTHER = re.compile(r"(?:^|, |: )(\d+) (Too many pods|node\(s\) [\w' /()]+)")
_TOO_MANY = "Too many pods"
_SELECTED = "node(s) didn't match Pod's node affinity/selector"
_CLOSED = frozenset({"node(s) had untolerated taint(s)", "node(s) were unschedulable"})
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})

Refuses = Callable[[Object], bool]
"""Whether a node may refuse the pod for that reason."""


def insufficient(message: str) -> Iterator[tuple[int, str]]:
    """Yield those of how many nodes a refusal says that they lack which resource."""
    for count, resource in _INSUFFICIENT.findall(message.partition(_PREEMPTION)[0]):
        yield int(count), resource


def unjust(message: str, pod: Object, objects: ClusterObjects, changed: Collection[str] = ()) -> str:
    """Return the reason that a refusal gives for more nodes than it can hold for; "" for none. A pod without a node
    counts on each of them, as it may be on its way there; a node that has changed may refuse for any reason."""
    for count, words, refuses in _claims(message.partition(_PREEMPTION)[0], pod, objects):
        may = sum(name in changed or refuses(node) for name, node in objects.nodes.items())
        if count > may:
            return f"{count} {words}, and that holds for {may} of {len(objects.nodes)} node(s)"
    return ""


def _claims(message: str, pod: Object, objects: ClusterObjects) -> Iterator[tuple[int, str, Refuses]]:
    spec, asked = pod.get("spec", {}), amounts_of(pod)
    lacking = {resource: count for count, resource in insufficient(message) if resource in _STANDARD}
    for count, words in _OTHER.findall(message):
        if words == _TOO_MANY:
            lacking["pods"] = int(count)
        elif words == _SELECTED:
            yield int(count), words, lambda node: not is_selected(node, spec)
        elif words in _CLOSED:
            yield int(count), words, lambda node: not is_open(node, spec)
    taken = _taken(pod, objects) if lacking else {}
    for resource, count in lacking.items():
        amount = asked.get(resource, Decimal(0))
        words = _TOO_MANY if resource == "pods" else f"Insufficient {resource}"
        yield count, words, _lacks(resource, amount, taken)


def _lacks(resource: str, amount: Decimal, taken: Mapping[str, Mapping[str, Decimal]]) -> Refuses:
    def refuses(node: Object) -> bool:
        offered = parse(((node.get("status") or {}).get("allocatable") or {}).get(resource, 0))
        here = taken.get(node["metadata"]["name"], {}).get(resource, Decimal(0))
        return amount > offered - here - taken.get("", {}).get(resource, Decimal(0))

    return refuses


def _taken(pod: Object, objects: ClusterObjects) -> dict[str, dict[str, Decimal]]:
    """Node -> what its pods ask; "" for the other pods without a node."""
    taken: dict[str, dict[str, Decimal]] = {}
    for each in objects.pods.values():
        if is_terminal(each) or key_of(each) == key_of(pod):
            continue
        sums = taken.setdefault(node_name_of(each), {})
        for name, amount in amounts_of(each).items():
            sums[name] = sums.get(name, Decimal(0)) + amount
    return taken


def misplaced(pod: Object, objects: ClusterObjects, changed: Collection[str] = ()) -> str:
    """Return why the node that a pod was just bound to is none for it; "" where it is one. A node that has changed may
    have been open to it before."""
    node = objects.nodes.get(node_name_of(pod))
    if node is None:
        return ""
    spec = pod.get("spec", {})
    if not is_selected(node, spec):
        return "which its node affinity or selector does not match"
    if node_name_of(pod) not in changed and not takes(node, spec):
        return "which is closed to it"
    there = (node.get("status") or {}).get("allocatable") or {}
    here = [each for each in objects.pods.values() if node_name_of(each) == node_name_of(pod) and not is_terminal(each)]
    sums = [amounts_of(each) for each in here]
    for name, amount in amounts_of(pod).items():
        if name in _STANDARD and name in there and amount > 0:
            total = sum((each.get(name, Decimal(0)) for each in sums), Decimal(0))
            if total > parse(there[name]) and node_name_of(pod) not in changed:
                return f"which has {there[name]} of {name}, and whose pods ask {total}"
    return ""
