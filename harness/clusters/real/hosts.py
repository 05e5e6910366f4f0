"""The hosts of a real cluster, as the harness reaches what shows them on each node: their back doors by way of the API
server, and who uses their devices, which nobody there could know but for us."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aiohttp

from mews.harness.clusters.real.access import Gate
from mews.harness.manifests.parts import HOST_PORT
from mews.harness.ports.hosts_http import HttpHosts, WireUsers
from mews.harness.scenario.errors import CapabilityError
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.users import DeviceUsers
from mews.names import must_be

_ANSWER_S, _AGAIN_S, _REPORTED_S = 30.0, 0.2, 5.0
_BROKEN = (aiohttp.ClientError, TimeoutError, RuntimeError, OSError)


class PodHosts:
    """Those of one scenario, each behind a container of its own; ``follow`` names its pod."""

    def __init__(self, gate: Gate, namespace: str, reports: bool) -> None:
        """``reports``: whether hosts are told who uses their devices; without it they are closed to scenarios, for they
        would show what nobody told them."""
        self._gate = gate
        self._namespace = namespace
        self._reports = reports
        self._hosts: dict[str, HttpHosts] = {}
        self._users = WireUsers(lambda: self)
        self._reporting: asyncio.Task[None] | None = None

    @property
    def names(self) -> Collection[str]:
        """Those that can be reached."""
        return self._hosts.keys()

    def users(self, host: str) -> DeviceUsers | None:
        """Whom to tell which of that host's devices containers use; None where nobody is to know."""
        return self._users.of(host) if self._reports else None

    async def follow(self, host: str, pod: str, token: str) -> None:
        """That host is behind that pod: without faults and without users, whatever a scenario before has left."""
        if not self._reports:
            return
        url = self._gate.pod(self._namespace, pod, HOST_PORT)
        control = self._hosts[host] = HttpHosts(url, "", opened=lambda: self._gate.session(token))
        async with asyncio.timeout(_ANSWER_S):
            while True:
                try:
                    await control.clear()
                    break
                except _BROKEN:
                    await rest(_AGAIN_S)
        for holder in (await control.view())[host]["holders"]:
            await control.operate(host, {"do": "release", "key": holder["key"]}, 0.0)
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._users.run(), name="host-users")

    async def view(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees. Raises CapabilityError."""
        self._check("a look into the hosts")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REPORTED_S):
                await self._users.reported()
        views = await asyncio.gather(*(control.view() for control in self._hosts.values()))
        return {host: seen for view in views for host, seen in view.items()}

    async def visible(self, host: str, words: Sequence[str]) -> list[str]:
        """Return the UUIDs of the GPUs that a container sees by those words in its environment: indexes, UUIDs or
        ``all``."""
        if host not in self._hosts or not words:
            return []
        devices = (await self._hosts[host].view())[host]["devices"].values()
        gpus = sorted((row["bdf"], row["uuid"]) for row in devices if row["nvml"])
        wanted = set(words)
        return [uuid for index, (_, uuid) in enumerate(gpus) if {"all", uuid, str(index)} & wanted]

    async def fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault. Raises ValueError, CapabilityError."""
        await self._control(host, f"a fault on {host}").fault(host, spec)

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """``host/NAME`` -> the faults in place there, of those that can be reached."""
        found: dict[str, list[dict[str, Any]]] = {}
        for control in self._hosts.values():
            found |= await control.faults()
        return found

    async def clear(self, host: str | None = None) -> None:
        """Undo the faults of one host, or of all."""
        for name, control in self._hosts.items():
            if host in (None, name):
                await control.clear()

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float) -> str:
        """Return what an operator does there. Raises ValueError, CapabilityError."""
        return await self._control(host, f"an operator on {host}").operate(host, action, wait_s)

    def _check(self, what: str) -> None:
        if not self._reports:
            raise CapabilityError(f"needs {what}: real nodes do not report which pods use pooled devices")

    def _control(self, host: str, what: str) -> HttpHosts:
        self._check(what)
        if host not in self._hosts:
            raise ValueError(f"host {host!r}: {must_be(host, self._hosts)}")
        return self._hosts[host]

    async def close(self) -> None:
        """Give all connections back."""
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)
        for control in self._hosts.values():
            with contextlib.suppress(*_BROKEN):
                await control.close()
