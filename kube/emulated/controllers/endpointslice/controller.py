"""Keeps each service's EndpointSlices and its Endpoints current."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, name_of, namespace_of
from mews.kube.api.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from mews.kube.client.informer import Informer
from mews.kube.component import Context
from mews.kube.emulated.controllers.endpointslice import policy
from mews.kube.emulated.controllers.endpointslice.trigger_times import TriggerTimes, annotated
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, Sync, SyncLoop

_ENDPOINTS_MANAGED = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}


class _Concerned:
    """A queue of the services that changes of services and pods concern."""

    def __init__(self, context: Context, *, services: Informer, pods: Informer, sync: Sync) -> None:
        self._services = services
        self._pods = pods
        self.loop = SyncLoop(context, sync)

    async def run(self) -> None:
        await self._services.synced()
        await self._pods.synced()
        self._services.on_change(self.loop.add_changed)
        self._pods.on_change(self._pod_changed)
        await self.loop.run()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        for service in self._services.items():
            if any(pod is not None and policy.serves(service, pod) for pod in (old, new)):
                self.loop.add(key_of(service))


class EndpointSliceController:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._services = informers.of(SERVICES)
        self._pods = informers.of(PODS)
        self._nodes = informers.of(NODES)
        self._slices = informers.of(ENDPOINT_SLICES)
        self._times = TriggerTimes()
        self._expectations = Expectations()
        self._concerned = _Concerned(context, services=self._services, pods=self._pods, sync=self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._nodes.synced()
        await self._slices.synced()
        self._slices.on_change(self._slice_changed)
        await self._concerned.run()

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        for found in (old, new):
            if found is not None and labels_of(found).get(policy.MANAGED) == policy.US:
                self._concerned.loop.add(f"{namespace_of(found)}/{labels_of(found).get(policy.SERVICE, '')}")

    async def _sync(self, key: str) -> None:
        service = self._services.at(key)
        if service is None or is_deleting(service) or policy.selector_of(service) is None:
            self._expectations.forget(key)
            self._times.forget(key)
            return
        if not self._expectations.met(key):
            return
        pods = [pod for pod in self._pods.items() if policy.serves(service, pod)]
        nodes = {name_of(node): node for node in self._nodes.items()}
        wanted, since = policy.contents(service, pods, nodes), self._times.since(service, pods)
        known = [found for found in self._slices.items() if _is_ours(found, service)]
        for content, found in zip(wanted, known, strict=False):
            await self._bring_up_to_date(service, found, content, since)
        for content in wanted[len(known) :]:
            body = policy.slice_of(service, content)
            body["metadata"] = annotated(body["metadata"], since)
            made = await self._kube.create(
                ENDPOINT_SLICES, body, namespace=namespace_of(service), field_manager=MANAGER
            )
            self._expectations.wrote(key, self._slices, made)
        for found in known[len(wanted) :]:
            self._expectations.deleted(key, self._slices, found)
            await self._kube.delete(ENDPOINT_SLICES, name_of(found), namespace=namespace_of(found))

    async def _bring_up_to_date(self, service: Object, found: Object, content: Mapping[str, Any], since: str) -> None:
        labels = policy.labels_for(service)
        same = all((found.get(name) or []) == (content.get(name) or []) for name in ("endpoints", "ports"))
        if same and labels_of(found) == labels:
            return
        changed = {**found, "endpoints": None, "ports": None, **content}
        changed["metadata"] = annotated({**found["metadata"], "labels": labels}, since)
        written = await self._kube.replace(ENDPOINT_SLICES, changed, field_manager=MANAGER)
        self._expectations.wrote(key_of(service), self._slices, written)


def _is_ours(found: Object, service: Object) -> bool:
    if namespace_of(found) != namespace_of(service) or is_deleting(found):
        return False
    labels = labels_of(found)
    return labels.get(policy.MANAGED) == policy.US and labels.get(policy.SERVICE) == name_of(service)


class EndpointsController:
    """Component: one for a cluster; the older form of the same."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._services = informers.of(SERVICES)
        self._pods = informers.of(PODS)
        self._endpoints = informers.of(ENDPOINTS)
        self._times = TriggerTimes()
        self._expectations = Expectations()
        self._concerned = _Concerned(context, services=self._services, pods=self._pods, sync=self._sync)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._endpoints.synced()
        await self._concerned.run()

    async def _sync(self, key: str) -> None:
        service = self._services.at(key)
        if service is None:
            await self._delete(key)
            return
        if policy.selector_of(service) is None or not self._expectations.met(key):
            return
        pods = [pod for pod in self._pods.items() if policy.serves(service, pod)]
        subsets, since = policy.subsets(service, pods), self._times.since(service, pods)
        found = self._endpoints.at(key)
        headless = {policy.HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}
        labels = {**labels_of(service), **_ENDPOINTS_MANAGED, **headless}
        if found is None:
            metadata = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels}
            body = {"metadata": annotated(metadata, since), **({"subsets": subsets} if subsets else {})}
            written = await self._kube.create(ENDPOINTS, body, namespace=namespace_of(service), field_manager=MANAGER)
        elif (found.get("subsets") or []) != subsets or labels_of(found) != labels:
            fresh = annotated({**found["metadata"], "labels": labels}, since)
            changed = {**found, "metadata": fresh, "subsets": subsets}
            written = await self._kube.replace(ENDPOINTS, changed, field_manager=MANAGER)
        else:
            return
        self._expectations.wrote(key, self._endpoints, written)

    async def _delete(self, key: str) -> None:
        """A Service is gone: its Endpoints go, whoever wrote them."""
        self._expectations.forget(key)
        self._times.forget(key)
        found = self._endpoints.at(key)
        if found is not None:
            try:
                await self._kube.delete(ENDPOINTS, name_of(found), namespace=namespace_of(found))
            except NotFoundError:
                return
