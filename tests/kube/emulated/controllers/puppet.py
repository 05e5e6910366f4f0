"""A node without a kubelet: pods are bound and played by their annotations, on any API server, in any time."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError, NotFoundError
from mews.kube.api.objects import Object, annotations_of, is_deleting, is_terminal, name_of, namespace_of, timestamp
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.clock import Clock
from mews.kube.emulated.controllers.daemonset.policy import target_of

NODE = "stage-1"
ENDS = "test/ends"
"""Succeeded or Failed: how the pod ends, a moment after it began."""
ENDS_BY_INDEX = "test/ends-by-index"
"""The same by completion index, in JSON; the pods of other indexes run on."""
STUCK = "test/stuck"
"""The pod never becomes ready."""
UNREADY = "test/unready"
"""The pod runs and is never ready."""
SLOW = "test/slow"
"""The pod takes its time when it is deleted, and says then that it failed."""
_READY_S, _APART_S, _ENDS_S, _SLOW_S = 0.2, 0.3, 0.5, 8.0
_PARTS = 4


async def raise_stage(kube: KubeApi, clock: Clock, *, name: str = NODE, labels: dict[str, str] | None = None) -> None:
    """A node that is Ready for ever."""
    stamp = timestamp(clock.now())
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": stamp}
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "500"}
    body: dict[str, Any] = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [condition]},
    }
    made = await kube.create(NODES, body)
    made = await kube.replace(NODES, {**made, "status": body["status"]}, subresource="status")
    await kube.patch(NODES, name, {"spec": {"taints": None}})


class Puppeteer:
    """Plays all pods."""

    def __init__(self, kube: KubeApi, clock: Clock, *, binds: bool = True) -> None:
        self._kube = kube
        self._clock = clock
        self._binds = binds
        self._informer = Informer(kube, PODS)
        self._addresses: dict[str, str] = {}
        self._turns: dict[str, int] = {}
        self._plays: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        self._informer.on_change(self._changed)
        try:
            await self._informer.run()
        finally:
            for play in self._plays.values():
                play.cancel()

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        uid = new["metadata"]["uid"]
        if is_deleting(new):
            if uid in self._plays:
                self._plays.pop(uid).cancel()
            self._plays[uid + "/end"] = asyncio.create_task(self._end(new))
        elif old is None and not is_terminal(new):
            self._plays[uid] = asyncio.create_task(self._play(new))

    async def _end(self, pod: Object) -> None:
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0:
            return
        try:
            if SLOW in annotations_of(pod):
                await asyncio.sleep(_SLOW_S)
                ended = {"exitCode": 143, "finishedAt": self._now(), "reason": "Error"}
                await self._say(pod, "Failed", ready="False", state={"terminated": ended})
                await asyncio.sleep(_APART_S)
            await self._kube.delete(
                PODS, name_of(pod), namespace=namespace_of(pod), options=DeleteOptions(grace_period_s=0)
            )
        except NotFoundError:
            return

    async def _play(self, pod: Object) -> None:
        try:
            if not pod["spec"].get("nodeName"):
                if not self._binds:
                    return
                await self._kube.bind(namespace_of(pod), name_of(pod), target_of(pod) or NODE)
            if STUCK in annotations_of(pod):
                return
            await asyncio.sleep(_READY_S + self._turn(pod) * _APART_S)
            ready = "False" if UNREADY in annotations_of(pod) else "True"
            await self._say(pod, "Running", ready=ready, state={"running": {"startedAt": self._now()}})
            end = _end_of(pod)
            if end is not None:
                await asyncio.sleep(_ENDS_S)
                code = 0 if end == "Succeeded" else int(annotations_of(pod).get("test/code", "1"))
                ended = {"exitCode": code, "finishedAt": self._now(), "reason": "Completed" if code == 0 else "Error"}
                await self._say(pod, end, ready="False", state={"terminated": ended})
        except ApiError:
            return  # it is gone, or going

    def _turn(self, pod: Object) -> int:
        """No two pods of a namespace in a row become ready at once: what controllers do then is a matter of luck."""
        turn = self._turns[namespace_of(pod)] = self._turns.get(namespace_of(pod), -1) + 1
        return turn % _PARTS

    def _now(self) -> str:
        return timestamp(self._clock.now())

    async def _say(self, pod: Object, phase: str, *, ready: str, state: dict[str, Any]) -> None:
        """Write it down, as a kubelet does: against the pod of this moment, again where another wrote meanwhile."""
        while True:
            current = await self._kube.get(PODS, name_of(pod), namespace=namespace_of(pod))
            if is_deleting(current) and phase == "Running":
                return
            status = self._status(current, phase, ready, state)
            try:
                await self._kube.replace(PODS, {**current, "status": status}, subresource="status")
            except ConflictError:
                continue
            return

    def _status(self, pod: Object, phase: str, ready: str, state: dict[str, Any]) -> dict[str, Any]:
        status = dict(pod.get("status") or {})
        kept = [c for c in status.get("conditions") or () if c["type"] not in ("Ready", "ContainersReady")]
        fresh = [
            {"type": kind, "status": ready, "lastTransitionTime": self._now()} for kind in ("Ready", "ContainersReady")
        ]
        address = self._addresses.setdefault(pod["metadata"]["uid"], f"10.0.0.{len(self._addresses) + 1}")
        names = [container["name"] for container in pod["spec"]["containers"]]
        main = {"restartCount": 0, "ready": ready == "True", "image": "x", "imageID": "", "state": state}
        status |= {"phase": phase, "conditions": [*kept, *fresh], "podIP": address, "podIPs": [{"ip": address}]}
        status |= {"containerStatuses": [{"name": name, **main} for name in names]}
        return status


def _end_of(pod: Object) -> str | None:
    by_index = json.loads(annotations_of(pod).get(ENDS_BY_INDEX, "{}"))
    index = annotations_of(pod).get("batch.kubernetes.io/job-completion-index", "")
    return by_index.get(index, annotations_of(pod).get(ENDS))
