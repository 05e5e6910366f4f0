"""Making and deleting pods for a controller, with the events that tell of it, and taking pods in or letting them go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS, Resource
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import OwnedObjects, controller_of, controller_reference
from mews.kube.emulated.controllers.syncing import MANAGER, Expectations, WriteLimit
from mews.kube.events import EventRecorder, reference

_FIRST_BATCH = 1


def is_terminating_namespace(error: Exception) -> bool:
    """Return whether a create was refused since the namespace is going: then there is nothing to be done or told."""
    causes = error.details.get("causes") or () if isinstance(error, ApiError) else ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


async def slow_start(count: int, act: Callable[[int], Awaitable[object]]) -> Exception | None:
    """Do something for 0 … count-1 in batches of 1, 2, 4, …; the first batch with a failure is the last. Answers the
    first failure."""
    done, batch = 0, min(count, _FIRST_BATCH)
    while batch > 0:
        found = await asyncio.gather(*(act(done + n) for n in range(batch)), return_exceptions=True)
        for result in found:
            if isinstance(result, ApiError | UnavailableError):
                return result
            if isinstance(result, BaseException):
                raise result
        done += batch
        batch = min(2 * batch, count - done)
    return None


class PodControl:
    """Makes and deletes pods for one kind of controller; ``expectations`` are told of all that is written."""

    def __init__(
        self,
        context: Context,
        events: EventRecorder,
        *,
        resource: Resource,
        pods: OwnedObjects,
        expectations: Expectations,
    ) -> None:
        self._kube = context.kube
        self._events = events
        self._resource = resource
        self._pods = pods
        self._expectations = expectations
        self._limit = WriteLimit()

    def about(self, owner: Object) -> dict[str, Any]:
        """Return the owner as an event's involvedObject."""
        return reference({**owner, "kind": self._resource.kind, "apiVersion": self._resource.api_version})

    async def create(self, owner: Object, pod: Mapping[str, Any]) -> Object:
        """Create a pod of the owner.

        Raises ApiError, after telling of it.
        """
        await self._limit.take()
        try:
            made = await self._kube.create(PODS, pod, namespace=namespace_of(owner), field_manager=MANAGER)
        except ApiError as error:
            if not is_terminating_namespace(error):
                self._events.event(self.about(owner), "Warning", "FailedCreate", f"Error creating: {error.message}")
            raise
        self._expectations.wrote(key_of(owner), self._pods.informer, made)
        self._events.event(self.about(owner), "Normal", "SuccessfulCreate", f"Created pod: {name_of(made)}")
        return made

    async def delete(self, owner: Object, pod: Object) -> None:
        """Delete a pod of the owner; it may be gone already.

        Raises ApiError, after telling of it.
        """
        name = name_of(pod)
        self._expectations.deleted(key_of(owner), self._pods.informer, pod)
        try:
            await self._kube.delete(PODS, name, namespace=namespace_of(pod))
        except NotFoundError:
            return
        except ApiError as error:
            self._expectations.forget(key_of(owner))
            self._events.event(self.about(owner), "Warning", "FailedDelete", f"Error deleting: {error.message}")
            raise
        self._events.event(self.about(owner), "Normal", "SuccessfulDelete", f"Deleted pod: {name}")

    async def claim(self, owner: Object, *, finalizer: str = "") -> list[Object]:
        """Return the owner's pods that its selector selects: others of its pods are let go, pods that nobody controls
        and it selects are taken in."""
        selector = owner["spec"].get("selector") or {}
        kept: list[Object] = []
        for pod in self._pods.of(uid_of(owner)):
            if match_expressions(selector, labels_of(pod)):
                kept.append(pod)
            elif not is_deleting(owner):
                await self._release(owner, pod, finalizer)
        if is_deleting(owner):
            return kept
        for pod in self._pods.orphans(namespace_of(owner)):
            if not is_deleting(pod) and match_expressions(selector, labels_of(pod)):
                adopted = await self._adopt(owner, pod, finalizer)
                kept += [] if adopted is None else [adopted]
        return sorted(kept, key=key_of)

    async def _adopt(self, owner: Object, pod: Object, finalizer: str) -> Object | None:
        metadata: dict[str, Any] = {"uid": uid_of(pod)}
        metadata["ownerReferences"] = [controller_reference(owner, self._resource)]
        if finalizer:
            metadata["finalizers"] = [finalizer]
        return await self._patch(owner, pod, metadata)

    async def _release(self, owner: Object, pod: Object, finalizer: str) -> None:
        metadata: dict[str, Any] = {"uid": uid_of(pod)}
        metadata["ownerReferences"] = [{"$patch": "delete", "uid": uid_of(owner)}]
        if finalizer:
            metadata["$deleteFromPrimitiveList/finalizers"] = [finalizer]
        await self._patch(owner, pod, metadata)

    async def _patch(self, owner: Object, pod: Object, metadata: Mapping[str, Any]) -> Object | None:
        try:
            changed = await self._kube.patch(
                PODS, name_of(pod), {"metadata": metadata}, kind=Patch.STRATEGIC, namespace=namespace_of(pod),
                field_manager=MANAGER,
            )  # fmt: skip
        except NotFoundError:
            return None
        self._expectations.wrote(key_of(owner), self._pods.informer, changed)
        return changed


def owners_of_change(old: Object | None, new: Object | None, kind: str) -> Sequence[str]:
    """Keys of the objects of a kind that a change of something they control concerns."""
    found: dict[str, None] = {}
    for obj in (old, new):
        owner = controller_of(obj) if obj is not None else None
        if obj is not None and owner is not None and owner.get("kind") == kind:
            found[f"{namespace_of(obj)}/{owner['name']}"] = None
    return list(found)
