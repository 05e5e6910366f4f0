"""The streams over which drivers report the health of their devices (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go).

One for each endpoint that offers it. What was reported is forgotten when a stream ends; it is opened again five seconds
later, unless the driver does not know the call after all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from mews.kube.clock import Pace, rest
from mews.kube.component import Context
from mews.kube.deviceplugin.port import PluginError
from mews.kube.dra.port import DeviceHealth, DraSocket
from mews.kube.emulated.kubelet.dra.health_cache import HealthCache

REOPEN_S = 5.0
Changed = Callable[[str, Sequence[DeviceHealth]], None]


class HealthStreams:
    """``changed`` is called with a driver and its devices whose health is another now."""

    def __init__(self, context: Context, pace: Pace, cache: HealthCache, changed: Changed) -> None:
        self._context = context
        self._pace = pace
        self._cache = cache
        self._changed = changed
        self._tasks: dict[str, tuple[str, asyncio.Task[None]]] = {}

    def open(self, tasks: asyncio.TaskGroup, path: str, socket: DraSocket) -> None:
        """Follow an endpoint that is registered now."""
        if socket.reports_health:
            self._tasks[path] = socket.driver, tasks.create_task(self._follow(socket))

    def close(self, path: str) -> None:
        """The endpoint is not registered any more."""
        driver, task = self._tasks.pop(path, ("", None))
        if task is not None:
            task.cancel()
            self._cache.clear(driver)

    async def _follow(self, socket: DraSocket) -> None:
        while True:
            why = "the driver ended it"
            try:
                async for devices in socket.watch_health():
                    changed = self._cache.update(socket.driver, devices)
                    if changed:
                        self._changed(socket.driver, changed)
            except PluginError as failed:
                why = str(failed)
                if failed.code == "Unimplemented":
                    self._cache.clear(socket.driver)
                    return
            self._context.log.info("health of %s is not reported any more: %s", socket.driver, why)
            self._cache.clear(socket.driver)
            await rest(self._pace.loop_s(REOPEN_S))
