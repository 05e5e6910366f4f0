"""Caches that few pods need: they are filled once the first pod that needs them comes.

A scheduler that watched every claim, volume and class from its start would pay for it in each run in which no pod has
any. Pods that come before such a cache is filled are kept here until it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from mews.kube.api.resources import Resource
from mews.kube.client.informer import Informer
from mews.kube.scheduling.podinfo import PodInfo

NeededBy = Callable[[PodInfo], bool]
"""Whether a pod cannot be decided without these caches."""


@dataclass(slots=True, eq=False)
class _Group:
    """The caches that the same pods need."""

    informers: dict[Resource, Informer] = field(default_factory=dict)
    started: bool = False
    filled: bool = False


class LateInformers:
    """``make`` makes an informer, ``spawn`` runs work beside the cycle, ``ready`` is given the pods that waited."""

    def __init__(
        self,
        make: Callable[[Resource], Informer],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        ready: Callable[[PodInfo], None],
    ) -> None:
        self._make = make
        self._spawn = spawn
        self._ready = ready
        self._groups: dict[NeededBy, _Group] = {}
        self._made: dict[Resource, Informer] = {}
        self._running: set[Resource] = set()
        self._kept: dict[str, PodInfo] = {}

    def __contains__(self, resource: Resource) -> bool:
        return resource in self._made

    def informer(self, resource: Resource, needed_by: NeededBy) -> Informer:
        """Return the informer of a resource, shared by all that ask for it."""
        if resource not in self._made:
            self._made[resource] = self._make(resource)
        return self._groups.setdefault(needed_by, _Group()).informers.setdefault(resource, self._made[resource])

    def keep(self, pod: PodInfo) -> bool:
        """Return whether the pod has to wait; then it is kept, in place of what was kept of it."""
        missing = [group for needs, group in self._groups.items() if not group.filled and needs(pod)]
        for group in missing:
            if not group.started:
                group.started = True
                self._spawn(self._fill(group))
        if missing:
            self._kept[pod.uid] = pod
        return bool(missing)

    def forget(self, uid: str) -> None:
        """The pod is gone, or bound by somebody else."""
        self._kept.pop(uid, None)

    async def _fill(self, group: _Group) -> None:
        async with asyncio.TaskGroup() as tasks:
            for resource, informer in group.informers.items():
                if resource not in self._running:
                    self._running.add(resource)
                    tasks.create_task(informer.run())
            for informer in group.informers.values():
                await informer.synced()
            group.filled = True
            kept, self._kept = self._kept, {}
            for pod in kept.values():
                self._ready(pod)
