"""The ChassisApi adapters over real HTTP: what production uses."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mews.dialects import OURS
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.harness.ports.hardware_http import HttpHardwareControl
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.http import HttpTransport
from mews.kube.chassis.port import ChassisApi, ChassisError, ReplyOutcome, TransportError, WireRequest
from mews.kube.chassis.redfish import RedfishCredentials

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
pytestmark = pytest.mark.wall


@pytest.fixture(scope="module")
def server() -> Iterator[ChassisServer]:
    made = ChassisServer(load_hardware(FIXTURES / "demo.yaml"), context=EmulationContext(speed=1000))
    made.start()
    yield made
    made.stop()


@contextlib.asynccontextmanager
async def client(
    server: ChassisServer, dialect: str, timeout_s: float = 10.0
) -> AsyncIterator[tuple[ChassisApi, HttpHardwareControl]]:
    ready = server.ready()
    transport = HttpTransport(ready["chassis"]["A"][dialect], timeout_s, ca_file=ready["ca"])
    control = HttpHardwareControl(**ready["control"])
    await control.reset()
    try:
        account = RedfishCredentials(**ready["accounts"]["redfish"])
        yield client_of(dialect, transport, account, patience_s=timeout_s), control
    finally:
        await transport.close()
        await control.close()


@pytest.mark.parametrize("dialect", OURS)
def test_a_device_moves_and_is_read_back(server: ChassisServer, dialect: str):
    async def main() -> None:
        async with client(server, dialect) as (api, control):
            assert (await api.detach("000100")).outcome is ReplyOutcome.DONE
            assert (await api.attach("000100", "2")).outcome is ReplyOutcome.DONE
            assert (await api.attach("000100", "2")).outcome is ReplyOutcome.FAILED
            listing = await api.resources()
            assert len(listing.devices) == 12
            assert {row.device: row.port for row in listing.devices}["000100"] == "2"
            assert (await control.table())["A"]["000100"]["host"] == "host-2"

    asyncio.run(main())


@pytest.mark.parametrize("dialect", OURS)
@pytest.mark.parametrize("operation", ["read", "detach"])
def test_a_dropped_request_is_never_sent_twice(server: ChassisServer, dialect: str, operation: str):
    """The HTTP library would repeat GET and DELETE by itself: the second one would get through."""

    async def main() -> None:
        async with client(server, dialect) as (api, control):
            assert await api.resources()
            await control.fault("A", {"kind": "dropped-connection", "operation": operation, "when": "before"})
            if operation == "read":
                with pytest.raises(ChassisError):
                    await api.resources()
            else:
                assert (await api.detach("000100")).outcome is ReplyOutcome.UNKNOWN
                assert (await control.table())["A"]["000100"]["port"] == "1"

    asyncio.run(main())


@pytest.mark.parametrize("dialect", OURS)
def test_no_answer_in_time_is_an_unknown_outcome(server: ChassisServer, dialect: str):
    async def main() -> None:
        async with client(server, dialect, timeout_s=0.2) as (api, control):
            await api.resources()
            await control.fault("A", {"kind": "timeout", "hold_s": 1000, "count": 2})
            assert (await api.detach("000100")).outcome is ReplyOutcome.UNKNOWN
            with pytest.raises(ChassisError, match=r"no answer within 0\.2 s"):
                await api.resources()
            await control.reset()

    asyncio.run(main())


def test_an_error_page_is_an_unknown_outcome(server: ChassisServer):
    async def main() -> None:
        for dialect in OURS:
            async with client(server, dialect) as (api, control):
                await api.resources()
                await control.fault("A", {"kind": "http-error", "status": 503, "when": "after", "count": 2})
                reply = await api.detach("000100")
                assert reply.outcome is ReplyOutcome.UNKNOWN
                assert "503" in reply.remark
                with pytest.raises(ChassisError, match="HTTP 503"):
                    await api.resources()

    asyncio.run(main())


def test_a_server_that_is_not_there_is_a_transport_error():
    async def main() -> None:
        transport = HttpTransport("http://127.0.0.1:1")
        try:
            with pytest.raises(TransportError):
                await transport.send(WireRequest("GET", "/resources"))
        finally:
            await transport.close()

    asyncio.run(main())


def test_the_back_door_tells_what_is_allowed_and_feeds_events(server: ChassisServer):
    async def main() -> None:
        async with client(server, "h3api") as (api, control):
            with pytest.raises(ValueError, match="must be one of slow-operation"):
                await control.fault("A", {"kind": "nope"})
            with pytest.raises(ValueError, match="device 'nope'"):
                await control.edit("A", "nope", None)
            await control.clear()
            events = control.events(since=0)
            await api.detach("000100")
            async for event in events:
                if event["event"] == "table-changed":
                    break
            assert (event["device"], event["old_port"], event["new_port"]) == ("000100", "1", None)
            await events.aclose()

    asyncio.run(main())


def test_speed_can_be_changed(server: ChassisServer):
    async def main() -> None:
        async with client(server, "h3api") as (_, control):
            await control.speed(500)
            assert server.rack.clock.speed == 500
            await control.speed(1000)

    asyncio.run(main())
