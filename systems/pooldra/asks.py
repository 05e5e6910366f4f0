"""What nodes are asked for. One value per node, written by the pool driver alone, in an annotation of the node."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES
from mews.kube.client.informer import Informer
from mews.kube.client.port import KubeApi
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.names import REQUESTS
from mews.systems.pooldra.records import NodeRequests, annotation, requests_of


class StandingRequests:
    """What each node is asked for, until it has been done; what an earlier incarnation asked for is asked for still."""

    def __init__(self, kube: KubeApi, nodes: Informer, config: PoolDraConfig) -> None:
        self._kube = kube
        self._config = config
        self._nodes = nodes
        self._standing: dict[str, dict[str, str]] = {}
        self._pools: dict[str, dict[str, tuple[str, ...]]] = {}
        self._lock = asyncio.Lock()
        self._texts: dict[str, tuple[NodeRequests, str]] = {}
        """Node -> what was last to be written, and its text."""

    def of(self, node: str) -> Mapping[str, str]:
        """UUID -> request."""
        if node not in self._standing:
            found = requests_of(self._nodes.get(node))
            self._standing[node] = {} if found is None else dict(found.leave)
        return self._standing[node]

    def known(self, node: str, pool: str, uuids: tuple[str, ...]) -> None:
        """These are the devices of a pool, which its chassis may put on the node."""
        self._pools.setdefault(node, {})[pool] = uuids

    def ask(self, node: str, uuid: str, request: str) -> None:
        """The host is to let go of a device."""
        self._standing[node] = {**self.of(node), uuid: request}

    def withdraw(self, node: str, uuid: str) -> None:
        """It is not asked for any more."""
        self._standing[node] = {name: request for name, request in self.of(node).items() if name != uuid}

    async def write(self, node: str) -> None:
        """Have the node's annotation say so.

        Raises ApiError, UnavailableError.
        """
        async with self._lock:
            found = self._nodes.get(node)
            if found is None or not self.is_known(node):
                return
            text = self._text(node, NodeRequests(self._pool_of(node, found), self.of(node)))
            if _annotated(found) != text:
                await self._kube.patch(NODES, node, {"metadata": {"annotations": {REQUESTS: text}}})

    def _text(self, node: str, wanted: NodeRequests) -> str:
        known = self._texts.get(node)
        if known is None or known[0] != wanted:
            known = self._texts[node] = wanted, annotation(wanted)
        return known[1]

    def _pool_of(self, node: str, found: Object) -> tuple[str, ...]:
        """What was known once stays: a device whose link is down is in no listing, and once the link is up again its
        host may show the device before the chassis is read. Its node must not offer it as its own then."""
        before = requests_of(found)
        known = {uuid for each in self._pools.get(node, {}).values() for uuid in each}
        return tuple(sorted(known | set(before.pool if before is not None else ())))

    def is_known(self, node: str) -> bool:
        """Return whether all devices that may come to the node are known, now or from an earlier incarnation."""
        is_whole = len(self._pools.get(node, {})) >= len(self._config.chassis_of(node))
        return is_whole or requests_of(self._nodes.get(node)) is not None


def _annotated(node: Object) -> Any:
    return (node["metadata"].get("annotations") or {}).get(REQUESTS)
