"""Empties namespaces that are being deleted and lets them go; for API servers that do not do it themselves."""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, name_of
from mews.kube.api.resources import NAMESPACES, NEW_EVENTS
from mews.kube.client.informer import Informer
from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.emulated.streaming.metrics import GROUP as METRICS

FINALIZER = "kubernetes"
_LOOK_S = 1.0


class NamespaceDeletion:
    """Component: one for a cluster. The embedded store attends to its namespaces by itself and needs none."""

    def __init__(self, context: Context, pace: Pace) -> None:
        self._context = context
        self._pace = pace
        self._namespaces = Informer(context.kube, NAMESPACES)
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        self._namespaces.on_change(lambda _old, _new: self._wake.set())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._namespaces.run())
            await self._namespaces.synced()
            while True:
                await self._wake.wait()
                self._wake.clear()
                left = [namespace for namespace in self._namespaces.items() if is_deleting(namespace)]
                for namespace in left:
                    try:
                        await self._end(namespace)
                    except (ApiError, UnavailableError) as error:
                        self._context.log.info("namespace %s stays: %s", name_of(namespace), error)
                if left:
                    await rest(self._pace.loop_s(_LOOK_S))
                    self._wake.set()

    async def _end(self, namespace: Object) -> None:
        kube, name, empty = self._context.kube, name_of(namespace), True
        for resource in await kube.discovery():
            if not resource.namespaced or resource == NEW_EVENTS or resource.group == METRICS:
                continue  # measured objects cannot be deleted, and go with what is measured
            try:
                found = await kube.list(resource, namespace=name)
            except ApiError:
                continue  # a resource that cannot be listed holds nothing
            if found.items:
                empty = False
                if not all(is_deleting(obj) for obj in found.items):
                    await kube.delete_collection(resource, namespace=name)
        if empty:
            await self._finalize(name)

    async def _finalize(self, name: str) -> None:
        try:
            current = await self._context.kube.get(NAMESPACES, name)
            kept = [entry for entry in current["spec"].get("finalizers") or () if entry != FINALIZER]
            body = {**current, "spec": {**current["spec"], "finalizers": kept}}
            await self._context.kube.replace(NAMESPACES, body, subresource="finalize")
        except NotFoundError:
            return
