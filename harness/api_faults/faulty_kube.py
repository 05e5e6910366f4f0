"""A component's KubeApi with the faults of ``board`` in it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from mews.harness.api_faults.plans import NO_ANSWER, ApiFailure, ApiRequest, RequestPlan
from mews.harness.api_faults.struck_events import ComponentFaults, struck_events
from mews.harness.api_faults.wire import status_of
from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError, from_status
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import PODS, Resource
from mews.kube.client.patience import patiently
from mews.kube.client.port import DeleteOptions, ExecResult, KubeApi, ObjectList, Patch, WatchEvent

T = TypeVar("T")


def error_of(failure: ApiFailure) -> ApiError | UnavailableError:
    """Return a failure as the port raises it."""
    if failure.code == NO_ANSWER:
        return UnavailableError(failure.message)
    return from_status(status_of(failure))


class FaultyKube:
    """KubeApi of one component. Without a fault each call is the other's own."""

    def __init__(self, kube: KubeApi, component: str, faults: ComponentFaults) -> None:
        self._kube = kube
        self._component = component
        self._faults = faults

    def _asked(self, request: ApiRequest, call: Callable[[], Awaitable[T]]) -> Awaitable[T]:
        if not self._faults.strikes(self._component):
            return call()
        return self._patiently(request, lambda version: call())

    def _patiently(self, request: ApiRequest, call: Callable[[str], Awaitable[T]]) -> Awaitable[T]:
        """Under faults, as the client below the component makes it: again where the answer says when."""

        def once() -> Awaitable[T]:
            plan = self._faults.on_request(self._component, request)
            return self._struck(request, plan, lambda: call(plan.version))

        return patiently(once)

    async def _struck(self, request: ApiRequest, plan: RequestPlan, call: Callable[[], Awaitable[T]]) -> T:
        """Return a request as it is planned; where it is refused all the same, the server's own error is what comes
        back."""
        held_last = plan.is_forwarded and plan.failure is not None
        if plan.hold_s and not held_last:
            await self._faults.hold(self._component, request, plan.hold_s)
        if not plan.is_forwarded:
            assert plan.failure is not None
            raise error_of(plan.failure)
        answer = await call()
        if plan.failure is not None:
            if plan.hold_s:
                await self._faults.hold(self._component, request, plan.hold_s)
            raise error_of(plan.failure)
        return answer

    def get(
        self, resource: Resource, name: str, *, namespace: str | None = None, subresource: str | None = None
    ) -> Awaitable[Object]:
        """Return one object, or as it was."""
        own = self._kube.get
        if not self._faults.strikes(self._component):
            return own(resource, name, namespace=namespace, subresource=subresource)

        def got(version: str) -> Awaitable[Object]:
            if version and subresource is None:
                return self._get_at(version, resource, name, namespace)
            return own(resource, name, namespace=namespace, subresource=subresource)

        return self._patiently(ApiRequest("get", resource.plural, name, subresource or ""), got)

    async def _get_at(self, version: str, resource: Resource, name: str, namespace: str | None) -> Object:
        place = (namespace or "default") if resource.namespaced else None
        fields = f"metadata.name={name}"
        found = await self._kube.list(resource, namespace=place, field_selector=fields, resource_version=version)
        for obj in found.items:
            if name_of(obj) == name:
                return obj
        raise NotFoundError(f'{resource.plural} "{name}" not found')

    def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Awaitable[ObjectList]:
        """Return all objects, or as they were."""

        def listed(version: str) -> Awaitable[ObjectList]:
            return self._kube.list(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=limit,
                continue_token=continue_token,
                resource_version=version,
            )

        if not self._faults.strikes(self._component):
            return listed(resource_version)
        request = ApiRequest("list", resource.plural)
        return self._patiently(request, lambda version: listed(resource_version or ("" if continue_token else version)))

    async def watch(
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
        """Yield all later events, as the faults let them come."""
        request, faults, component = ApiRequest("watch", resource.plural), self._faults, self._component
        if faults.strikes(component):
            await self._patiently(request, _nothing)
        stream = self._kube.watch(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            timeout_s=timeout_s,
            bookmarks=bookmarks,
        )
        try:
            async for event in stream:
                if faults.strikes(component):
                    async with contextlib.aclosing(struck_events(faults, component, request, event, stream)) as late:
                        async for each in late:
                            yield each
                    return
                yield event
        finally:
            closing = getattr(stream, "aclose", None)
            if closing is not None:
                await closing()

    def create(
        self, resource: Resource, obj: Mapping[str, Any], *, namespace: str | None = None, field_manager: str = ""
    ) -> Awaitable[Object]:
        """Create an object."""
        request = ApiRequest("create", resource.plural, name_of(obj) if "name" in obj.get("metadata", {}) else "")
        return self._asked(
            request, lambda: self._kube.create(resource, obj, namespace=namespace, field_manager=field_manager)
        )

    def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str = "",
    ) -> Awaitable[Object]:
        """Replace an object."""
        request = ApiRequest("update", resource.plural, name_of(obj), subresource or "")
        return self._asked(
            request,
            lambda: self._kube.replace(
                resource, obj, namespace=namespace, subresource=subresource, field_manager=field_manager
            ),
        )

    def patch(
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
    ) -> Awaitable[Object]:
        """Patch an object."""
        return self._asked(
            ApiRequest("patch", resource.plural, name, subresource or ""),
            lambda: self._kube.patch(
                resource,
                name,
                body,
                kind=kind,
                namespace=namespace,
                subresource=subresource,
                field_manager=field_manager,
                force=force,
            ),
        )

    def delete(
        self, resource: Resource, name: str, *, namespace: str | None = None, options: DeleteOptions | None = None
    ) -> Awaitable[Object]:
        """Delete an object."""
        return self._asked(
            ApiRequest("delete", resource.plural, name),
            lambda: self._kube.delete(resource, name, namespace=namespace, options=options),
        )

    def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        options: DeleteOptions | None = None,
    ) -> Awaitable[ObjectList]:
        """Delete many."""
        return self._asked(
            ApiRequest("deletecollection", resource.plural),
            lambda: self._kube.delete_collection(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                options=options,
            ),
        )

    def bind(
        self,
        namespace: str,
        pod: str,
        node: str,
        *,
        uid: str | None = None,
        annotations: Mapping[str, str] | None = None,
        resource_version: str | None = None,
    ) -> Awaitable[None]:
        """Bind a pod."""
        return self._asked(
            ApiRequest("create", PODS.plural, pod, "binding"),
            lambda: self._kube.bind(
                namespace, pod, node, uid=uid, annotations=annotations, resource_version=resource_version
            ),
        )

    def evict(self, namespace: str, pod: str, *, options: DeleteOptions | None = None) -> Awaitable[None]:
        """Evict a pod."""
        return self._asked(
            ApiRequest("create", PODS.plural, pod, "eviction"),
            lambda: self._kube.evict(namespace, pod, options=options),
        )

    def log(self, namespace: str, pod: str, **options: Any) -> AsyncIterator[bytes]:
        """Return the container's log; no fault looks at it."""
        return self._kube.log(namespace, pod, **options)

    def exec(
        self, namespace: str, pod: str, command: Sequence[str], *, container: str | None = None
    ) -> Awaitable[ExecResult]:
        """Run a command; no fault looks at it."""
        return self._kube.exec(namespace, pod, command, container=container)

    def discovery(self) -> Awaitable[Sequence[Resource]]:
        """Return all resources; no fault looks at it."""
        return self._kube.discovery()

    def close(self) -> Awaitable[None]:
        """Close the connections."""
        return self._kube.close()


async def _nothing(version: str) -> None:
    """A watch is opened."""
