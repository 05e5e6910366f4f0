"""The volumes of pods as folders and files of this machine, for their containers' mounts.

ConfigMaps, Secrets and the downward API are written when a pod's first container starts, and again when they change.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, all_containers_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mews.kube.client.port import KubeApi
from mews.kube.clock import rest
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.environment import expand
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.in_cluster import FOLDER
from mews.kube.emulated.kubelet.volumes.atomic_writer import write_contents
from mews.kube.emulated.kubelet.volumes.contents import FILE_KINDS, ContentReader, Tokens
from mews.kube.emulated.kubelet.volumes.host_paths import HostPath, HostPaths

_REASON = "CreateContainerConfigError"
_KINDS = (*FILE_KINDS, "emptyDir", "ephemeral", "hostPath", "persistentVolumeClaim")
_SYNC_S = 60.0
"""Emulated seconds between two looks at what volumes are made of (the kubelet's syncFrequency)."""
_ANYONE, _ANYONE_OF_GROUP, _SHARED = 0o777, 0o2777, 0o1777
_BLOCK = 512
_NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class PodVolumes:
    """Makes them below ``root``, ``<pod uid>/volumes/<name>``, and keeps them current; ``host_paths`` says where paths
    of nodes are. ``provisioned`` is the folder in which the volumes of claims lie; ``speed`` emulated seconds are one
    real one. ``memory`` makes a folder in memory, for volumes of that medium; where it is None they are on disk."""

    def __init__(
        self,
        kube: Callable[[], KubeApi],
        root: Path,
        host_paths: HostPaths,
        *,
        provisioned: Path | None = None,
        tokens: Tokens | None = None,
        speed: float = 1.0,
        memory: Callable[[], Path | None] = lambda: None,
    ) -> None:
        self._make_memory = memory
        self._memory: Path | None = None
        self._kube = kube
        self._root = root
        self._host_paths = host_paths
        self._provisioned = provisioned
        self._reader = ContentReader(kube, tokens)
        self._period_s = _SYNC_S / speed
        self._written: dict[str, Object] = {}
        """The pods, by uid, for which files were written."""
        self._following: asyncio.Task[None] | None = None
        self._removing: set[asyncio.Task[None]] = set()

    async def mounts(self, pod: Object, name: str, env: Mapping[str, str] = _NO_VARIABLES) -> list[Mount]:
        """Return the volume mounts of a container, without its service account's; ``env`` is for ``subPathExpr``.

        Raises StartError for a volume that cannot be had.
        """
        volumes = {str(volume["name"]): volume for volume in pod["spec"].get("volumes") or ()}
        container = next(each for each in all_containers_of(pod) if each["name"] == name)
        found = []
        for mount in container.get("volumeMounts") or ():
            path, volume = str(mount["mountPath"]), volumes[str(mount["name"])]
            if path.rstrip("/") == FOLDER and "projected" in volume:
                continue
            source = await self._source(pod, volume)
            below = str(mount.get("subPath") or expand(str(mount.get("subPathExpr") or ""), env))
            place = _within(source.path, below, f"{mount['name']} of container {name}") if below else source.path
            found.append(Mount(path, str(place), bool(mount.get("readOnly")) or source.read_only))
        return found

    async def _source(self, pod: Object, volume: Mapping[str, Any]) -> HostPath:
        name = str(volume["name"])
        kind = next((key for key in volume if key != "name"), "emptyDir")
        if kind not in _KINDS:
            text = f"containers of emulated nodes have no such volumes; allowed: {', '.join(sorted(_KINDS))}"
            raise StartError(_REASON, f'volume "{name}": {kind}: {text}')
        if kind in ("persistentVolumeClaim", "ephemeral"):
            return await self._claimed(pod, volume)
        if kind == "hostPath":
            return self._host_paths.find(pod, name, volume["hostPath"] or {})
        folder = self._folder(pod, name)
        if folder.exists():
            return HostPath(folder, read_only=kind != "emptyDir")
        if kind == "emptyDir":
            place = self._empty(pod, volume)
            place.chmod(_ANYONE_OF_GROUP if _group(pod) else _ANYONE)
            return HostPath(folder)
        try:
            await self._write(pod, volume)
        except (ApiError, UnavailableError) as error:
            raise StartError(_REASON, f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
        self._follow(pod)
        return HostPath(folder, read_only=True)

    def _folder(self, pod: Object, name: str) -> Path:
        return self._root / uid_of(pod) / "volumes" / name

    def _empty(self, pod: Object, volume: Mapping[str, Any]) -> Path:
        """Return a new folder; one in memory has a link to it in its place."""
        name = str(volume["name"])
        folder = self._folder(pod, name)
        if (volume.get("emptyDir") or {}).get("medium") == "Memory" and self._memory is None:
            self._memory = self._make_memory()
        if (volume.get("emptyDir") or {}).get("medium") != "Memory" or self._memory is None:
            folder.mkdir(parents=True)
            return folder
        place = self._memory / uid_of(pod) / name
        place.mkdir(parents=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(place)
        return place

    def shared_memory(self, pod: Object) -> Path:
        """Return what the pod's containers have at /dev/shm, made for the first of them."""
        if self._memory is None:
            self._memory = self._make_memory()
        folder = (self._memory or self._root) / uid_of(pod) / ".shm"
        if not folder.exists():
            folder.mkdir(parents=True)
            folder.chmod(_SHARED)
        return folder

    async def _write(self, pod: Object, volume: Mapping[str, Any]) -> None:
        contents = await self._reader.contents(pod, volume)
        await asyncio.to_thread(write_contents, self._folder(pod, str(volume["name"])), contents)

    async def _claimed(self, pod: Object, volume: Mapping[str, Any]) -> HostPath:
        """Return the folder of the volume that the claim is bound to."""
        name, namespace = str(volume["name"]), namespace_of(pod)
        claim_name = next(claim for mounted, claim in _claims_by_volume(pod) if mounted == name)
        try:
            claim = await self._kube().get(PERSISTENT_VOLUME_CLAIMS, claim_name, namespace=namespace)
            bound = await self._kube().get(PERSISTENT_VOLUMES, str(claim["spec"].get("volumeName")))
        except (ApiError, UnavailableError) as error:
            raise StartError(_REASON, f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
        source = bound["spec"].get("hostPath") or bound["spec"].get("local")
        if source is None:
            text = "containers of emulated nodes have no such volumes; allowed: hostPath, local"
            raise StartError(_REASON, f'volume "{name}": PersistentVolume {name_of(bound)}: {text}')
        own = self._own(str(source["path"]))
        found = self._host_paths.find(pod, name, source) if own is None else HostPath(own)
        read_only = bool((volume.get("persistentVolumeClaim") or {}).get("readOnly"))
        return HostPath(found.path, found.read_only or read_only)

    def _own(self, place: str) -> Path | None:
        """Return a folder that a provisioner of this cluster made, None for any other path."""
        if self._provisioned is None:
            return None
        path = Path(place).resolve()
        if self._provisioned.resolve() not in path.parents:
            return None
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _follow(self, pod: Object) -> None:
        self._written[uid_of(pod)] = pod
        if self._following is None:
            self._following = asyncio.create_task(self._keep_current(), name="pod-volumes")

    async def _keep_current(self) -> None:
        while True:
            await rest(self._period_s)
            for uid, pod in list(self._written.items()):
                with contextlib.suppress(ApiError, UnavailableError):  # asked again the next time
                    if uid_of(fresh := await self._fresh(pod)) == uid:
                        await self.refresh(fresh)

    async def _fresh(self, pod: Object) -> Object:
        return await self._kube().get(PODS, name_of(pod), namespace=namespace_of(pod))

    async def refresh(self, pod: Object) -> None:
        """Write again what has changed: of the pod's labels and annotations, of ConfigMaps and Secrets. What cannot be
        had stays as it was. Does nothing for a pod without such volumes."""
        if uid_of(pod) not in self._written:
            return
        self._written[uid_of(pod)] = pod
        for volume in pod["spec"].get("volumes") or ():
            if self._folder(pod, str(volume["name"])).exists() and not volume.keys().isdisjoint(FILE_KINDS):
                with contextlib.suppress(ApiError, UnavailableError, StartError):
                    await self._write(pod, volume)

    async def usage(self, pod: Object) -> Mapping[str, int]:
        """Return bytes on disk of the emptyDir volumes that a container of the pod has mounted."""
        names = [str(volume["name"]) for volume in pod["spec"].get("volumes") or () if "emptyDir" in volume]
        folders = {name: self._folder(pod, name) for name in names}
        return await asyncio.to_thread(lambda: {name: _size(path) for name, path in folders.items() if path.exists()})

    def remove(self, uid: str) -> None:
        """Delete the volumes of a pod that is gone; what claims and hosts have stays."""
        self._written.pop(uid, None)
        folders = [self._root / uid / "volumes", *([] if self._memory is None else [self._memory / uid])]
        for folder in folders:
            if folder.exists():
                task = asyncio.create_task(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
                self._removing.add(task)
                task.add_done_callback(self._removing.discard)

    async def close(self) -> None:
        """Follow no more."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await asyncio.gather(*self._removing)


def _group(pod: Object) -> bool:
    return bool((pod["spec"].get("securityContext") or {}).get("fsGroup"))


def _size(folder: Path) -> int:
    """Return it as du(1): what is allocated; a file that goes away meanwhile is not counted."""
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_blocks * _BLOCK
    return total


def _within(volume: Path, path: str, whose: str) -> Path:
    """Return a path of a volume. A container may have left a link there that leads out of it (CVE-2021-25741).

    Raises StartError.
    """
    found = (volume / path).resolve()
    if not found.is_relative_to(volume.resolve()):
        raise StartError(_REASON, f"failed to prepare subPath for volumeMount {whose}: {path} leads out of its volume")
    if not found.exists():
        found.mkdir(parents=True)
    return found


def _claims_by_volume(pod: Object) -> Iterator[tuple[str, str]]:
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield str(volume["name"]), str(volume["persistentVolumeClaim"]["claimName"])
        elif "ephemeral" in volume:
            yield str(volume["name"]), f"{name_of(pod)}-{volume['name']}"
