"""The back door to emulated chassis that are served by another process, over the dialect ``control``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


class HttpHardwareControl:
    """HardwareControl over HTTP: ``url`` and ``token`` stand in the ready file under ``control``, ``ca`` beside them.
    ``opened`` makes the session where more than the token is needed to get there (a proxy)."""

    def __init__(
        self,
        url: str,
        token: str,
        timeout_s: float = 30.0,
        opened: Callable[[], aiohttp.ClientSession] | None = None,
        ca: str | None = None,
    ) -> None:
        from mews.harness.ports.control_http import ControlClient  # and aiohttp: while the other process starts

        self._client = ControlClient(url, token, timeout_s, opened, ca)

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> row; see ``mews.emulator.chassis.fleet.Fleet.table``."""
        table: dict[str, dict[str, dict[str, Any]]] = await self._client.ask("GET", "/v1/table")
        return table

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table at once.

        Raises ValueError where the chassis refuses.
        """
        await self._client.ask("POST", "/v1/edit", {"chassis": chassis, "device": device, "port": port})

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault.

        Raises ValueError naming what is allowed.
        """
        await self._client.ask("POST", "/v1/faults", {"chassis": chassis, "spec": dict(spec)})

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """``chassis/NAME`` -> the faults in place there."""
        listed = await self._client.ask("GET", "/v1/faults")
        return {f"chassis/{name}": found for name, found in listed.items()}

    async def clear(self, chassis: str | None = None) -> None:
        """Undo all faults that were added."""
        await self._client.ask("DELETE", "/v1/faults", query={} if chassis is None else {"chassis": chassis})

    async def reset(self) -> None:
        """The table, the faults and the operations as they were at the start."""
        await self._client.ask("POST", "/v1/reset")

    async def telemetry(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Return what every board shows now."""
        shown: dict[str, dict[str, dict[str, Any]]] = await self._client.ask("GET", "/v1/telemetry")
        return shown

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of boards. Raises ValueError."""
        await self._client.ask("POST", "/v1/telemetry", {"chassis": chassis, "device": device, "set": dict(values)})

    async def speed(self, speed: float) -> None:
        """Let emulated time pass that many times as fast."""
        await self._client.ask("PUT", "/v1/speed", {"speed": speed})

    async def seq(self) -> int:
        """Return the number of the last event so far."""
        latest = await self._client.ask("GET", "/v1/events", query={"since": str(2**62)})
        return int(latest["seq"])

    def events(self, since: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Return every event after ``seq`` number ``since`` as it happens: ``{seq, number, t, chassis, event, …}``.

        Ends with an aiohttp.ClientError when the connection does; go on from the last ``seq``.
        """
        return self._client.events(since)

    async def close(self) -> None:
        """Give all connections back."""
        await self._client.close()
