"""What an autoscaler scales: its target's scale, found by group and kind (scaleForResourceMappings in
pkg/controller/podautoscaler/horizontal.go, 1.34)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.emulated.controllers.syncing import MANAGER

_KNOWN = {(each.group, each.kind): (each,) for each in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)}
_KNOWN[REPLICATION_CONTROLLERS.group, REPLICATION_CONTROLLERS.kind] = (REPLICATION_CONTROLLERS,)
_REDISCOVERED_S = 30.0
"""kube-controller-manager looks again after that time at which kinds are served."""
_TRIES, _BACKOFF_S = 5, 0.01
"""client-go's retry.DefaultRetry."""


class TargetError(Exception):
    """An autoscaler's target has no scale to be read: why, in upstream's words."""


class ScaleTargets:
    """Reads and writes the scale of targets of every kind."""

    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self._served: dict[tuple[str, str], tuple[Resource, ...]] = {}
        self._read_s = -math.inf

    async def find(self, reference: Mapping[str, Any], namespace: str) -> tuple[Resource, Object]:
        """Return the resource of a ``scaleTargetRef`` and its Scale.

        Raises TargetError.
        """
        version, kind = reference.get("apiVersion", ""), reference["kind"]
        if version.count("/") > 1:
            raise TargetError(f"unexpected GroupVersion string: {version}")
        group = version.rpartition("/")[0]
        first: Exception | None = None
        try:
            candidates = await self._candidates(group, kind)
        except (ApiError, UnavailableError) as error:
            raise TargetError(_text(error)) from error
        for resource in candidates:
            try:
                name = reference["name"]
                return resource, await self._kube.get(resource, name, namespace=namespace, subresource="scale")
            except (ApiError, UnavailableError) as error:
                first = first or error
        raise TargetError(f'no matches for kind "{kind}" in group "{group}"' if first is None else _text(first))

    async def set(self, resource: Resource, scale: Object, replicas: int, namespace: str) -> None:
        """Give the target so many replicas; somebody else's change between is read again and overwritten.

        Raises ApiError, UnavailableError.
        """
        for attempt in range(_TRIES):
            wanted = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}}
            try:
                await self._kube.replace(
                    resource, wanted, namespace=namespace, subresource="scale", field_manager=MANAGER
                )
                return
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
                await asyncio.sleep(_BACKOFF_S)
                name = scale["metadata"]["name"]
                scale = await self._kube.get(resource, name, namespace=namespace, subresource="scale")

    async def _candidates(self, group: str, kind: str) -> tuple[Resource, ...]:
        """Return all versions of a kind, the preferred one first."""
        if (group, kind) in _KNOWN:
            return _KNOWN[group, kind]
        now_s = asyncio.get_running_loop().time()
        if (group, kind) not in self._served and now_s >= self._read_s + _REDISCOVERED_S:
            self._read_s, found = now_s, dict[tuple[str, str], tuple[Resource, ...]]()
            for each in await self._kube.discovery():
                found[each.group, each.kind] = (*found.get((each.group, each.kind), ()), each)
            self._served = found
        return self._served.get((group, kind), ())


def _text(error: Exception) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
