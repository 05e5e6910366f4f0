"""The drivers that are registered with a kubelet (pkg/kubelet/pluginmanager, cm/dra/plugin/dra_plugin_manager.go).

A reconciler looks once a second: it first unregisters what is gone or was replaced, then registers what is new, so that
a socket that was replaced is registered a second later. A driver without a connection for thirty seconds has its slices
of this node wiped; a kubelet that starts wipes all of the node.
"""

from __future__ import annotations

import asyncio

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.resources import RESOURCE_SLICES
from mews.kube.clock import Pace, rest
from mews.kube.component import Context, record
from mews.kube.dra.port import DraRegistry, DraSocket
from mews.kube.emulated.kubelet.dra.errors import DraError
from mews.kube.emulated.kubelet.dra.health_streams import HealthStreams

TICK_S = 1.0
WIPING_DELAY_S = 30.0
_FIRST_BACKOFF_S, _LAST_BACKOFF_S = 1.0, 300.0


class DraPlugins:
    """Component: registers drivers until cancelled. ``health``: None where the kubelet asks nobody for it."""

    def __init__(
        self, context: Context, pace: Pace, registry: DraRegistry, node: str, health: HealthStreams | None = None
    ) -> None:
        self._context = context
        self._pace = pace
        self._registry = registry
        self._node = node
        self._health = health
        self._phase_s = 0.0
        self._registered: dict[str, DraSocket] = {}
        """Path -> its socket, the newest last."""
        self._tick: asyncio.TimerHandle | None = None
        self._wiping: dict[str, asyncio.Task[None]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Wipe, then watch the folder."""
        unlisten = self._registry.listen(self._changed)
        self._phase_s = asyncio.get_running_loop().time()
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                tasks.create_task(self._wipe(f"spec.nodeName={self._node}"))
                self._changed()
                await asyncio.Event().wait()
        finally:
            unlisten()
            if self._tick is not None:
                self._tick.cancel()

    def plugin(self, driver: str) -> DraSocket:
        """Return who is to be called: the newest that is connected, else the newest.

        Raises DraError.
        """
        known = [each for each in self._registered.values() if each.driver == driver]
        if not known:
            raise DraError(f"DRA driver {driver} is not registered")
        return next((each for each in reversed(known) if each.connected), known[-1])

    def _changed(self) -> None:
        self._watch_over_slices()
        if self._tick is None and self._registry.sockets() != self._registered:
            loop = asyncio.get_running_loop()
            tick_s = self._pace.loop_s(TICK_S)
            passed = int((loop.time() - self._phase_s) // tick_s) + 1
            self._tick = loop.call_at(self._phase_s + passed * tick_s, self._reconcile)

    def _reconcile(self) -> None:
        assert self._tasks is not None
        self._tick = None
        there = self._registry.sockets()
        gone = [path for path, known in self._registered.items() if there.get(path) is not known]
        for path in gone:
            record(self._context.log, "dra-unregistered", driver=self._registered.pop(path).driver, path=path)
            if self._health is not None:
                self._health.close(path)
        for path, socket in there.items():
            if path not in self._registered and path not in gone:
                self._registered[path] = socket
                record(self._context.log, "dra-registered", driver=socket.driver, path=path)
                if self._health is not None:
                    self._health.open(self._tasks, path, socket)
        self._changed()

    def _watch_over_slices(self) -> None:
        """Begin to wait, or stop waiting, for the drivers of which none is connected."""
        assert self._tasks is not None
        seen = {each.driver for each in (*self._registered.values(), *self._registry.sockets().values())}
        connected = {each.driver for each in self._registered.values() if each.connected}
        for driver in sorted(seen | self._wiping.keys()):
            if driver in connected:
                task = self._wiping.pop(driver, None)
                if task is not None:
                    task.cancel()
            elif driver not in self._wiping and driver in seen:
                self._wiping[driver] = self._tasks.create_task(self._wipe_later(driver))

    async def _wipe_later(self, driver: str) -> None:
        await rest(self._pace.loop_s(WIPING_DELAY_S))
        await self._wipe(f"spec.driver={driver},spec.nodeName={self._node}")

    async def _wipe(self, fields: str) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                await self._context.kube.delete_collection(RESOURCE_SLICES, field_selector=fields)
            except NotFoundError:  # an API without such slices
                return
            except (ApiError, UnavailableError) as failed:
                self._context.log.info("slices of %s not wiped: %s", fields, failed)
                await rest(backoff_s)
                backoff_s = min(2 * backoff_s, _LAST_BACKOFF_S)
                continue
            return
