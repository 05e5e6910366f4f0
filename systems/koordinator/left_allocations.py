"""What an earlier scheduler gave to pods and did not bind: taken back before anything is given anew."""

from __future__ import annotations

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, annotations_of, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.clock import rest
from mews.kube.scheduling.framework import Handle
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.names import ALLOCATED
from mews.systems.koordinator.pod_notes import DeviceNotes

_RETRY_S = 1.0


class LeftAllocations:
    """Pods that were first seen with devices and without a node. While there are any, nothing may be given: a binding
    of theirs may be on its way. Once such an annotation is off, that binding is refused; or it came before, and the
    pod counts."""

    def __init__(self, handle: Handle, notes: DeviceNotes, cache: NodeDeviceCache) -> None:
        self._handle, self._notes, self._cache = handle, notes, cache
        self._pods = handle.informer(PODS)
        self._seen: set[str] = set()
        self._left: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._left)

    def note(self, pod: Object) -> None:
        """A pod is there."""
        uid = uid_of(pod)
        first = uid not in self._seen
        self._seen.add(uid)
        mine = (pod["spec"].get("schedulerName") or "") == self._handle.scheduler_name
        if first and mine and not node_name_of(pod) and ALLOCATED in annotations_of(pod):
            if not self._left:
                self._handle.spawn(self._settle())
            self._left.add(uid)

    def forget(self, uid: str) -> None:
        """A pod is gone."""
        self._seen.discard(uid)
        self._left.discard(uid)

    async def _settle(self) -> None:
        while self._left:
            for uid in sorted(self._left):
                pod = next((each for each in self._pods.items() if uid_of(each) == uid), None)
                try:
                    now = await self._notes.clear_left(pod) if pod is not None else None
                except (ApiError, UnavailableError):
                    continue
                if now is not None:
                    self._cache.set_pod(now)
                self._left.discard(uid)
            if self._left:
                await rest(_RETRY_S)
        self._handle.activate([uid_of(each) for each in self._pods.items() if not node_name_of(each)])
