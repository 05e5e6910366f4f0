"""Removes what nobody owns any more (upstream pkg/controller/garbagecollector): dependents of owners that are gone, in
the background or before their owner; references to owners that never were; and lets orphans be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_deleting, name_of, namespace_of, uid_of
from mews.kube.api.resources import (
    CONFIGMAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    JOBS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, Patch, Preconditions
from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop

DISCOVERY_S = 30.0
"""How often it is looked for kinds of the user's own."""
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
WATCHED = (
    *(PODS, CONFIGMAPS, SECRETS, SERVICES, SERVICE_ACCOUNTS, ENDPOINTS, ENDPOINT_SLICES, LEASES, NODES),
    *(DEPLOYMENTS, REPLICA_SETS, DAEMON_SETS, STATEFUL_SETS, CONTROLLER_REVISIONS, REPLICATION_CONTROLLERS),
    *(JOBS, CRON_JOBS, DISRUPTION_BUDGETS, PERSISTENT_VOLUME_CLAIMS),
)
"""Built-in kinds that own or are owned; all kinds of the user's own come to them."""
WHERE_SERVED = (RESOURCE_CLAIMS, RESOURCE_SLICES)
"""More of them, of API groups that a cluster may not serve: pods own claims, and nodes slices."""


class _Place(Struct, frozen=True):
    """Where an object lies, and what it was as it was last seen."""

    resource: Resource
    obj: Object


class GarbageCollector:
    """Component: one for a cluster."""

    def __init__(self, context: Context, pace: Pace, *, informers: Informers) -> None:
        self._context = context
        self._pace = pace
        self._watched: dict[Resource, Informer] = {resource: informers.of(resource) for resource in WATCHED}
        self._places: dict[str, _Place] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._awaited: set[str] = set()
        """Objects that have ever waited for their dependents: the mark deletingDependents of upstream stays, too."""
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._loop = SyncLoop(context, self._attend)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in self._watched.values():
            await informer.synced()
        for resource, informer in self._watched.items():
            self._listen(resource, informer)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._loop.run())
            while True:
                try:
                    await self._discover(tasks)
                except (ApiError, UnavailableError) as error:
                    self._context.log.info("kinds are not looked up: %s", error)
                await rest(self._pace.loop_s(DISCOVERY_S))

    async def _discover(self, tasks: asyncio.TaskGroup) -> None:
        """Watch the user's own kinds too, as they come."""
        for resource in await self._context.kube.discovery():
            self._kinds[resource.api_version, resource.kind] = resource
            if (_is_users(resource) or resource in WHERE_SERVED) and resource not in self._watched:
                informer = self._watched[resource] = Informer(self._context.kube, resource, lean=True)
                tasks.create_task(informer.run())
                self._listen(resource, informer)

    def _listen(self, resource: Resource, informer: Informer) -> None:
        def on_change(old: Object | None, new: Object | None) -> None:
            self._on_change(resource, old, new)

        informer.on_change(on_change)

    # The graph

    # Complex: one pass over what a change frees and what it holds.
    def _on_change(self, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: C901
        if old is not None:
            for owner in _owners(old):
                self._drop_dependent(str(owner.get("uid")), uid_of(old))
        if new is None:
            if old is not None:
                self._forget(uid_of(old), old)
            return
        uid = uid_of(new)
        self._places[uid] = _Place(resource, new)
        self._wake_freed_owners(old, new)
        for owner in _owners(new):
            self._dependents.setdefault(str(owner.get("uid")), {})[uid] = None
        if _is_ending(new) and (old is None or _endings(old) != _endings(new)):
            # those that stand or fall with it are looked at while it still waits for them: afterwards they are free
            if _awaits_dependents(new):
                self._awaited.add(uid)
                for dependent in self._dependents_of(uid):
                    self._loop.add(dependent)
            self._loop.add(uid)
        elif (old is None or _owners(old) != _owners(new)) and _needs_owner(new, self._places):
            self._loop.add(uid)
        for owner in _owners(new) if old is None else ():  # one that comes while its owner waits for its dependents
            known = self._places.get(str(owner.get("uid")))
            if known is not None and _is_ending(known.obj):
                self._loop.add(uid)

    def _drop_dependent(self, owner: str, uid: str) -> None:
        dependents = self._dependents.get(owner, {})
        dependents.pop(uid, None)
        if not dependents:
            self._dependents.pop(owner, None)

    def _wake_freed_owners(self, old: Object | None, new: Object) -> None:
        """Owners that wait for their dependents, and that this one holds no longer."""
        for owner in () if old is None else _owners(old):
            uid = str(owner.get("uid"))
            known = self._places.get(uid)
            if owner.get("blockOwnerDeletion") and not _holds(new, uid) and known is not None and _is_ending(known.obj):
                self._loop.add(uid)

    def _forget(self, uid: str, old: Object) -> None:
        self._places.pop(uid, None)
        self._awaited.discard(uid)
        for dependent in self._dependents.get(uid, {}):
            self._loop.add(dependent)
        for owner in _owners(old):
            known = self._places.get(str(owner.get("uid")))
            if known is not None and _is_ending(known.obj):
                self._loop.add(str(owner.get("uid")))

    def _dependents_of(self, uid: str) -> list[str]:
        return [dependent for dependent in self._dependents.get(uid, {}) if dependent in self._places]

    # What is to be done about one object

    async def _attend(self, uid: str) -> None:
        place = self._places.get(uid)
        if place is None:
            return
        obj = place.obj
        finalizers = obj["metadata"].get("finalizers") or ()
        if is_deleting(obj):
            if ORPHAN in finalizers:
                await self._orphan(place)
            elif FOREGROUND in finalizers:
                await self._end_dependents(place)
            return
        if _owners(obj):
            await self._judge(place)

    async def _orphan(self, place: _Place) -> None:
        """The dependents stay, without the owner; then it goes."""
        owner = uid_of(place.obj)
        for uid in self._dependents_of(owner):
            await self._drop_references(self._places[uid], [owner])
        await self._drop_finalizer(place, ORPHAN)

    async def _end_dependents(self, place: _Place) -> None:
        """The dependents that hold their owner go first; then it goes. One that is being deleted already is left alone:
        its own changes wake it up, and in a circle of owners each would call the next for ever."""
        owner = uid_of(place.obj)
        dependents = self._dependents_of(owner)
        holding = [uid for uid in dependents if _holds(self._places[uid].obj, owner)]
        for uid in dependents:
            if not is_deleting(self._places[uid].obj):
                self._loop.add(uid)
        if not holding:
            await self._drop_finalizer(place, FOREGROUND)

    async def _judge(self, place: _Place) -> None:
        """Whether an object with owners may stay: one of them must be there, and not wait for this to go."""
        obj, solid, dangling, waiting = place.obj, 0, [], []
        for owner in _owners(obj):
            found = await self._find(owner, namespace_of(obj))
            if found is None:
                dangling.append(str(owner.get("uid")))
            elif _awaits_dependents(found):
                waiting.append(str(owner.get("uid")))
            else:
                solid += 1
        if solid:
            if dangling or waiting:
                await self._drop_references(place, [*dangling, *waiting])
            return
        dependents = self._dependents_of(uid_of(obj))
        if waiting and dependents:
            circled = not self._awaited.isdisjoint(dependents)
            if circled and any(owner.get("blockOwnerDeletion") for owner in _owners(obj)):
                await self._unblock(place)  # a deletion of what was there before that is refused, and tried again
            await self._delete(place, "Foreground")
        else:
            await self._delete(place, _propagation(obj))

    async def _find(self, owner: Mapping[str, Any], namespace: str) -> Object | None:
        """Return the owner as it was last seen or as the server has it, None when it is gone. One of a kind that is not
        served stands for itself: nothing is deleted on a guess."""
        known = self._places.get(str(owner.get("uid")))
        if known is not None:
            return known.obj
        resource = await self._resource(str(owner.get("apiVersion")), str(owner.get("kind")))
        if resource is None:
            return {"metadata": {"name": owner.get("name"), "uid": owner.get("uid")}}
        try:
            found = await self._context.kube.get(
                resource, str(owner["name"]), namespace=namespace if resource.namespaced else None
            )
        except NotFoundError:
            return None
        return found if uid_of(found) == owner.get("uid") else None

    async def _resource(self, api_version: str, kind: str) -> Resource | None:
        if (api_version, kind) not in self._kinds:
            for resource in await self._context.kube.discovery():
                self._kinds[resource.api_version, resource.kind] = resource
        return self._kinds.get((api_version, kind))

    # Writes

    async def _drop_references(self, place: _Place, uids: Sequence[str]) -> None:
        obj = place.obj
        kept = [dict(owner) for owner in _owners(obj) if owner.get("uid") not in uids]
        await self._change(place, {"ownerReferences": kept or None})

    async def _unblock(self, place: _Place) -> None:
        """Its owners need not wait for it: it may stand in a circle of objects that wait for each other. Upstream
        (attemptToDeleteItem) guesses so of whatever has a dependent that waits, and so do we."""
        freed = [{**owner, "blockOwnerDeletion": False} for owner in _owners(place.obj)]
        await self._change(place, {"ownerReferences": freed})

    async def _drop_finalizer(self, place: _Place, finalizer: str) -> None:
        kept = [name for name in place.obj["metadata"].get("finalizers") or () if name != finalizer]
        await self._change(place, {"finalizers": kept or None})

    async def _change(self, place: _Place, metadata: Mapping[str, Any]) -> None:
        """A merge patch that fails, and is tried again on what is there then, if anybody else was faster."""
        obj = place.obj
        body = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"], **metadata}}
        try:
            await self._context.kube.patch(
                place.resource, name_of(obj), body, kind=Patch.MERGE, namespace=namespace_of(obj) or None,
                field_manager=MANAGER,
            )  # fmt: skip
        except NotFoundError:
            return

    async def _delete(self, place: _Place, propagation: str) -> None:
        obj = place.obj
        preconditions = Preconditions(uid=uid_of(obj), resource_version=obj["metadata"]["resourceVersion"])
        options = DeleteOptions(preconditions=preconditions, propagation=propagation)
        try:
            await self._context.kube.delete(
                place.resource, name_of(obj), namespace=namespace_of(obj) or None, options=options
            )
        except NotFoundError:
            return
        except ConflictError:
            current = self._places.get(uid_of(obj))
            if current is not None:
                raise


def _owners(obj: Object) -> Sequence[Mapping[str, Any]]:
    return obj["metadata"].get("ownerReferences") or ()


def _needs_owner(obj: Object, known: Mapping[str, _Place]) -> bool:
    """Return whether an owner of it is not known to be there."""
    return any(str(owner.get("uid")) not in known for owner in _owners(obj))


def _is_ending(obj: Object) -> bool:
    """Return whether it is deleted and waits for its dependents: for their end or for their freedom."""
    return bool(_endings(obj))


def _endings(obj: Object) -> set[str]:
    """Return them for which of both it waits. A second deletion may ask for the other one."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return {FOREGROUND, ORPHAN}.intersection(finalizers) if is_deleting(obj) else set()


def _awaits_dependents(obj: Object) -> bool:
    return FOREGROUND in _endings(obj)


def _holds(dependent: Object, owner: str) -> bool:
    return any(ref.get("uid") == owner and ref.get("blockOwnerDeletion") for ref in _owners(dependent))


def _propagation(obj: Object) -> str:
    finalizers = obj["metadata"].get("finalizers") or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"


def _is_users(resource: Resource) -> bool:
    """Return whether a kind is none of Kubernetes' own."""
    return "." in resource.group and not resource.group.endswith(".k8s.io")
