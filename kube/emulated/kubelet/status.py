"""Writes pod statuses: the last one wanted of each pod, in order, from one task (pkg/kubelet/status)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions, Patch, Preconditions
from mews.kube.clock import rest
from mews.kube.component import Context
from mews.kube.emulated.kubelet.podstatus import KUBELET_CONDITIONS

_RETRY_S = 1.0
_ROUND_S = 10.0
"""Upstream's status manager goes over all pods that often (syncPeriod of pkg/kubelet/status/status_manager.go)."""
_KEYS = (
    *("observedGeneration", "phase", "reason", "message", "conditions", "hostIP", "hostIPs", "podIP", "podIPs"),
    *("startTime", "initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses", "qosClass"),
)


class StatusManager:
    """``publish`` does not wait; ``run`` writes."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._wanted: dict[str, tuple[Object, dict[str, Any]]] = {}
        self._published: dict[str, dict[str, Any]] = {}
        self._refused: set[str] = set()
        self._writing = ""
        self._queued = asyncio.Event()
        self._written = asyncio.Event()

    def known(self, pod: Object) -> Mapping[str, Any]:
        """Return the status last published, or the API's."""
        return self._published.get(uid_of(pod)) or pod.get("status") or {}

    def publish(self, pod: Object, status: dict[str, Any]) -> None:
        """Have that status written if it differs from the last one."""
        uid = uid_of(pod)
        if self._published.get(uid) == status:
            return
        self._published[uid] = status
        self._wanted[uid] = (pod, status)
        self._queued.set()

    def reconcile(self, pod: Object) -> None:
        """The API's pod was seen: if somebody else changed one of the kubelet's conditions, write them again."""
        uid = uid_of(pod)
        published = self._published.get(uid)
        if published is None or uid in self._wanted or self._writing == uid:
            return
        if _verdicts(published) != _verdicts(pod.get("status") or {}):
            self._wanted[uid] = (pod, published)
            self._queued.set()

    def forget(self, uid: str) -> None:
        """Drop the pod's status: the pod is gone."""
        self._published.pop(uid, None)
        self._wanted.pop(uid, None)
        self._refused.discard(uid)
        self._written.set()

    def _again(self, pod: Object, status: dict[str, Any]) -> None:
        """Try a refused status again with the next round, unless it is of yesterday by then."""
        uid = uid_of(pod)

        def due() -> None:
            self._refused.discard(uid)
            if self._published.get(uid) is status:
                self._wanted.setdefault(uid, (pod, status))
                self._queued.set()
            self._written.set()

        self._refused.add(uid)
        asyncio.get_running_loop().call_later(_ROUND_S, due)

    async def flushed(self, uid: str) -> None:
        """Wait until all that was published of that pod is written."""
        while uid in self._wanted or uid in self._refused or self._writing == uid:
            self._written.clear()
            await self._written.wait()

    async def run(self) -> None:
        """Write the pods' statuses until cancelled."""
        while True:
            while self._wanted:
                uid = next(iter(self._wanted))
                pod, status = self._wanted.pop(uid)
                self._writing = uid
                try:
                    await self._write(pod, status)
                finally:
                    self._writing = ""
                self._written.set()
            self._queued.clear()
            await self._queued.wait()

    async def _write(self, pod: Object, status: dict[str, Any]) -> None:
        while True:
            try:
                await self._patch(pod, status)
                return
            except NotFoundError:
                return
            except ApiError as error:
                self._context.log.warning("status of pod %s refused: %s", name_of(pod), error)
                self._again(pod, status)
                return
            except UnavailableError:
                if uid_of(pod) not in self._wanted:
                    await rest(_RETRY_S)
                if uid_of(pod) in self._wanted:
                    return  # a newer status follows

    async def _patch(self, pod: Object, status: dict[str, Any]) -> None:
        kube, name, namespace = self._context.kube, name_of(pod), namespace_of(pod)
        current = await kube.get(PODS, name, namespace=namespace)
        if uid_of(current) != uid_of(pod):
            return
        had = current.get("status") or {}
        others = [entry for entry in had.get("conditions") or () if entry["type"] not in KUBELET_CONDITIONS]
        own = [entry for entry in status.get("conditions") or () if entry["type"] in KUBELET_CONDITIONS]
        wanted = {**status, "conditions": others + own or None}
        change = {key: wanted.get(key) for key in _KEYS if wanted.get(key) != had.get(key)}
        if change:
            await kube.patch(
                PODS, name, {"status": change}, kind=Patch.MERGE, namespace=namespace, subresource="status",
                field_manager="kubelet",
            )  # fmt: skip

    async def delete(self, pod: Object) -> None:
        """Take a stopped pod off the API: grace 0, this uid only. Retried until it is gone or replaced."""
        options = DeleteOptions(grace_period_s=0, preconditions=Preconditions(uid=uid_of(pod)))
        while True:
            try:
                await self._context.kube.delete(PODS, name_of(pod), namespace=namespace_of(pod), options=options)
                return
            except (NotFoundError, ConflictError):
                return
            except ApiError as error:
                self._context.log.warning("deletion of pod %s refused: %s", name_of(pod), error)
                await rest(_ROUND_S)
            except UnavailableError:
                await rest(_RETRY_S)


def _verdicts(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    own = [entry for entry in status.get("conditions") or () if entry["type"] in KUBELET_CONDITIONS]
    return sorted((entry["type"], entry["status"]) for entry in own)
