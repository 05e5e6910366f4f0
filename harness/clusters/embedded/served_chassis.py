"""The chassis of a wall-clock cluster: their process, its events, its clients and its back door."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.emulator.hardware.inventory import Hardware
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clusters.embedded.chassis_process import ChassisProcess
from mews.harness.run_context import RunContext
from mews.kube.clock import rest

if TYPE_CHECKING:
    from mews.harness.ports.hardware_http import HttpHardwareControl
    from mews.kube.chassis.http import HttpTransport
    from mews.kube.chassis.port import ChassisApi


class ServedChassis:
    """A ChassisPort: one process serves all chassis of a hardware file. The journal gets their events."""

    def __init__(self, process: ChassisProcess, hardware: Hardware, run: RunContext) -> None:
        self._process = process
        self._specs = tuple(hardware.chassis)
        self._journal = run.journal
        self._ready: dict[str, Any] = {}
        self._control: HttpHardwareControl | None = None
        self._alive = asyncio.Event()
        self._feeds: dict[str, ChassisFeed] = {}
        self._feeding: asyncio.Task[None] | None = None
        self._transports: list[HttpTransport] = []

    @property
    def hardware_file(self) -> Path:
        """The hardware file that the process reads."""
        return self._process.hardware

    @property
    def ready_file(self) -> Path:
        """Where the process says that all of it serves."""
        return self._process.ready_file

    async def begin(self) -> None:
        """Start the process."""
        from mews.harness.ports.hardware_http import HttpHardwareControl

        self._ready = await self._process.start()
        control = self._ready["control"]
        self._control = HttpHardwareControl(control["url"], control["token"], ca=self._ready["ca"])
        self._alive.set()

    def begin_feeds(self, tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        """Write the tables into the journal."""
        self._feeds = {spec.name: ChassisFeed(self._journal, spec, tables[spec.name]) for spec in self._specs}
        for feed in self._feeds.values():
            feed.begin()

    def follow(self) -> None:
        """Write the events into the journal from now on, over every restart of the process."""
        self._feeding = asyncio.create_task(self._feed(), name="chassis-feed")

    async def _feed(self) -> None:
        import aiohttp

        while True:
            await self._alive.wait()
            control, last = self.control(), 0
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError):
                async for event in control.events(last):
                    last = event["seq"]
                    fields = {k: v for k, v in event.items() if k not in ("seq", "number", "t", "chassis", "event")}
                    self._feeds[event["chassis"]].on_event(event["number"], event["event"], fields)
            await rest(0.05)

    def control(self) -> HttpHardwareControl:
        """Return the back door of the running process.

        Raises RuntimeError while none runs.
        """
        if self._control is None:
            raise RuntimeError("the chassis' process does not run")
        return self._control

    def client(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """Return the chassis over HTTP."""
        from mews.kube.chassis.dialects import client_of
        from mews.kube.chassis.http import HttpTransport
        from mews.kube.chassis.port import RedfishCredentials

        transport = HttpTransport(self._ready["chassis"][name][dialect], timeout_s, ca_file=self._ready["ca"])
        self._transports.append(transport)
        account = self._ready.get("accounts", {}).get(dialect)
        return client_of(dialect, transport, RedfishCredentials(**account) if account else None, patience_s=timeout_s)

    async def kill(self, name: str) -> None:
        """Kill -9 of the process; it serves all chassis.

        Raises ValueError where there are several.
        """
        if len(self._specs) > 1:
            raise ValueError(f"chassis/{name}: one process serves all {len(self._specs)} chassis here")
        self._alive.clear()
        await self._process.kill()
        await self._drop_control()

    async def start(self, name: str) -> None:
        """Start the process again from its stored table."""
        await self.begin()

    def ready(self) -> dict[str, Any]:
        """Return where the chassis are reached: ``chassis``, ``control``, ``accounts`` of ready.json."""
        return {
            "chassis": self._ready["chassis"],
            "control": self._ready["control"],
            "accounts": self._ready.get("accounts", {}),
        }

    async def stop_following(self) -> None:
        """Write no more events."""
        if self._feeding is not None:
            self._feeding.cancel()
            await asyncio.gather(self._feeding, return_exceptions=True)

    async def close_clients(self) -> None:
        """Close the chassis' clients and the back door."""
        for transport in self._transports:
            await transport.close()
        await self._drop_control()

    async def stop(self) -> None:
        """End the process."""
        await self._process.stop()

    async def _drop_control(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            await control.close()
