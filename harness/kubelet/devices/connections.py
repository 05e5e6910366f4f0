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

Listed = Callable[[str, tuple[PluginDevice, ...]], None]


class Connection:
    """One registered plugin with the task that reads its stream."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self._task: asyncio.Task[None] | None = None

    def start(self, task: asyncio.Task[None]) -> None:
        """Keep the reading task."""
        self._task = task

    def cut(self) -> None:
        """Close it: the plugin sees its stream end. Not from within its own reading task, which is ending anyway."""
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()


class Connections:
    """All streams of one kubelet. ``listed`` hears each list, ``gone`` each resource whose plugin is gone."""

    def __init__(self, listed: Listed, gone: Callable[[str], None], log: logging.Logger) -> None:
        self._listed = listed
        self._gone = gone
        self._log = log
        self._by_resource: dict[str, Connection] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def open(self, resource: str) -> Connection:
        """A new connection takes the resource's name; an older one's stream stays open and is obeyed."""
        self._by_resource[resource] = Connection(resource)
        return self._by_resource[resource]

    def abandon(self, resource: str) -> None:
        """Registration failed: the name is free again, even if an older connection had it."""
        self._by_resource.pop(resource, None)

    def watch(self, connection: Connection, plugin: DialedPlugin) -> None:
        """Start to read the plugin's lists."""
        task = asyncio.get_running_loop().create_task(self._read(connection, plugin))
        self._tasks[task] = None
        task.add_done_callback(lambda done: self._tasks.pop(done, None))
        connection.start(task)

    async def close(self) -> None:
        """The kubelet stops: all plugins see their streams end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, connection: Connection, plugin: DialedPlugin) -> None:
        try:
            await self._lists(connection.resource, plugin)
            self._ended(connection.resource)
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
