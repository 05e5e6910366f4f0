"""Makes volumes that are folders, as kind's local-path provisioner: an external provisioner with a class of its own.

A claim gets its volume once the scheduler has chosen a node for the first pod that uses it; the volume is reachable
from that node alone. What is said of a claim is said as by sig-storage-lib-external-provisioner (controller.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Protocol

from mews.kube.api.errors import AlreadyExistsError, NotFoundError
from mews.kube.api.objects import Object, annotations_of, is_deleting, key_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from mews.kube.api.volumes import PROVISIONED_BY, PROVISIONERS, SELECTED_NODE, class_of, waits_for_consumer
from mews.kube.client.port import KubeApi
from mews.kube.component import Context
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.emulated.controllers.syncing import SyncLoop
from mews.kube.events import EventRecorder, reference

PROVISIONER = "mews.dev/folder"
CLASS = "standard"
MANAGER = "mews"
DEFAULT_CLASS: Mapping[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
}
"""It bears the name of kind's, which charts name."""
_AGAIN_S = 15.0
_HOSTNAME = "kubernetes.io/hostname"


class Folders(Protocol):
    """Where the volumes of all nodes lie."""

    @property
    def root(self) -> PurePosixPath:
        """The folder that has one for each node."""
        ...

    async def make(self, path: PurePosixPath) -> None:
        """Make a folder, which is there then, for everybody to write in."""
        ...

    async def remove(self, path: PurePosixPath) -> None:
        """Remove it with all that is in it."""
        ...


class NoFolders:
    """For virtual time, in which no program could look into one."""

    root = PurePosixPath("/var/local-path-provisioner")

    async def make(self, path: PurePosixPath) -> None:
        """Nothing."""

    async def remove(self, path: PurePosixPath) -> None:
        """Nothing."""


async def make_default_class(kube: KubeApi) -> None:
    """Make the class, unless there is one of its name."""
    try:
        await kube.create(STORAGE_CLASSES, dict(DEFAULT_CLASS), field_manager=MANAGER)
    except AlreadyExistsError:
        return


class FolderProvisioner:
    """Component: one for a cluster. Of what it has made it knows by the volumes alone, so it may end at any time."""

    def __init__(self, context: Context, folders: Folders) -> None:
        self._context = context
        self._kube = context.kube
        self._folders = folders
        self._informers = Informers(context.kube)
        self._claims, self._volumes, self._classes, self._nodes = (
            self._informers.of(each) for each in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, NODES)
        )
        self._events = EventRecorder(context, PROVISIONER)
        self._making = SyncLoop(context, self._make_at)
        self._removing = SyncLoop(context, self._remove_at)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._informers.run())
            for informer in (self._classes, self._volumes, self._claims, self._nodes):
                await informer.synced()
            self._claims.on_change(self._making.add_changed)
            self._volumes.on_change(self._removing.add_changed)
            for loop in (self._making, self._removing, self._events):
                tasks.create_task(loop.run())

    def _emit(self, claim: Object, kind: str, reason: str, text: str) -> None:
        about = reference({**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1"})
        self._events.event(about, kind, reason, text)

    # Making

    async def _make_at(self, key: str) -> None:
        claim = self._claims.at(key)
        if claim is None or not self._is_asked_for(claim) or self._volumes.get(volume_name(claim)) is not None:
            return
        storage_class = self._classes.get(class_of(claim))
        place = annotations_of(claim).get(SELECTED_NODE)
        if storage_class is None or storage_class["provisioner"] != PROVISIONER:
            return
        if place is None and waits_for_consumer(storage_class):
            return
        node = self._node(place)
        text = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
        self._emit(claim, "Normal", "Provisioning", text)
        why = f'node "{place}" not found' if node is None else refusal(claim)
        if node is None or why:
            self._fail(claim, why)
            if node is None and place is not None:
                await self._choose_anew(claim)
            return
        await self._make(claim, volume_of(claim, storage_class, node, self._folders.root))

    async def _make(self, claim: Object, volume: Object) -> None:
        try:
            await self._folders.make(PurePosixPath(volume["spec"]["hostPath"]["path"]))
            await self._kube.create(PERSISTENT_VOLUMES, volume, field_manager=MANAGER)
        except AlreadyExistsError:
            return
        except OSError as error:
            self._fail(claim, error.strerror or str(error))
            self._making.add_after(key_of(claim), _AGAIN_S)
            return
        self._emit(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name_of(volume)}")

    def _fail(self, claim: Object, why: str) -> None:
        text = f'failed to provision volume with StorageClass "{class_of(claim)}": {why}'
        self._emit(claim, "Warning", "ProvisioningFailed", text)

    def _is_asked_for(self, claim: Object) -> bool:
        notes = annotations_of(claim)
        named = notes.get(PROVISIONERS[1]) or notes.get(PROVISIONERS[0])
        return named == PROVISIONER and not claim["spec"].get("volumeName") and not is_deleting(claim)

    def _node(self, place: str | None) -> Object | None:
        """Return the node that was chosen, or any where a class does not wait for that."""
        return self._nodes.get(place) if place is not None else next(self._nodes.items(), None)

    async def _choose_anew(self, claim: Object) -> None:
        """Take the choice back: then the scheduler decides the pod again."""
        left = {name: value for name, value in annotations_of(claim).items() if name != SELECTED_NODE}
        changed = {**claim, "metadata": {**claim["metadata"], "annotations": left}}
        await self._kube.replace(
            PERSISTENT_VOLUME_CLAIMS, changed, namespace=namespace_of(claim), field_manager=MANAGER
        )

    # Removing

    async def _remove_at(self, key: str) -> None:
        volume = self._volumes.at(key)
        if volume is None or annotations_of(volume).get(PROVISIONED_BY) != PROVISIONER:
            return
        spec = volume["spec"]
        is_free = (volume.get("status") or {}).get("phase") in ("Released", "Failed")
        if not is_free or spec.get("persistentVolumeReclaimPolicy") != "Delete" or is_deleting(volume):
            return
        path = PurePosixPath((spec.get("hostPath") or {}).get("path", "/"))
        if self._folders.root not in path.parents or ".." in path.parts:
            return  # somebody's volume, which says that it is one of ours
        await self._folders.remove(path)
        try:
            await self._kube.delete(PERSISTENT_VOLUMES, key)
        except NotFoundError:
            return


def volume_name(claim: Object) -> str:
    """Return the name of the volume that is made for a claim."""
    return f"pvc-{uid_of(claim)}"


def refusal(claim: Object) -> str:
    """Return why no folder can be what a claim asks for; "" if one can."""
    if claim["spec"].get("selector") is not None:
        return "claim.Spec.Selector is not supported"
    if (claim["spec"].get("volumeMode") or "Filesystem") != "Filesystem":
        return "block volumes are not supported: a folder is a file system"
    many = sorted({"ReadWriteMany", "ReadOnlyMany"} & set(claim["spec"].get("accessModes") or ()))
    return f"access mode {many[0]} is not supported: a folder is on one node" if many else ""


def volume_of(claim: Object, storage_class: Object, node: Object, root: PurePosixPath) -> dict[str, Any]:
    """Return the volume for a claim: a folder below that of its node, which bears the names of volume and claim."""
    name = volume_name(claim)
    path = root / name_of(node) / f"{name}_{namespace_of(claim)}_{name_of(claim)}"
    hostname = str((node["metadata"].get("labels") or {}).get(_HOSTNAME) or name_of(node))
    term = {"matchExpressions": [{"key": _HOSTNAME, "operator": "In", "values": [hostname]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(storage_class),
            "volumeMode": "Filesystem",
            "claimRef": reference({**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}),
            "hostPath": {"path": str(path), "type": "DirectoryOrCreate"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
