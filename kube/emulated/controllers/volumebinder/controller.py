"""Binds claims to volumes, and says what becomes of volumes whose claim is gone.

Source: pkg/controller/volume/persistentvolume of Kubernetes 1.34. Nothing here provisions volumes: the provisioner of a
class is somebody's program, which is asked by the claim's annotations. Volumes that are to be recycled fail, as no
recycler pod runs. Claims of classes that wait for a consumer are the scheduler's to bind: it gives them a volume, or
says by an annotation for which node one is to be made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import (
    Object,
    annotations_of,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
    version_of,
)
from mews.kube.api.quantities import parse
from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    Resource,
)
from mews.kube.api.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    PROVISIONERS,
    SELECTED_NODE,
    annotated,
    bound_to,
    claims_of,
    class_of,
    has_class,
    is_bound_to,
    modes_differ,
    waits_for_consumer,
)
from mews.kube.clock import rest
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import MANAGER, SyncLoop
from mews.kube.emulated.controllers.volumebinder import policy
from mews.kube.events import EventRecorder, reference

_AGAIN_S = 15.0
"""How often everything is looked at anew (--pvclaimbinder-sync-period)."""
_LOST = "Data on the volume is lost!"


class VolumeBinder:
    """Component: one for a cluster."""

    def __init__(self, context: Context, *, informers: Informers, events: EventRecorder) -> None:
        self._kube = context.kube
        self._events = events
        self._known = {each: informers.of(each) for each in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES)}
        self._classes, self._pods = (informers.of(each) for each in (STORAGE_CLASSES, PODS))
        self._objects: dict[Resource, dict[str, Object]] = {each: {} for each in self._known}
        """What is known, with what was written and has not come back yet."""
        self._loops = {
            PERSISTENT_VOLUME_CLAIMS: SyncLoop(context, self._sync_claim_at),
            PERSISTENT_VOLUMES: SyncLoop(context, self._sync_volume_at),
        }

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in (*self._known.values(), self._classes, self._pods):
            await informer.synced()
        for resource in (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS):
            for obj in self._known[resource].items():
                self._note(resource, obj)
            self._known[resource].on_change(self._loops[resource].add_changed)
        async with asyncio.TaskGroup() as tasks:
            for loop in self._loops.values():
                tasks.create_task(loop.run())
            while True:
                await rest(_AGAIN_S)
                for resource, informer in self._known.items():
                    for obj in informer.items():
                        self._loops[resource].add(key_of(obj))

    def _note(self, resource: Resource, obj: Object) -> bool:
        """Keep it unless a newer one is known."""
        known = self._objects[resource].get(key_of(obj))
        if known is not None and uid_of(known) == uid_of(obj) and version_of(known) > version_of(obj):
            return False
        self._objects[resource][key_of(obj)] = obj
        return True

    async def _write(self, resource: Resource, obj: Object, subresource: str = "") -> Object:
        namespace = namespace_of(obj) or None
        made = await self._kube.replace(
            resource, obj, namespace=namespace, subresource=subresource, field_manager=MANAGER
        )
        self._note(resource, made)
        return made

    def _emit(self, resource: Resource, obj: Object, kind: str, reason: str, text: str) -> None:
        about = reference({**obj, "kind": resource.kind, "apiVersion": resource.api_version})
        self._events.event(about, kind, reason, text)

    # Claims

    async def _sync_claim_at(self, key: str) -> None:
        claim = self._known[PERSISTENT_VOLUME_CLAIMS].at(key)
        if claim is None:
            gone = self._objects[PERSISTENT_VOLUME_CLAIMS].pop(key, None)
            if gone is not None and gone["spec"].get("volumeName"):
                self._loops[PERSISTENT_VOLUMES].add(gone["spec"]["volumeName"])
        elif self._note(PERSISTENT_VOLUME_CLAIMS, claim):
            if BIND_COMPLETED in annotations_of(claim):
                await self._sync_bound(claim)
            elif claim["spec"].get("volumeName"):
                await self._sync_asking(claim)
            else:
                await self._sync_unbound(claim)

    async def _sync_unbound(self, claim: Object) -> None:
        storage_class = self._classes.at(class_of(claim)) if class_of(claim) else None
        waits = waits_for_consumer(storage_class)
        volume = policy.best_match(claim, self._objects[PERSISTENT_VOLUMES].values(), waits=waits)
        if volume is not None:
            await self._bind(volume, claim)
            return
        if not has_class(claim) and (found := policy.default_class(self._classes.items())) is not None:
            await self._write(
                PERSISTENT_VOLUME_CLAIMS,
                {**claim, "spec": {**claim["spec"], "storageClassName": name_of(found)}},
            )
            return
        if waits and SELECTED_NODE not in annotations_of(claim):
            self._emit_waiting(claim)
        elif class_of(claim):
            await self._ask_provisioner(claim, storage_class)
            return
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Normal", "FailedBinding", text)
        await self._set_claim_phase(claim, "Pending", None)

    def _users_of(self, claim: Object) -> list[Object]:
        namespace, name = namespace_of(claim), name_of(claim)
        users = (pod for pod in self._pods.items() if namespace_of(pod) == namespace and not is_terminal(pod))
        return sorted((pod for pod in users if any(name == each for each, _ in claims_of(pod))), key=name_of)

    def _emit_waiting(self, claim: Object) -> None:
        names = [name_of(pod) for pod in self._users_of(claim) if not node_name_of(pod)]
        reason, text = "WaitForFirstConsumer", "waiting for first consumer to be created before binding"
        if names:
            what = "pods" if len(names) > 1 else "pod"
            reason, text = "WaitForPodScheduled", f"waiting for {what} {','.join(names)} to be scheduled"
        self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Normal", reason, text)

    async def _ask_provisioner(self, claim: Object, storage_class: Object | None) -> None:
        if storage_class is None:
            text = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "ProvisioningFailed", text)
            return
        provisioner = storage_class["provisioner"]
        if provisioner.startswith("kubernetes.io/"):
            text = f"no volume plugin matched name: {provisioner}"
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "ProvisioningFailed", text)
            return
        if annotations_of(claim).get(PROVISIONERS[-1]) != provisioner:
            claim = await self._write(
                PERSISTENT_VOLUME_CLAIMS, annotated(claim, **{name: str(provisioner) for name in PROVISIONERS})
            )
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Normal", "ExternalProvisioning", text)

    async def _sync_asking(self, claim: Object) -> None:
        """A claim that names the volume it wants."""
        volume = self._objects[PERSISTENT_VOLUMES].get(claim["spec"]["volumeName"])
        if volume is None:
            await self._set_claim_phase(claim, "Pending", None)
        elif is_bound_to(volume, claim):
            await self._bind(volume, claim)
        elif volume["spec"].get("claimRef") is not None:
            text = f'volume "{name_of(volume)}" already bound to a different claim.'
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "FailedBinding", text)
            if BOUND_BY_CONTROLLER not in annotations_of(claim):
                await self._set_claim_phase(claim, "Pending", None)
        elif why := policy.misfit(volume, claim):
            text = f'Cannot bind to requested volume "{name_of(volume)}": {why}'
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "VolumeMismatch", text)
            await self._set_claim_phase(claim, "Pending", None)
        else:
            await self._bind(volume, claim)

    async def _sync_bound(self, claim: Object) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            await self._lose(claim, "ClaimLost", f"Bound claim has lost reference to PersistentVolume. {_LOST}")
            return
        volume = self._objects[PERSISTENT_VOLUMES].get(name)
        if volume is None:
            await self._lose(claim, "ClaimLost", f"Bound claim has lost its PersistentVolume. {_LOST}")
            return
        reference_ = volume["spec"].get("claimRef")
        if reference_ is None or reference_.get("uid") == uid_of(claim):
            await self._bind(volume, claim)
        else:
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            await self._lose(claim, "ClaimMisbound", text)

    async def _lose(self, claim: Object, reason: str, text: str) -> None:
        if (claim.get("status") or {}).get("phase") != "Lost":
            claim = await self._set_claim_phase(claim, "Lost", None)
            self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", reason, text)

    async def _set_claim_phase(self, claim: Object, phase: str, volume: Object | None) -> Object:
        before = claim.get("status") or {}
        status = {**before, "phase": phase}
        if volume is None:
            for name in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                status.pop(name, None)
        else:
            spec = volume["spec"]
            status["accessModes"] = spec.get("accessModes")
            if before.get("phase") != phase and _storage(before) != _storage(spec):
                status["capacity"] = spec.get("capacity")
            if (before.get("phase"), phase) == ("Pending", "Bound") and spec.get("volumeAttributesClassName"):
                status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]
        if status == before:
            return claim
        return await self._write(PERSISTENT_VOLUME_CLAIMS, {**claim, "status": status}, "status")

    async def _bind(self, volume: Object, claim: Object) -> None:
        """Write it into both, the volume first; what is written already stays."""
        wanted = reference({**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1"})
        changed = bound_to(volume, claim, wanted)
        if changed != volume:
            volume = await self._write(PERSISTENT_VOLUMES, changed)
        volume = await self._set_volume_phase(volume, "Bound")
        changed = claim
        if claim["spec"].get("volumeName") != name_of(volume):
            changed = {**claim, "spec": {**claim["spec"], "volumeName": name_of(volume)}}
            changed = annotated(changed, **{BOUND_BY_CONTROLLER: "yes"})
        if BIND_COMPLETED not in annotations_of(claim):
            changed = annotated(changed, **{BIND_COMPLETED: "yes"})
        if changed != claim:
            claim = await self._write(PERSISTENT_VOLUME_CLAIMS, changed)
        await self._set_claim_phase(claim, "Bound", volume)

    # Volumes

    async def _sync_volume_at(self, key: str) -> None:
        volume = self._known[PERSISTENT_VOLUMES].at(key)
        if volume is None:
            gone = self._objects[PERSISTENT_VOLUMES].pop(key, None)
            if gone is not None and gone["spec"].get("claimRef"):
                self._loops[PERSISTENT_VOLUME_CLAIMS].add(_claim_key(gone))
        elif self._note(PERSISTENT_VOLUMES, volume):
            await self._sync_volume(volume)

    async def _sync_volume(self, volume: Object) -> None:
        given = volume["spec"].get("claimRef")
        if not given or not given.get("uid"):
            await self._set_volume_phase(volume, "Available")
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim["spec"].get("volumeName"):
            if modes_differ(volume, claim):
                self._emit_modes(volume, claim)
            else:
                self._loops[PERSISTENT_VOLUME_CLAIMS].add(key_of(claim))
        elif claim["spec"]["volumeName"] == name_of(volume):
            await self._set_volume_phase(volume, "Bound")
        elif PROVISIONED_BY in annotations_of(volume) and _reclaims(volume, "Delete"):
            await self._release(volume)
        else:
            await self._unbind(volume)

    async def _claim_of(self, volume: Object) -> Object | None:
        """Return the very claim that the volume names, looked up where the cache may be late."""
        key, uid = _claim_key(volume), volume["spec"]["claimRef"]["uid"]
        claim = self._objects[PERSISTENT_VOLUME_CLAIMS].get(key)
        is_known_gone = claim is None and _phase(volume) in ("Released", "Failed")
        if not is_known_gone and (claim is None or uid_of(claim) != uid):
            namespace, _, name = key.partition("/")
            try:
                claim = await self._kube.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace)
            except NotFoundError:
                claim = None
        return claim if claim is not None and uid_of(claim) == uid else None

    def _emit_modes(self, volume: Object, claim: Object) -> None:
        start, end = "Cannot bind PersistentVolume", "due to incompatible volumeMode."
        text = f'{start} to requested PersistentVolumeClaim "{name_of(claim)}" {end}'
        self._emit(PERSISTENT_VOLUMES, volume, "Warning", "VolumeMismatch", text)
        text = f'{start} "{name_of(volume)}" to requested PersistentVolumeClaim {end}'
        self._emit(PERSISTENT_VOLUME_CLAIMS, claim, "Warning", "VolumeMismatch", text)

    async def _set_volume_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        if _phase(volume) == phase:
            return volume
        status = {**(volume.get("status") or {}), "phase": phase, "message": message}
        return await self._write(PERSISTENT_VOLUMES, {**volume, "status": status}, "status")

    async def _release(self, volume: Object) -> None:
        if _phase(volume) not in ("Released", "Failed"):
            volume = await self._set_volume_phase(volume, "Released")
        if _reclaims(volume, "Recycle"):
            is_known = any(source in volume["spec"] for source in ("hostPath", "nfs"))
            text = (
                "Recycle failed: no recycler pod runs here" if is_known else "No recycler plugin found for the volume!"
            )
            await self._fail(volume, "VolumeFailedRecycle", text)
        elif _reclaims(volume, "Delete") and (why := policy.undeletable(volume)) is not None:
            if why:
                await self._fail(volume, "VolumeFailedDelete", why)
                return
            try:
                await self._kube.delete(PERSISTENT_VOLUMES, name_of(volume))
            except NotFoundError:
                return

    async def _fail(self, volume: Object, reason: str, text: str) -> None:
        if _phase(volume) != "Failed":
            volume = await self._set_volume_phase(volume, "Failed", text)
            self._emit(PERSISTENT_VOLUMES, volume, "Warning", reason, text)

    async def _unbind(self, volume: Object) -> None:
        """The claim has got another volume: one that we promised is free again, one that a user did stays promised."""
        if BOUND_BY_CONTROLLER in annotations_of(volume):
            spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
            left = {k: v for k, v in annotations_of(volume).items() if k != BOUND_BY_CONTROLLER}
            changed = {**volume, "metadata": {**volume["metadata"], "annotations": left}, "spec": spec}
        else:
            promised = {name: value for name, value in volume["spec"]["claimRef"].items() if name != "uid"}
            changed = {**volume, "spec": {**volume["spec"], "claimRef": promised}}
        volume = await self._write(PERSISTENT_VOLUMES, changed)
        await self._set_volume_phase(volume, "Available")


def _storage(part: Mapping[str, Any]) -> Any:
    amount = (part.get("capacity") or {}).get("storage")
    return None if amount is None else parse(amount)


def _phase(volume: Object) -> str:
    return str((volume.get("status") or {}).get("phase", ""))


def _reclaims(volume: Object, how: str) -> bool:
    return bool(volume["spec"].get("persistentVolumeReclaimPolicy") == how)


def _claim_key(volume: Object) -> str:
    given = volume["spec"]["claimRef"]
    return f"{given.get('namespace', '')}/{given.get('name', '')}"
