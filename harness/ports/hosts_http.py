"""The back door to emulated hosts that are served by another process, over the hosts' dialect ``control``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mews.emulator.telemetry.load import parse_load

if TYPE_CHECKING:
    import aiohttp


class HttpHosts:
    """What a cluster asks of the hosts' process: ``url`` and ``token`` stand in its ready file under ``control``,
    ``ca`` beside them. ``opened`` makes the session where more than the token is needed to get there (a proxy)."""

    def __init__(
        self,
        url: str,
        token: str,
        ca: str | None = None,
        opened: Callable[[], aiohttp.ClientSession] | None = None,
    ) -> None:
        from mews.harness.ports.control_http import ControlClient  # and aiohttp: while the other process starts

        self._client = ControlClient(url, token, opened=opened, ca=ca)

    async def view(self) -> dict[str, dict[str, Any]]:
        """Return what each host sees."""
        view: dict[str, dict[str, Any]] = await self._client.ask("GET", "/v1/hosts")
        return view

    async def fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault. Raises ValueError."""
        await self._client.ask("POST", "/v1/faults", {"host": host, "spec": dict(spec)})

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """``host/NAME`` -> the faults in place there."""
        listed = await self._client.ask("GET", "/v1/faults")
        return {f"host/{name}": found for name, found in listed.items()}

    async def clear(self, host: str | None = None) -> None:
        """Undo the faults of one host, or of all."""
        await self._client.ask("DELETE", "/v1/faults", query={} if host is None else {"host": host})

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float) -> str:
        """Return what an operator does there. Raises ValueError."""
        body = {"host": host, "action": dict(action), "wait_s": wait_s}
        answer = await self._client.ask("POST", "/v1/operate", body)
        return str(answer["result"])

    def events(self, since: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Return every event after ``seq`` number ``since``: ``{seq, number, t, host, event, …}``."""
        return self._client.events(since)

    async def close(self) -> None:
        """Give all connections back."""
        await self._client.close()


class OperatedHosts(Protocol):
    """Through whom hosts are told what happens on them."""

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float) -> str:
        """Return what an operator does there. Raises ValueError."""
        ...


class WireUsers:
    """``Users`` of one host: tells the hosts' process, in order, from one task for all hosts (``run``)."""

    def __init__(self, hosts: Callable[[], OperatedHosts | None]) -> None:
        self._hosts = hosts
        self._queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._held: dict[tuple[str, str], dict[str, Any]] = {}

    def of(self, host: str) -> _HostUsers:
        """Return those of one host."""
        return _HostUsers(self, host)

    def post(self, host: str, action: dict[str, Any]) -> None:
        """Queue one action, and remember who holds what for a hosts' process that is started anew."""
        if action["do"] == "hold":
            self._held[(host, action["key"])] = action
        else:
            self._held.pop((host, action["key"]), None)
        self._queue.put_nowait((host, action))

    def retell(self) -> None:
        """The hosts' process is a new one: everything again."""
        for (host, _), action in self._held.items():
            self._queue.put_nowait((host, action))

    async def run(self) -> None:
        """Tell what is queued, until cancelled."""
        import aiohttp

        while True:
            host, action = await self._queue.get()
            hosts = self._hosts()
            if hosts is not None:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, RuntimeError, ValueError):
                    await hosts.operate(host, action, 0.0)
            self._queue.task_done()

    async def reported(self) -> None:
        """Wait until all that was queued is reported."""
        await self._queue.join()


class _HostUsers:
    def __init__(self, users: WireUsers, host: str) -> None:
        self._users = users
        self._host = host

    def check(self, load: Any) -> None:
        parse_load(load)

    def begin(
        self, key: str, uuids: Sequence[str], *, pid: int, name: str, load: Any = None, cgroup: str = "/"
    ) -> None:
        action = {"do": "hold", "key": key, "uuids": list(uuids), "pid": pid, "name": name, "computing": True}
        action["cgroup"] = cgroup
        if load is not None:
            action["load"] = parse_load(load).as_value()
        self._users.post(self._host, action)

    def end(self, key: str) -> None:
        self._users.post(self._host, {"do": "release", "key": key})
