"""Keeps storage objects that are in use (k8s.io/kubernetes pkg/controller/volume: pvc-, pv- and vacprotection).

Admission gives each a finalizer as it is made; what is being deleted loses it as soon as nothing uses it any more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mews.kube.api.errors import NotFoundError
from mews.kube.api.finalizers import IN_USE
from mews.kube.api.objects import (
    Object,
    is_deleting,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
)
from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    VOLUME_ATTRIBUTES_CLASSES,
    Resource,
)
from mews.kube.api.volumes import claims_of
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers, controller_of
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop


class _Guard:
    """The finalizer of one resource: who has lost it gets it back, who is being deleted unused loses it."""

    def __init__(
        self, context: Context, informers: Informers, resource: Resource, is_used: Callable[[Object], Awaitable[bool]]
    ) -> None:
        self._kube = context.kube
        self._resource = resource
        self._finalizer = IN_USE[resource]
        self._is_used = is_used
        self._known = informers.of(resource)
        self.loop = SyncLoop(context, self._sync)

    async def run(self) -> None:
        """Run until cancelled; the caches that ``is_used`` asks are there already."""
        await self._known.synced()
        self._known.on_change(self._changed)
        await self.loop.run()

    def _changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and (self._finalizer in _finalizers(new)) == is_deleting(new):
            self.loop.add(key_of(new))

    async def _sync(self, key: str) -> None:
        obj = self._known.at(key)
        if obj is None or (self._finalizer in _finalizers(obj)) != is_deleting(obj):
            return
        left = [each for each in _finalizers(obj) if each != self._finalizer]
        if not is_deleting(obj):
            left.append(self._finalizer)
        elif await self._is_used(obj):
            return
        changed = {**obj, "metadata": {**obj["metadata"], "finalizers": left}}
        try:
            await self._kube.replace(
                self._resource, changed, namespace=namespace_of(obj) or None, field_manager=MANAGER
            )
        except NotFoundError:
            return


class ClaimProtection:
    """Component: a claim stays for as long as a pod that has a node names it, be it at its end."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._kube = context.kube
        self._pods = informers.of(PODS)
        self._guard = _Guard(context, informers, PERSISTENT_VOLUME_CLAIMS, self._is_used)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._pods.synced()
        self._pods.on_change(self._pod_changed)
        await self._guard.run()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (is_terminal(new) or not node_name_of(new)):
            self._add_claims_of(new)
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._add_claims_of(old)

    def _add_claims_of(self, pod: Object) -> None:
        for name, _ in claims_of(pod):
            self._guard.loop.add(f"{namespace_of(pod)}/{name}")

    async def _is_used(self, claim: Object) -> bool:
        """Return it by a pod that is known, or, as one may have come this moment, by one that is listed now."""
        namespace = namespace_of(claim)
        if any(namespace_of(pod) == namespace and _uses(pod, claim) for pod in self._pods.items()):
            return True
        return any(_uses(pod, claim) for pod in (await self._kube.list(PODS, namespace=namespace)).items)


class VolumeProtection:
    """Component: a volume stays for as long as it is bound."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._guard = _Guard(context, informers, PERSISTENT_VOLUMES, self._is_used)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._guard.run()

    async def _is_used(self, volume: Object) -> bool:
        return (volume.get("status") or {}).get("phase") == "Bound"


class AttributesClassProtection:
    """Component: a VolumeAttributesClass stays for as long as a claim or a volume names it."""

    def __init__(self, context: Context, *, informers: Informers) -> None:
        self._users = (informers.of(PERSISTENT_VOLUME_CLAIMS), informers.of(PERSISTENT_VOLUMES))
        self._guard = _Guard(context, informers, VOLUME_ATTRIBUTES_CLASSES, self._is_used)

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in self._users:
            await informer.synced()
            informer.on_change(self._user_changed)
        await self._guard.run()

    def _user_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            for name in _classes_of(old) - (_classes_of(new) if new is not None else set()):
                self._guard.loop.add(name)

    async def _is_used(self, attributes_class: Object) -> bool:
        name = name_of(attributes_class)
        return any(name in _classes_of(each) for informer in self._users for each in informer.items())


def _finalizers(obj: Object) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())


def _uses(pod: Object, claim: Object) -> bool:
    if not node_name_of(pod):
        return False
    return any(
        name == name_of(claim) and (not own or (not _is_shut_down(pod) and _is_owned_by(claim, pod)))
        for name, own in claims_of(pod)
    )


def _is_shut_down(pod: Object) -> bool:
    return is_deleting(pod) and pod["metadata"].get("deletionGracePeriodSeconds") == 0


def _is_owned_by(claim: Object, pod: Object) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner.get("uid") == uid_of(pod)


def _classes_of(obj: Object) -> set[str]:
    spec, status = obj["spec"], obj.get("status") or {}
    names = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {str(name) for name in names if name}
