"""The volumes of a pod as folders and files of this machine, for its containers' mounts.

ConfigMaps, secrets and the downward API are written when the pod's first container starts and stay as they are.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mews.kube.api.errors import ApiError, NotFound, Unavailable
from mews.kube.api.objects import Object, annotations_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS
from mews.kube.client.port import KubeApi
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.engine.creation import container_spec
from mews.kube.emulated.kubelet.engine.host_access import refusal
from mews.kube.emulated.kubelet.environment import downward_value
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.in_cluster import FOLDER

_MODE = 0o644
_REASON = "CreateContainerConfigError"
_RESOURCES = {"configMap": CONFIGMAPS, "secret": SECRETS}
_KINDS = ("configMap", "downwardAPI", "emptyDir", "hostPath", "projected", "secret")

_Entries = list[tuple[str, bytes, int]]
"""Path in the volume, bytes, mode."""


class PodVolumes:
    """Makes them below ``root``; ``place`` says where the node's paths are on this machine. ``host_allowed``: a host
    path that the node does not have may be one of this machine. ``provisioned``: the folder in which the volumes of
    claims lie, which need no such permission."""

    def __init__(
        self,
        kube: Callable[[], KubeApi],
        root: Path,
        place: Callable[[str], Path],
        *,
        host_allowed: bool = False,
        provisioned: Path | None = None,
    ) -> None:
        self._host_allowed = host_allowed
        self._provisioned = provisioned
        self._kube = kube
        self._root = root
        self._place = place

    async def mounts(self, pod: Object, name: str) -> list[Mount]:
        """The volume mounts of a container, without its service account's.

        Raises StartError for a volume that cannot be had.
        """
        volumes = {str(volume["name"]): volume for volume in pod["spec"].get("volumes") or ()}
        found = []
        for mount in container_spec(pod, name).get("volumeMounts") or ():
            path = str(mount["mountPath"])
            volume = volumes[str(mount["name"])]
            if path.rstrip("/") == FOLDER and "projected" in volume:
                continue
            if mount.get("subPathExpr"):
                raise StartError(_REASON, f"volumeMounts: {path}: subPathExpr: containers of emulated nodes have none")
            source = await self._source(pod, volume)
            if mount.get("subPath"):
                source = _within(source, str(mount["subPath"]), f"{mount['name']} of container {name}")
            found.append(Mount(path, str(source), bool(mount.get("readOnly"))))
        return found

    async def _source(self, pod: Object, volume: Mapping[str, Any]) -> Path:
        kind = next((key for key in volume if key != "name"), "emptyDir")
        if kind in ("persistentVolumeClaim", "ephemeral"):
            return await self._claimed(pod, volume)
        if kind not in _KINDS:
            text = f"containers of emulated nodes have no such volumes; allowed: {', '.join(_KINDS)}"
            raise StartError(_REASON, f'volume "{volume["name"]}": {kind}: {text}')
        if kind == "hostPath":
            return self._host_path(volume["name"], volume["hostPath"] or {})
        folder = self._root / uid_of(pod) / "volumes" / str(volume["name"])
        if folder.exists():
            return folder
        try:
            contents = [] if kind == "emptyDir" else await self._contents(pod, volume)
        except (ApiError, Unavailable) as error:
            raise StartError(_REASON, f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}') from error
        folder.mkdir(parents=True)
        folder.chmod(0o777 if kind == "emptyDir" else 0o755)
        for path, data, mode in contents:
            file = folder.joinpath(*(part for part in Path(path).parts if part not in ("/", "..")))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(mode)
        return folder

    async def _claimed(self, pod: Object, volume: Mapping[str, Any]) -> Path:
        """The folder of the volume that the claim is bound to."""
        name, namespace = str(volume["name"]), namespace_of(pod)
        claim_name = next(claim for mounted, claim in _claims_by_volume(pod) if mounted == name)
        try:
            claim = await self._kube().get(PERSISTENT_VOLUME_CLAIMS, claim_name, namespace=namespace)
            bound = await self._kube().get(PERSISTENT_VOLUMES, str(claim["spec"].get("volumeName")))
        except (ApiError, Unavailable) as error:
            raise StartError(_REASON, f'MountVolume.SetUp failed for volume "{name}" : {error}') from error
        source = bound["spec"].get("hostPath") or bound["spec"].get("local")
        if source is None:
            text = "containers of emulated nodes have no such volumes; allowed: hostPath, local"
            raise StartError(_REASON, f'volume "{name}": PersistentVolume {name_of(bound)}: {text}')
        return self._own(str(source["path"])) or self._host_path(name, source)

    def _own(self, place: str) -> Path | None:
        """A folder that a provisioner of this cluster made, None for any other path."""
        if self._provisioned is None:
            return None
        path = Path(place).resolve()
        if self._provisioned.resolve() not in path.parents:
            return None
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _host_path(self, name: str, volume: Mapping[str, Any]) -> Path:
        """Of the node where it has that path, else of this machine."""
        path, kind = self._place(str(volume["path"])), str(volume.get("type") or "")
        if not self._host_allowed and path == Path(volume["path"]):
            raise StartError(_REASON, refusal(f'volume "{name}": hostPath: {path}'))
        if kind == "DirectoryOrCreate":
            path.mkdir(parents=True, exist_ok=True)
        elif kind == "FileOrCreate":
            path.touch()
        if not path.exists():
            text = f'MountVolume.SetUp failed for volume "{name}" : hostPath type check failed: {path} does not exist'
            raise StartError(_REASON, text)
        return path

    async def _contents(self, pod: Object, volume: Mapping[str, Any]) -> _Entries:
        projected = volume.get("projected")
        usual = int((projected or {}).get("defaultMode") or _MODE)
        found: _Entries = []
        for source in [volume] if projected is None else projected.get("sources") or []:
            for kind, given in source.items():
                if kind == "name":
                    continue
                mode = int(given.get("defaultMode") or usual)
                if kind == "downwardAPI":
                    found += _downward(pod, given, mode)
                elif kind in _RESOURCES:
                    found += await self._data(pod, kind, given, mode)
                else:
                    text = f"{kind}: containers of emulated nodes have it in their service account's folder alone"
                    raise StartError(_REASON, f'volume "{volume["name"]}": {text}')
        return found

    async def _data(self, pod: Object, kind: str, given: Mapping[str, Any], mode: int) -> _Entries:
        name = str(given.get("name") or given.get("secretName"))
        try:
            obj = await self._kube().get(_RESOURCES[kind], name, namespace=namespace_of(pod))
        except NotFound:
            if given.get("optional"):
                return []
            raise
        data = dict(_bytes(kind, obj))
        items = given.get("items")
        if not items:
            return [(key, value, mode) for key, value in sorted(data.items())]
        absent = next((item["key"] for item in items if item["key"] not in data), None)
        if absent is not None and not given.get("optional"):
            raise StartError(_REASON, f"references non-existent {kind.lower()} key: {absent}")
        there = [item for item in items if item["key"] in data]
        return [(str(item["path"]), data[item["key"]], int(item.get("mode") or mode)) for item in there]


def _within(volume: Path, path: str, whose: str) -> Path:
    """A path of a volume. A container may have left a link there that leads out of it (CVE-2021-25741).

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


def _bytes(kind: str, obj: Object) -> Iterator[tuple[str, bytes]]:
    for key, value in (obj.get("data") or {}).items():
        yield key, base64.b64decode(value) if kind == "secret" else str(value).encode()
    for key, value in (obj.get("binaryData") or {}).items():
        yield key, base64.b64decode(value)


def _downward(pod: Object, given: Mapping[str, Any], mode: int) -> _Entries:
    return [
        (str(item["path"]), _downward_text(pod, item).encode(), int(item.get("mode") or mode))
        for item in given.get("items") or ()
    ]


def _downward_text(pod: Object, item: Mapping[str, Any]) -> str:
    whole = {"metadata.labels": labels_of, "metadata.annotations": annotations_of}
    path = (item.get("fieldRef") or {}).get("fieldPath", "")
    if path in whole:
        escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in whole[path](pod).items()}
        return "\n".join(f'{key}="{escaped[key]}"' for key in sorted(escaped))
    source = {key: item[key] for key in ("fieldRef", "resourceFieldRef") if key in item}
    return downward_value(pod, {}, source, allocatable={}, pod_ip="", host_ip="")
