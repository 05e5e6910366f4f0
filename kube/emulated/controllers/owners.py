"""Who controls what: owner references, and an index of a cache by them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import Resource
from mews.kube.client.informer import Informer
from mews.kube.client.port import KubeApi


def controller_reference(owner: Mapping[str, Any], resource: Resource) -> dict[str, Any]:
    """Return the owner reference of what an object controls."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to an object's controller, None when it has none."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


class OwnedObjects:
    """The objects of a cache by their controller's uid, and those without one by namespace."""

    def __init__(self, informer: Informer) -> None:
        self.informer = informer
        self._of: dict[str, dict[str, Object]] = {}
        self._orphans: dict[str, dict[str, Object]] = {}
        informer.on_change(self._changed)

    def of(self, uid: str) -> list[Object]:
        """Return what that controller has, by key."""
        found = self._of.get(uid, {})
        return [found[key] for key in sorted(found)]

    def orphans(self, namespace: str) -> list[Object]:
        """Return what nobody controls there, by key."""
        found = self._orphans.get(namespace, {})
        return [found[key] for key in sorted(found)]

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            shelf, place = self._shelf(old)
            if shelf.get(place) is not None:
                found = shelf[place]
                found.pop(key_of(old), None)
                if not found:
                    del shelf[place]
        if new is not None:
            shelf, place = self._shelf(new)
            shelf.setdefault(place, {})[key_of(new)] = new

    def _shelf(self, obj: Object) -> tuple[dict[str, dict[str, Object]], str]:
        reference = controller_of(obj)
        if reference is None:
            return self._orphans, namespace_of(obj)
        return self._of, str(reference.get("uid"))


class Informers:
    """Component: one shared cache a resource for all controllers of a manager, made and run when it is first asked
    for."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self._known: dict[Resource, Informer] = {}
        self._owned: dict[Resource, OwnedObjects] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for informer in self._known.values():
                tasks.create_task(informer.run())
            await asyncio.Event().wait()

    def of(self, resource: Resource) -> Informer:
        """Return the cache of a resource."""
        if resource not in self._known:
            informer = self._known[resource] = Informer(self._kube, resource, lean=True)
            if self._tasks is not None:
                self._tasks.create_task(informer.run())
        return self._known[resource]

    def owned(self, resource: Resource) -> OwnedObjects:
        """Return the index of a cache by controllers."""
        if resource not in self._owned:
            self._owned[resource] = OwnedObjects(self.of(resource))
        return self._owned[resource]
