"""Binds by POST pods/binding (upstream defaultbinder)."""

from __future__ import annotations

from mews.kube.scheduling.framework import SUCCESS, CycleState, Handle, Status
from mews.kube.scheduling.podinfo import PodInfo


class DefaultBinder:
    """The API's own binding, for exactly this pod: one replaced under its name is refused by uid."""

    name = "DefaultBinder"

    def __init__(self, handle: Handle) -> None:
        self._kube = handle.context.kube

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """SUCCESS; the API's errors are raised."""
        await self._kube.bind(pod.namespace, pod.name, node, uid=pod.uid)
        return SUCCESS
