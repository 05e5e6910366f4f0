"""A device plugin of one's own: announces the GPUs that are on this node's ports, and moves nothing.

usage: device_plugin.py CHASSIS_URL HOST_PORT DEVICE_PLUGINS_FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mews.kube.chassis.h3api import H3ApiClient
from mews.kube.chassis.http import HttpTransport
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.deviceplugin.port import Allocation, PluginDevice, PluginError, PluginOptions


class Gpus:
    """GPUID -> UUID, as the chassis told at the start."""

    def __init__(self, uuids: dict[str, str]) -> None:
        self._uuids = uuids

    async def options(self) -> PluginOptions:
        """None."""
        return PluginOptions()

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        """One list, for ever."""
        yield tuple(PluginDevice(gpuid) for gpuid in self._uuids)
        await asyncio.Event().wait()

    async def preferred_allocation(self, available: Sequence[str], must: Sequence[str], size: int) -> tuple[str, ...]:
        """The first ones."""
        return tuple([*must, *sorted(set(available) - set(must))][:size])

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        """The UUIDs, and a mark of our own."""
        uuids = [",".join(self._uuids[gpuid] for gpuid in request) for request in requests]
        return tuple(Allocation({"NVIDIA_VISIBLE_DEVICES": text, "MINE": "yes"}) for text in uuids)

    async def pre_start(self, devices: Sequence[str]) -> None:
        """Nothing to do."""


async def main(url: str, port: str, folder: str) -> None:
    """Serve until killed; again whenever the kubelet starts anew."""
    transport = HttpTransport(url, 10.0)
    listed = (await H3ApiClient(transport).resources()).devices
    await transport.close()
    plugin = Gpus({f"0-{each.device}": each.uuid for each in listed if each.port == port})
    link = GrpcLink(Path(folder))
    while True:
        served = await link.serve("mine.sock", plugin)
        try:
            await link.register("mine.sock", "falcon.com/gpu", await plugin.options())
            await link.kubelet_restarted()
        except PluginError:  # the kubelet does not serve yet: a plugin may be there before it
            await asyncio.sleep(0.2)
        await served.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
