"""Removes pods of nodes that are gone (upstream pkg/controller/podgc)."""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, key_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.clock import Pace, rest
from mews.kube.component import Context

SWEEP_S = 20.0
"""How often it is looked."""
QUARANTINE_S = 40.0
"""How long a node must be missing before its pods are deleted."""


class PodGarbage:
    """Component: one for a cluster."""

    def __init__(self, context: Context, pace: Pace, *, nodes: Informer, pods: Informer) -> None:
        self._context = context
        self._pace = pace
        self._nodes = nodes
        self._pods = pods
        self._missing: dict[str, float] = {}

    async def run(self) -> None:
        """Run until cancelled."""
        await self._nodes.synced()
        await self._pods.synced()
        while True:
            try:
                await self._sweep()
            except (ApiError, UnavailableError) as error:
                self._context.log.info("pods without a node are not collected: %s", error)
            await rest(self._pace.loop_s(SWEEP_S))

    async def _sweep(self) -> None:
        now_s = asyncio.get_running_loop().time()
        homeless: dict[str, list[Object]] = {}
        for pod in list(self._pods.items()):
            node = node_name_of(pod)
            if node and self._nodes.get(node) is None:
                homeless.setdefault(node, []).append(pod)
        self._missing = {node: self._missing.get(node, now_s) for node in homeless}
        for node, since_s in self._missing.items():
            if now_s - since_s < self._pace.loop_s(QUARANTINE_S) or await self._exists(node):
                continue
            for pod in homeless[node]:
                await self._delete(pod)

    async def _exists(self, node: str) -> bool:
        try:
            await self._context.kube.get(NODES, node)
        except NotFoundError:
            return False
        return True

    async def _delete(self, pod: Object) -> None:
        options = DeleteOptions(grace_period_s=0, preconditions=Preconditions(uid=uid_of(pod)))
        try:
            await self._context.kube.delete(PODS, name_of(pod), namespace=namespace_of(pod), options=options)
        except ApiError as error:
            self._context.log.info("pod %s is not collected: %s", key_of(pod), error)
