"""What was found of nodes for one pod is good for the next that is alike, until a node's books change.

Thousands of pods of a workload differ in name only, and between two of them one node has changed: asking five hundred
nodes the same again was most of what a decision cost. Upstream does the like (opportunistic batching, KEP-5598).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

from mews.kube.scheduling.framework import Plugin
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo

T = TypeVar("T")

_KINDS = 8
"""Kinds of pods remembered at a time; of more, the one that has not come for longest is forgotten."""


@runtime_checkable
class SigningPlugin(Plugin, Protocol):
    """A plugin whose Filter and Score of a node follow from that node's own books and a part of the pod, from nothing
    else: not from other nodes, nor from what changes with time."""

    def sign(self, pod: PodInfo) -> Hashable:
        """Return that part of the pod."""
        ...


def signature(plugins: Iterable[Plugin], pod: PodInfo) -> Hashable | None:
    """Return what all these plugins go by; None where one of them does not sign."""
    signed: list[tuple[str, Hashable]] = []
    for plugin in plugins:
        sign = getattr(plugin, "sign", None)
        if sign is None:
            return None
        signed.append((plugin.name, cast(Hashable, sign(pod))))
    return tuple(signed)


class FoundOfNodes(Generic[T]):
    """Node -> what was found of it, for one kind of pods."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[str, tuple[NodeInfo, int, T]] = {}

    def each(self, nodes: Iterable[NodeInfo]) -> list[T | None]:
        """Return what was found of each, None where nothing was since the node's books last changed."""
        known = self._found.get
        return [
            found[2]
            if (found := known(node.name)) is not None and found[1] == node.generation and found[0] is node
            else None
            for node in nodes
        ]

    def put(self, node: NodeInfo, value: T) -> T:
        """Keep it for as long as the node's books stay as they are."""
        self._found[node.name] = (node, node.generation, value)
        return value


class PodsAlike(Generic[T]):
    """``FoundOfNodes`` by what the plugins sign of a pod."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, FoundOfNodes[T]] = {}

    def of(self, plugins: Sequence[Plugin], pod: PodInfo) -> FoundOfNodes[T] | None:
        """Return what is known for pods like this one; None where the plugins go by more than they could sign."""
        sign = signature(plugins, pod)
        if sign is None:
            return None
        found = self._kinds.pop(sign, None)
        if found is None:
            found = FoundOfNodes()
            if len(self._kinds) >= _KINDS:
                del self._kinds[next(iter(self._kinds))]
        self._kinds[sign] = found
        return found
