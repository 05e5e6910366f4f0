"""Removes what nobody owns any more: objects of dead owners, and pods of nodes that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.harness.clock import Pace
from mews.kube.api.errors import ApiError, NotFound, Unavailable
from mews.kube.api.objects import Object, key_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, LEASES, NODES, PODS, SERVICES, Resource
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.clock import rest
from mews.kube.component import Context

SWEEP_S = 20.0
"""How often it is looked (podgc's period); the end of a node or pod is looked at once."""
QUARANTINE_S = 40.0
"""How long a node must be missing before its pods are (pkg/controller/podgc)."""
DEPENDENTS = (PODS, CONFIGMAPS, LEASES, SERVICES)


class GarbageCollector:
    """Component: one for a cluster."""

    def __init__(self, context: Context, pace: Pace, *, nodes: Informer, pods: Informer) -> None:
        self._context = context
        self._pace = pace
        self._nodes = nodes
        self._pods = pods
        self._missing: dict[str, float] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        await self._nodes.synced()
        await self._pods.synced()
        self._nodes.on_change(self._gone)
        self._pods.on_change(self._gone)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._alarm())
            while True:
                self._wake.clear()
                try:
                    await self._sweep()
                except (ApiError, Unavailable) as error:
                    self._context.log.info("garbage is not collected: %s", error)
                await self._wake.wait()

    async def _alarm(self) -> None:
        while True:
            await rest(self._pace.loop_s(SWEEP_S))
            self._wake.set()

    def _gone(self, _old: Object | None, new: Object | None) -> None:
        if new is None:
            self._wake.set()

    async def _sweep(self) -> None:
        alive: dict[str, bool] = {}
        for resource in DEPENDENTS:
            for obj in (await self._context.kube.list(resource)).items:
                owners = obj["metadata"].get("ownerReferences") or ()
                if owners and not await self._any_alive(owners, namespace_of(obj), alive):
                    await self._delete(resource, obj, None)
        await self._orphans()

    async def _any_alive(self, owners: Any, namespace: str, alive: dict[str, bool]) -> bool:
        for owner in owners:
            uid = str(owner.get("uid"))
            if uid not in alive:
                alive[uid] = await self._is_alive(owner, namespace)
            if alive[uid]:
                return True
        return False

    async def _is_alive(self, owner: Mapping[str, Any], namespace: str) -> bool:
        if owner.get("kind") == "Node":
            node = self._nodes.get(str(owner["name"]))
            if node is not None:
                return uid_of(node) == owner.get("uid")
        resource = await self._resource(str(owner.get("apiVersion")), str(owner.get("kind")))
        if resource is None:
            return True  # a kind that the server does not serve: never delete on a guess
        place = namespace if resource.namespaced else None
        try:
            found = await self._context.kube.get(resource, str(owner["name"]), namespace=place)
        except NotFound:
            return False
        return uid_of(found) == owner.get("uid")

    async def _resource(self, api_version: str, kind: str) -> Resource | None:
        if (api_version, kind) not in self._kinds:
            for resource in await self._context.kube.discovery():
                self._kinds[resource.api_version, resource.kind] = resource
        return self._kinds.get((api_version, kind))

    async def _orphans(self) -> None:
        """Pods of nodes that do not exist: deleted by force, once the node has been missing for long enough."""
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
                await self._delete(PODS, pod, 0)

    async def _exists(self, node: str) -> bool:
        try:
            await self._context.kube.get(NODES, node)
        except NotFound:
            return False
        return True

    async def _delete(self, resource: Resource, obj: Object, grace_s: int | None) -> None:
        options = DeleteOptions(grace_period_s=grace_s, preconditions=Preconditions(uid=uid_of(obj)))
        try:
            await self._context.kube.delete(resource, name_of(obj), namespace=namespace_of(obj), options=options)
        except ApiError as error:
            self._context.log.info("%s %s is not collected: %s", resource.plural, key_of(obj), error)
