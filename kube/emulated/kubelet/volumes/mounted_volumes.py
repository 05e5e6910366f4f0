"""The volumes of a pod that runs: its downward API follows the pod, and what is too large ends it.

Source: upstream pkg/kubelet/eviction/eviction_manager.go (emptyDirLimitEviction); a pod is synced when it changes, and
what its volumes are made of is then looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from mews.kube.api.objects import Object, annotations_of, labels_of, uid_of
from mews.kube.api.quantities import whole
from mews.kube.clock import rest

if TYPE_CHECKING:
    from mews.kube.emulated.kubelet.tools import Tools

EVICTED = "Evicted"
_LOOK_S = 10.0
"""Emulated seconds between two looks at how much is used (monitoringInterval of the eviction manager)."""

Evict = Callable[[str], None]
"""Ends the pod, with the message of its status."""


class MountedVolumes:
    """Those of one pod, where its node makes volumes at all."""

    def __init__(self, tools: Tools, pod: Object) -> None:
        self._tools = tools
        self._pod = pod
        self._tasks: set[asyncio.Task[None]] = set()

    def update(self, pod: Object) -> None:
        """The API's pod changed."""
        old, self._pod = self._pod, pod
        volumes = self._tools.containerd.volumes
        if volumes is not None and (labels_of(old), annotations_of(old)) != (labels_of(pod), annotations_of(pod)):
            self._keep(asyncio.create_task(volumes.refresh(pod)))

    def watch(self, evict: Evict) -> None:
        """Look from now on at what the pod writes to volumes that have a limit."""
        if self._tools.containerd.volumes is not None and dict(_limits(self._pod)):
            self._keep(asyncio.create_task(self._measure(evict)))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _measure(self, evict: Evict) -> None:
        volumes = self._tools.containerd.volumes
        assert volumes is not None, "watched for them"
        while True:
            await rest(self._tools.pace.loop_s(_LOOK_S))
            if self._tools.containerd.sandbox(uid_of(self._pod)) is None:
                continue
            used = await volumes.usage(self._pod)
            for name, limit in _limits(self._pod):
                if used.get(name, 0) > whole(limit):
                    evict(f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". ')
                    return

    def close(self) -> None:
        """Look no more."""
        for task in self._tasks:
            task.cancel()


def _limits(pod: Object) -> Iterator[tuple[str, str]]:
    for volume in pod["spec"].get("volumes") or ():
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is not None and whole(limit) > 0:
            yield str(volume["name"]), str(limit)
