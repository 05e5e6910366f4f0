"""The in-process adapter of the KubeApi port: the store, without a wire.

Deterministic; every call gives the loop a turn before it acts, as I/O would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import BadRequestError
from mews.kube.api.objects import Object, name_of, namespace_of
from mews.kube.api.resources import Resource
from mews.kube.client.port import DeleteOptions, EventType, ExecResult, ObjectList, Patch, WatchEvent
from mews.kube.clock import rest
from mews.kube.emulated.core.objects import creation, deletion, update
from mews.kube.emulated.core.objects.scales import scale_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import answered, completed
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.selection import Selection, select
from mews.kube.emulated.core.store.shelf import WatchInbox
from mews.kube.emulated.core.store.store import Store, read_version
from mews.kube.emulated.core.store.users import administrator
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.kinds.pods import actions
from mews.kube.emulated.packs.kubelets import containers
from mews.kube.emulated.packs.kubelets.measures import is_measured, measured, one_measured
from mews.kube.emulated.ports.kubelets import KubeletDirectory, NoKubelets


class Watch:
    """The stream of one watch. It ends on its timeout or when the server hangs up, and lets go of the store when it is
    closed or no longer referenced."""

    def __init__(
        self, store: Store, kind: Kind, selection: Selection, version: str, timeout_s: int | None, *, bookmarks: bool
    ) -> None:
        self._store = store
        self._kind = kind
        self._selection = selection
        self._version = version
        self._timeout_s = timeout_s
        self._bookmarks = bookmarks
        self._subscription: WatchInbox | None = None
        self._timer: asyncio.Task[None] | None = None

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> WatchEvent:
        inbox = self._subscription
        if inbox is None:
            await asyncio.sleep(0)
            inbox = self._subscription = self._store.watch(self._kind, self._selection, self._version)
            if self._timeout_s is not None:
                self._timer = asyncio.create_task(self._expire(inbox, self._timeout_s))
        while (event := inbox.pop()) is None:
            if inbox.has_ended:
                self._let_go()
                raise StopAsyncIteration
            try:
                await inbox.arrival()
            except asyncio.CancelledError:  # as over HTTP, a cancelled watch is over
                self._let_go()
                inbox.end()
                raise
        if not self._kind.view and self._kind.forms is None:
            return event
        return WatchEvent(event.type, await answered(lambda: view_of(self._kind).show(event.object)))

    async def _expire(self, subscription: WatchInbox, timeout_s: int) -> None:
        await rest(timeout_s)
        if self._bookmarks:
            subscription.push(WatchEvent(EventType.BOOKMARK, bookmark(self._kind, self._store.version)))
        subscription.end()

    async def aclose(self) -> None:
        """Let go of the store."""
        self._let_go()

    def _let_go(self) -> None:
        if self._subscription is not None:
            self._subscription.shelf.unsubscribe(self._subscription)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def __del__(self) -> None:
        self._let_go()


def bookmark(kind: Kind, version: int) -> Object:
    """Return the object of a BOOKMARK event."""
    resource = kind.resource
    metadata = {"resourceVersion": str(version)}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


class InProcessKube:
    """KubeApi over a ``Store``, as the given user."""

    def __init__(self, store: Store, user: str = "system:admin", *, kubelets: KubeletDirectory | None = None) -> None:
        self._store = store
        self._identity = administrator(user)
        self._kubelets = kubelets or NoKubelets()

    def _kind(self, resource: Resource) -> Kind:
        return self._store.kinds.of(resource)

    def _stored(self, resource: Resource) -> Kind:
        """405 for what can only be read."""
        kind = self._kind(resource)
        if is_measured(kind):
            raise refusals.wrong_method()
        return kind

    def _request(self, field_manager: str) -> WriteRequest:
        return WriteRequest(self._identity, field_manager or "mews", answers={})

    async def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> Object:
        """Return one object; ``NotFound`` when there is none."""
        await asyncio.sleep(0)
        kind = self._kind(resource)
        if subresource is not None and kind.subresource(subresource) is None:
            raise refusals.unknown_resource()
        if is_measured(kind):
            return one_measured(self._store, self._kubelets, kind, namespace=_place(kind, namespace) or None, name=name)
        found = await answered(lambda: self._store.get(kind, _place(kind, namespace), name))
        return scale_of(kind, found) if subresource == "scale" else found

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
    ) -> ObjectList:
        """Selected objects, ordered by namespace and name; with a version as they were at that one."""
        await asyncio.sleep(0)
        kind = self._kind(resource)
        if is_measured(kind):
            found = measured(
                self._store, self._kubelets, kind, namespace=namespace, labels=label_selector, fields=field_selector
            )
            return ObjectList(found, "")
        selection = select(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        if resource_version:
            version = read_version(resource_version)
            return await answered(lambda: self._store.list_at(kind, selection, version, limit=limit))
        return await answered(lambda: self._store.list(kind, selection, limit=limit, token=continue_token))

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        timeout_s: int | None = None,
        bookmarks: bool = False,
    ) -> AsyncIterator[WatchEvent]:
        """Return all later events; the subscription begins with the first ``anext``."""
        kind = self._stored(resource)
        selection = select(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        return Watch(self._store, kind, selection, resource_version, timeout_s, bookmarks=bookmarks)

    async def create(
        self, resource: Resource, obj: Mapping[str, Any], *, namespace: str | None = None, field_manager: str = ""
    ) -> Object:
        """Create an object (POST) and return it as stored."""
        await asyncio.sleep(0)
        kind = self._stored(resource)
        target = _place(kind, namespace or namespace_of(obj) or None)
        return await completed(
            lambda request: creation.create(self._store, kind, target, obj, request), self._request(field_manager)
        )

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
    ) -> Object:
        """Replace an object (PUT) and return it as stored."""
        await asyncio.sleep(0)
        kind = self._stored(resource)
        _check_subresource(kind, subresource)
        place, below, store = _place(kind, namespace or namespace_of(obj) or None), subresource or "", self._store

        def write(request: WriteRequest) -> Object:
            if below == "scale":
                from mews.kube.emulated.core.objects.scale_writes import replace_scale

                return replace_scale(store, kind, place, name_of(obj), obj, request=request)
            return update.replace(store, kind, place, name_of(obj), obj, subresource=below, request=request)

        return await completed(write, self._request(field_manager))

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        kind: Patch = Patch.MERGE,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
        force: bool = False,
    ) -> Object:
        """Return the object after the patch."""
        await asyncio.sleep(0)
        what = self._stored(resource)
        _check_subresource(what, subresource)
        place, below, store = _place(what, namespace), subresource or "", self._store

        def write(request: WriteRequest) -> Object:
            if kind is Patch.APPLY:
                from mews.kube.emulated.core.objects.apply import apply

                return apply(store, what, place, name, body, subresource=below, force=force, request=request)
            if below == "scale":
                from mews.kube.emulated.core.objects.scale_writes import patch_scale

                return patch_scale(store, what, place, name, body, patch_kind=kind, request=request)
            return update.patch(store, what, place, name, body, patch_kind=kind, subresource=below, request=request)

        return await completed(write, self._request(field_manager))

    async def delete(
        self, resource: Resource, name: str, *, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Object:
        """Return the object while it still exists, or a ``Status``."""
        await asyncio.sleep(0)
        kind = self._stored(resource)
        return await completed(
            lambda request: deletion.delete(self._store, kind, _place(kind, namespace), name, options, request),
            self._request(""),
        )

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        options: DeleteOptions | None = None,
    ) -> ObjectList:
        """Return the list as it was before the deletion."""
        await asyncio.sleep(0)
        kind = self._stored(resource)
        if "deletecollection" not in kind.verbs:
            raise refusals.wrong_method()
        selection = select(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        return await deletion.delete_selected(self._store, kind, selection, options, self._request(""))

    async def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Bind a pod to a node (POST pods/binding)."""
        await asyncio.sleep(0)
        metadata = {"name": pod, "uid": uid, "annotations": annotations, "resourceVersion": resource_version}
        body = {"metadata": metadata, "target": {"kind": "Node", "name": node}}
        await completed(lambda request: actions.bind(self._store, namespace, pod, body, request), self._request(""))

    async def evict(self, namespace: str, pod: str, *, options: DeleteOptions | None = None) -> None:
        """Evict a pod (POST pods/eviction)."""
        await asyncio.sleep(0)
        await completed(lambda request: actions.evict(self._store, namespace, pod, options, request), self._request(""))

    async def log(
        self,
        namespace: str,
        pod: str,
        *,
        container: str | None = None,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the container's log in chunks."""
        await asyncio.sleep(0)
        target = containers.find(self._store, self._kubelets, namespace, pod, container)
        if target.kubelet is None:
            return
        async for chunk in target.kubelet.log(
            namespace, pod, target.container, follow=follow, previous=previous, tail_lines=tail_lines
        ):
            yield chunk

    async def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None
    ) -> ExecResult:
        """Run a command in a running container."""
        await asyncio.sleep(0)
        target = containers.find(self._store, self._kubelets, namespace, pod, container)
        if target.kubelet is None:
            raise BadRequestError(f"pod {pod} does not have a host assigned")
        return await target.kubelet.exec(namespace, pod, target.container, command)

    async def discovery(self) -> Sequence[Resource]:
        """Return all resources served."""
        await asyncio.sleep(0)
        return [kind.resource for kind in self._store.kinds]

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""


def _place(kind: Kind, namespace: str | None) -> str:
    """Return the namespace that addresses an object: "" for cluster-scoped kinds, ``default`` where none is named."""
    return (namespace or "default") if kind.resource.namespaced else ""


def _check_subresource(kind: Kind, subresource: str | None) -> None:
    if subresource and kind.subresource(subresource) is None:
        raise refusals.unknown_resource()
