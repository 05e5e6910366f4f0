"""Registrations and their ListAndWatch streams (contract kubelet.md section 1; upstream plugin/v1beta1/server.go).

One connection a resource by name: a stream that ends closes the connection registered under its resource then, which
may be a newer one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from mews.kube.component import record
from mews.kube.deviceplugin.port import DialedPlugin, PluginDevice, PluginError

SETTLE_S = 1.0
"""More than the end of a broken stream ever takes to be read."""

Listed = Callable[[str, tuple[PluginDevice, ...]], None]


class PluginConnection:
    """One registered plugin with the task that reads its stream."""

    def __init__(self, plugin: DialedPlugin, task: asyncio.Task[None]) -> None:
        self._plugin = plugin
        self._task = task

    async def settled(self) -> None:
        """If the plugin is gone, wait until its stream's end has been read."""
        if not self._plugin.is_connected():
            await asyncio.wait((self._task,), timeout=SETTLE_S)

    def cut(self) -> None:
        """Close it: the plugin sees its stream end. Not from within its own reading task, which is ending anyway."""
        if self._task is not asyncio.current_task():
            self._task.cancel()


class Connections:
    """All streams of one kubelet. ``listed`` hears each list, ``gone`` each resource whose plugin is gone."""

    def __init__(self, listed: Listed, gone: Callable[[str], None], log: logging.Logger) -> None:
        self._listed = listed
        self._gone = gone
        self._log = log
        self._by_resource: dict[str, PluginConnection] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def open(self, resource: str, plugin: DialedPlugin) -> None:
        """Start to read the plugin's lists. It takes the resource's name; an older one's stream stays open and is
        obeyed, unless its end is only waiting to be read: then that comes first."""
        older = self._by_resource.get(resource)
        if older is not None:
            await older.settled()
        task = asyncio.get_running_loop().create_task(self._read(resource, plugin))
        self._by_resource[resource] = PluginConnection(plugin, task)
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def close(self) -> None:
        """The kubelet stops: all plugins see their streams end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, resource: str, plugin: DialedPlugin) -> None:
        try:
            await self._lists(resource, plugin)
            self._ended(resource)
        finally:
            await plugin.close()

    async def _lists(self, resource: str, plugin: DialedPlugin) -> None:
        try:
            async for devices in plugin.list_and_watch():
                self._listed(resource, devices)
        except PluginError as error:
            record(self._log, "list-and-watch-ended", resource=resource, error=str(error))

    def _ended(self, resource: str) -> None:
        newest = self._by_resource.pop(resource, None)
        if newest is not None:
            newest.cut()
            self._gone(resource)
