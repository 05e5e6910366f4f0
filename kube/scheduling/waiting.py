"""Pods held at Permit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from mews.kube.scheduling.framework import SUCCESS, Status, unschedulable
from mews.kube.scheduling.podinfo import PodInfo


class PodAtPermit:
    """One pod beside the cycle; implements ``framework.PodAtPermit``.

    It exists before Permit is asked, so that an answer that comes early counts.
    """

    def __init__(self, pod: PodInfo, node: str) -> None:
        self.pod = pod
        self.node = node
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._allowed: set[str] = set()
        self._verdict: asyncio.Future[Status] = asyncio.get_running_loop().create_future()

    @property
    def held_by(self) -> Sequence[str]:
        """Names of the plugins that have not allowed it yet."""
        return tuple(self._timers)

    def allow(self, plugin: str) -> None:
        """This plugin holds it no longer."""
        self._allowed.add(plugin)
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
            if not self._timers:
                self._decide(SUCCESS)

    def reject(self, plugin: str, message: str) -> None:
        """End the wait: the pod is refused and goes back to the queue."""
        self._decide(unschedulable(message).by(plugin))

    def _decide(self, status: Status) -> None:
        if not self._verdict.done():
            self._verdict.set_result(status)

    async def verdict(self, holds: Mapping[str, float]) -> Status:
        """Wait until every plugin of ``holds`` (name -> seconds) has allowed it, one rejects, or time is up."""
        loop = asyncio.get_running_loop()
        for plugin, timeout_s in holds.items():
            if plugin not in self._allowed:
                text = f"rejected due to timeout after waiting {go_duration(timeout_s)} at plugin {plugin}"
                self._timers[plugin] = loop.call_later(timeout_s, self.reject, plugin, text)
        if not self._timers:
            self._decide(SUCCESS)
        try:
            return await self._verdict
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()


def go_duration(span_s: float) -> str:
    """Return a span as Go prints it: 1m30s, 15m0s, 0.5s."""
    minutes, seconds = divmod(span_s, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{seconds:g}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
