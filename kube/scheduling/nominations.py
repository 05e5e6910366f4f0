"""Who waits for room on which node after a preemption."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.scheduling.podinfo import PodInfo


class Nominations:
    """In memory; what the API says of ``status.nominatedNodeName`` is told to it."""

    def __init__(self) -> None:
        self._node: dict[str, str] = {}
        self._pods: dict[str, dict[str, PodInfo]] = {}

    def __bool__(self) -> bool:
        return bool(self._node)

    def set(self, pod: PodInfo, node: str) -> None:
        """Nominated to this node; "" for none any more."""
        self.remove(pod.uid)
        if node:
            self._node[pod.uid] = node
            self._pods.setdefault(node, {})[pod.uid] = pod

    def remove(self, uid: str) -> None:
        """Bound, assumed or gone."""
        node = self._node.pop(uid, None)
        if node is not None:
            self._pods[node].pop(uid)

    def node_of(self, uid: str) -> str:
        """Return the node the pod waits for, or ""."""
        return self._node.get(uid, "")

    def on(self, node: str) -> Sequence[PodInfo]:
        """Pods that wait for room there."""
        return tuple(self._pods.get(node, {}).values())
