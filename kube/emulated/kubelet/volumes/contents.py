"""What the files of a volume are made of: ConfigMaps, Secrets, the downward API and service account tokens.

Source: upstream pkg/volume/configmap, secret, downwardapi and projected.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, annotations_of, labels_of, namespace_of
from mews.kube.api.resources import CONFIGMAPS, SECRETS
from mews.kube.client.port import KubeApi
from mews.kube.emulated.kubelet.environment import downward_value
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.volumes.atomic_writer import Contents, VolumeFile

FILE_KINDS = ("configMap", "downwardAPI", "projected", "secret")
"""Volumes whose files the kubelet writes."""

_MODE, _TOKEN_MODE, _GROUP_MODE = 0o644, 0o600, 0o440
_REASON = "CreateContainerConfigError"
_RESOURCES = {"configMap": CONFIGMAPS, "secret": SECRETS}


class Tokens(Protocol):
    """Where tokens of service accounts come from."""

    async def token(self, pod: Object, audience: str, lifetime_s: int) -> str:
        """Return a pod's token that is good for some time yet; for the API where no audience is named.

        Raises ApiError, UnavailableError.
        """
        ...


class ContentReader:
    """Reads them of the API; ``tokens`` is None where no volume can have a token."""

    def __init__(self, kube: Callable[[], KubeApi], tokens: Tokens | None = None) -> None:
        self._kube = kube
        self._tokens = tokens

    async def contents(self, pod: Object, volume: Mapping[str, Any]) -> Contents:
        """Return the files of a volume of one of ``FILE_KINDS``.

        Raises StartError for what cannot be had, ApiError and UnavailableError where the API does not give it.
        """
        projected = volume.get("projected")
        usual = _mode(projected or {}, "defaultMode", _MODE)
        found: dict[str, VolumeFile] = {}
        for source in [volume] if projected is None else projected.get("sources") or []:
            for kind, given in source.items():
                if kind != "name":
                    mode = _mode(given, "defaultMode", usual)
                    found |= await self._of(kind, pod, given, mode, volume=str(volume["name"]))
        if not (pod["spec"].get("securityContext") or {}).get("fsGroup"):
            return found
        # What the group may do is what SetVolumeOwnership gives it in a volume that is read-only.
        return {path: VolumeFile(file.data, file.mode | _GROUP_MODE) for path, file in found.items()}

    async def _of(self, kind: str, pod: Object, given: Mapping[str, Any], mode: int, *, volume: str) -> Contents:
        if kind == "downwardAPI":
            return {
                str(item["path"]): VolumeFile(_downward_text(pod, item).encode(), _mode(item, "mode", mode))
                for item in given.get("items") or ()
            }
        if kind in _RESOURCES:
            return await self._data(pod, kind, given, mode)
        if kind == "serviceAccountToken" and self._tokens is not None:
            lifetime_s = int(given.get("expirationSeconds") or 3600)
            text = await self._tokens.token(pod, str(given.get("audience") or ""), lifetime_s)
            mode = _TOKEN_MODE if (pod["spec"].get("securityContext") or {}).get("fsGroup") else mode
            return {str(given["path"]): VolumeFile(text.encode(), mode)}
        raise StartError(_REASON, f'volume "{volume}": {kind}: containers of emulated nodes have no such volumes')

    async def _data(self, pod: Object, kind: str, given: Mapping[str, Any], mode: int) -> Contents:
        name = str(given.get("name") or given.get("secretName") or "")
        try:
            obj = await self._kube().get(_RESOURCES[kind], name, namespace=namespace_of(pod))
        except NotFoundError:
            if given.get("optional"):
                return {}
            raise
        data = dict(_bytes(kind, obj))
        items = given.get("items")
        if not items:
            return {key: VolumeFile(value, mode) for key, value in sorted(data.items())}
        absent = next((item["key"] for item in items if item["key"] not in data), None)
        if absent is not None and not given.get("optional"):
            raise StartError(_REASON, f"references non-existent {kind.lower()} key: {absent}")
        return {
            str(item["path"]): VolumeFile(data[item["key"]], _mode(item, "mode", mode))
            for item in items
            if item["key"] in data
        }


def _mode(holder: Mapping[str, Any], key: str, usual: int) -> int:
    given = holder.get(key)
    return usual if given is None else int(given)


def _bytes(kind: str, obj: Object) -> Iterator[tuple[str, bytes]]:
    for key, value in (obj.get("data") or {}).items():
        yield key, base64.b64decode(value) if kind == "secret" else str(value).encode()
    for key, value in (obj.get("binaryData") or {}).items():
        yield key, base64.b64decode(value)


def _downward_text(pod: Object, item: Mapping[str, Any]) -> str:
    whole = {"metadata.labels": labels_of, "metadata.annotations": annotations_of}
    path = (item.get("fieldRef") or {}).get("fieldPath", "")
    if path in whole:
        escaped = {key: value.replace("\\", "\\\\").replace('"', '\\"') for key, value in whole[path](pod).items()}
        return "\n".join(f'{key}="{escaped[key]}"' for key in sorted(escaped))
    source = {key: item[key] for key in ("fieldRef", "resourceFieldRef") if key in item}
    return downward_value(pod, {}, source, allocatable={}, pod_ip="", host_ip="")
