"""The scheduler's books: every node with its bound and assumed pods, changed in place.

Nothing awaits within a scheduling cycle, so the living books are their own snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mews.kube.api.objects import Object, name_of
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo


class Cache:
    """One writer, the scheduler. ``nodes`` are those that the API knows, in order of their coming.

    ``with_affinity`` and ``with_anti_affinity`` are those of them with such pods, so that a cycle does not ask each of
    thousands whether it has any (upstream's HavePodsWithAffinityList).
    """

    def __init__(self) -> None:
        self._books: dict[str, NodeInfo] = {}
        self._nodes: dict[str, NodeInfo] = {}
        self._where: dict[str, str] = {}
        self._assumed: dict[str, None] = {}
        self._affine: dict[str, NodeInfo] = {}
        self._averse: dict[str, NodeInfo] = {}
        self.nodes: Mapping[str, NodeInfo] = MappingProxyType(self._nodes)
        self.with_affinity: Mapping[str, NodeInfo] = MappingProxyType(self._affine)
        self.with_anti_affinity: Mapping[str, NodeInfo] = MappingProxyType(self._averse)
        self.order: list[NodeInfo] = []

    def set_node(self, node: Object) -> None:
        """A node is there or has changed."""
        name = name_of(node)
        info = self._book(name)
        info.set_node(node)
        if name not in self._nodes:
            self._nodes[name] = info
            self.order.append(info)
            self._sort(info)

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods stay on the books until they go too."""
        info = self._nodes.pop(name, None)
        if info is None:
            return
        self.order.remove(info)
        info.set_node(None)
        self._sort(info)
        self._drop_if_empty(info)

    def set_pod(self, pod: PodInfo) -> None:
        """A pod is bound, as the API says; an assumption about it ends."""
        self._assumed.pop(pod.uid, None)
        if self._where.get(pod.uid) == pod.node_name:
            info = self._books[pod.node_name]
            if self._alike(info.pods[pod.uid], pod):
                info.pods[pod.uid] = pod
                return
        self._put(pod, pod.node_name)

    @staticmethod
    def _alike(old: PodInfo, new: PodInfo) -> bool:
        """Return whether only the status differs, so that no book changes."""
        return (
            old.requests == new.requests
            and old.ports == new.ports
            and not (new.affinity or new.anti_affinity or new.preferred or new.preferred_against)
        )

    def _put(self, pod: PodInfo, node: str) -> None:
        self.remove_pod(pod.uid)
        info = self._book(node)
        info.add(pod)
        self._sort(info)
        self._where[pod.uid] = node

    def remove_pod(self, uid: str) -> None:
        """A pod is gone, finished, or no longer assumed."""
        self._assumed.pop(uid, None)
        node = self._where.pop(uid, None)
        if node is not None:
            info = self._books[node]
            info.remove(uid)
            self._sort(info)
            self._drop_if_empty(info)

    def has(self, uid: str) -> bool:
        """Return whether the pod is on the books of a node."""
        return uid in self._where

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count the pod on the node before the API says so."""
        self._put(pod, node)
        self._assumed[pod.uid] = None

    def forget(self, uid: str) -> None:
        """Take an assumption back; a pod that is bound by now stays."""
        if uid in self._assumed:
            self.remove_pod(uid)

    def _sort(self, info: NodeInfo) -> None:
        """Have it among the nodes with such pods, or not."""
        there = info.name in self._nodes
        for index, pods in ((self._affine, info.with_affinity), (self._averse, info.with_anti_affinity)):
            if there and pods:
                index[info.name] = info
            else:
                index.pop(info.name, None)

    def _book(self, name: str) -> NodeInfo:
        info = self._books.get(name)
        if info is None:
            info = self._books[name] = NodeInfo(name)
        return info

    def _drop_if_empty(self, info: NodeInfo) -> None:
        if info.node is None and not info.pods:
            del self._books[info.name]
