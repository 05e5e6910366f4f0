"""Writes KubeComp's ConfigMaps: created with their namespace when missing, written only when they changed."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.api.errors import AlreadyExistsError, NotFoundError
from mews.kube.api.objects import Object
from mews.kube.api.resources import CONFIGMAPS, NAMESPACES
from mews.kube.client.port import KubeApi


class ConfigMapWriter:
    """The ConfigMaps of one writer in one namespace. Its methods raise ApiError and UnavailableError."""

    def __init__(self, kube: KubeApi, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._written: dict[str, dict[str, str]] = {}

    async def read(self, name: str) -> Object | None:
        """Return the object as it is now, or None."""
        try:
            return await self._kube.get(CONFIGMAPS, name, namespace=self._namespace)
        except NotFoundError:
            return None

    async def write(self, name: str, data: Mapping[str, str | None]) -> None:
        """Set these keys (None removes one) and leave the others; nothing is sent when nothing changed."""
        known = self._written.get(name)
        if known is not None and all(known.get(key) == value for key, value in data.items()):
            return
        self._written.pop(name, None)
        try:
            await self._kube.patch(CONFIGMAPS, name, {"data": dict(data)}, namespace=self._namespace)
        except NotFoundError:
            await self._create(name, data)
        kept = {**(known or {}), **data}
        self._written[name] = {key: value for key, value in kept.items() if value is not None}

    async def _create(self, name: str, data: Mapping[str, str | None]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self._namespace},
            "data": {key: value for key, value in data.items() if value is not None},
        }
        try:
            await self._kube.create(CONFIGMAPS, body, namespace=self._namespace)
        except AlreadyExistsError:
            await self._kube.patch(CONFIGMAPS, name, {"data": dict(data)}, namespace=self._namespace)
        except NotFoundError:
            await self._create_namespace()
            await self._kube.create(CONFIGMAPS, body, namespace=self._namespace)

    async def _create_namespace(self) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        try:
            await self._kube.create(NAMESPACES, body)
        except AlreadyExistsError:
            return
