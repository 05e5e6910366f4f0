"""ConfigMaps and Secrets that a container's environment comes from, read from the API at each start."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, SECRETS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.emulated.kubelet.errors import StartError

KINDS: Mapping[str, Resource] = {"configMap": CONFIGMAPS, "secret": SECRETS}
Sources = Mapping[tuple[str, str], Mapping[str, str]]
"""(``configMap`` or ``secret``, name) -> its data as text; absent: there is none, and nobody minds."""


async def sources_of(kube: KubeApi, namespace: str, container: Mapping[str, Any]) -> Sources:
    """Return what the container's ``env`` and ``envFrom`` refer to.

    Raises StartError (``CreateContainerConfigError``) for one that is not there and not optional.
    """
    found: dict[tuple[str, str], Mapping[str, str]] = {}
    for kind, name, optional in _references(container):
        if (kind, name) in found:
            continue
        try:
            found[kind, name] = _texts(kind, await kube.get(KINDS[kind], name, namespace=namespace))
        except NotFoundError as error:
            if not optional:
                raise StartError("CreateContainerConfigError", f'{kind.lower()} "{name}" not found') from error
        except (ApiError, UnavailableError) as error:
            raise StartError("CreateContainerConfigError", str(error)) from error
    return found


def _references(container: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    for entry in container.get("envFrom") or ():
        for kind in KINDS:
            if f"{kind}Ref" in entry:
                yield kind, str(entry[f"{kind}Ref"].get("name", "")), bool(entry[f"{kind}Ref"].get("optional"))
    for entry in container.get("env") or ():
        for kind in KINDS:
            reference = (entry.get("valueFrom") or {}).get(f"{kind}KeyRef")
            if reference is not None:
                yield kind, str(reference.get("name", "")), bool(reference.get("optional"))


def _texts(kind: str, obj: Object) -> dict[str, str]:
    data = obj.get("data") or {}
    if kind == "configMap":
        return {key: str(value) for key, value in sorted(data.items())}
    return {key: _decoded(str(value)) for key, value in sorted(data.items())}


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return value
