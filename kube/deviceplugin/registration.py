"""What every device plugin does for its kubelet: send its list as it changes, and register again after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from msgspec import Struct

from mews.kube.clock import rest
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import (
    DevicePlugin,
    DevicePluginLink,
    Endpoint,
    PluginDevice,
    PluginError,
    PluginOptions,
)

RETRY_S = 1.0
"""After this time a plugin tries again to register with a kubelet that did not let it."""


class AnnouncedDevices:
    """The devices that a plugin announces; ``current`` is None until there is a first list."""

    def __init__(self) -> None:
        self.current: tuple[PluginDevice, ...] | None = None
        self._changed = asyncio.Event()

    def publish(self, devices: tuple[PluginDevice, ...]) -> bool:
        """Send this list to every stream; return whether it is another one than before."""
        if devices == self.current:
            return False
        self.current = devices
        self._changed.set()
        self._changed = asyncio.Event()
        return True

    async def stream(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """Yield the full list now, once there is one, and whenever it has changed (ListAndWatch)."""
        sent: tuple[PluginDevice, ...] | None = None
        while True:
            changed = self._changed
            if self.current is not None and self.current != sent:
                sent = self.current
                yield sent
            else:
                await changed.wait()


def first_by_id(available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
    """Return the preferred allocation of a plugin that has no preference: the first devices in order of their IDs."""
    return (*must_include, *sorted(set(available) - set(must_include)))[:size]


class RegisteredPlugin(Struct, frozen=True):
    """A plugin, the name of its socket, and the resource and options with which it registers."""

    plugin: DevicePlugin
    socket: str
    resource: str
    options: PluginOptions


async def stay_registered(
    context: Context, link: DevicePluginLink, registered: RegisteredPlugin, on_restart: Callable[[], None]
) -> None:
    """Serve the plugin and register it, again after each start of the kubelet (contract kubelet.md section 1), until
    cancelled. ``on_restart`` is called then."""
    while True:
        endpoint = await _serve(context, link, registered)
        if endpoint is None:
            await rest(RETRY_S)
            continue
        await link.kubelet_restarted()
        on_restart()
        # The old stream first: a kubelet obeys it, and closes the new endpoint when it ends (kubelet.md section 1).
        await endpoint.close()


async def _serve(context: Context, link: DevicePluginLink, registered: RegisteredPlugin) -> Endpoint | None:
    name, resource = registered.socket, registered.resource
    endpoint: Endpoint | None = None
    try:
        endpoint = await link.serve(name, registered.plugin)
        await link.register(name, resource, registered.options)
    except (PluginError, OSError) as error:
        record(context.log, "registration-failed", resource=resource, error=str(error))
        if endpoint is not None:
            await endpoint.close()
        return None
    record(context.log, "registered", resource=resource, endpoint=name)
    return endpoint
