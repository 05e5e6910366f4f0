"""The ChassisApi adapters over the emulator's dialects, in process and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mews.dialects import OURS
from mews.emulator.inventory_file import load_hardware
from mews.harness.clock import run_virtual
from mews.harness.ports.chassis import LOCAL_PASSWORD, LocalFleet
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.port import ChassisApi, ChassisError, ReplyOutcome
from mews.kube.chassis.redfish import RedfishCredentials
from mews.kube.clock import Pace

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
Story = Callable[[ChassisApi, LocalHardwareControl], Coroutine[Any, Any, None]]


def tell(story: Story, dialect: str = "h3api", hardware: str = "demo", **options: Any) -> None:
    async def main() -> None:
        fleet = LocalFleet(load_hardware(FIXTURES / f"{hardware}.yaml"), pace=Pace(), seed=1)
        account = RedfishCredentials("admin", LOCAL_PASSWORD)
        patience_s = options.get("timeout_s", 120.0)
        api = client_of(dialect, fleet.transport("A", dialect, **options), account, patience_s=patience_s)
        await story(api, LocalHardwareControl(fleet))

    run_virtual(main)


@pytest.mark.parametrize("dialect", OURS)
def test_a_device_moves_and_is_read_back_on_its_new_port(dialect: str) -> None:
    async def story(api: ChassisApi, control: LocalHardwareControl) -> None:
        assert (await api.detach("000100")).outcome is ReplyOutcome.DONE
        assert (await api.attach("000100", "2")).outcome is ReplyOutcome.DONE
        listing = await api.resources()
        assert {row.device: row.port for row in listing.devices}["000100"] == "2"
        assert (await control.table())["A"]["000100"]["host"] == "host-2"

    tell(story, dialect)


@pytest.mark.parametrize("dialect", OURS)
def test_a_refused_attach_is_failed_and_changes_nothing(dialect: str) -> None:
    async def story(api: ChassisApi, control: LocalHardwareControl) -> None:
        before = await control.table()
        assert (await api.attach("000100", "2")).outcome is ReplyOutcome.FAILED
        assert (await api.attach("no-such", "2")).outcome is ReplyOutcome.FAILED
        assert await control.table() == before

    tell(story, dialect)


@pytest.mark.parametrize("dialect", OURS)
def test_a_dropped_connection_is_an_unknown_outcome_and_a_failed_read(dialect: str) -> None:
    async def story(api: ChassisApi, control: LocalHardwareControl) -> None:
        await api.resources()  # some dialects must know where a device is
        await control.fault("A", {"kind": "dropped-connection", "operation": "detach", "when": "after"})
        await control.fault("A", {"kind": "dropped-connection", "operation": "read"})
        assert (await api.detach("000100")).outcome is ReplyOutcome.UNKNOWN
        with pytest.raises(ChassisError, match="dropped"):
            await api.resources()
        assert (await control.table())["A"]["000100"]["port"] is None

    tell(story, dialect)


@pytest.mark.parametrize("dialect", OURS)
def test_a_client_stops_waiting_after_its_timeout_and_the_operation_goes_on(dialect: str) -> None:
    async def story(api: ChassisApi, control: LocalHardwareControl) -> None:
        await api.resources()
        await control.fault("A", {"kind": "slow-operation", "extra_s": 30})
        assert (await api.detach("000100")).outcome is ReplyOutcome.UNKNOWN
        assert asyncio.get_running_loop().time() == pytest.approx(10)
        assert (await control.table())["A"]["000100"]["pending"] == "detach"
        await asyncio.sleep(21)
        assert (await control.table())["A"]["000100"]["port"] is None

    tell(story, dialect, timeout_s=10)


@pytest.mark.parametrize("speed", [1.0, 0.3, 7.3])
def test_a_client_stops_waiting_in_time_whenever_it_began(speed: float) -> None:
    async def main() -> None:
        fleet = LocalFleet(load_hardware(FIXTURES / "demo.yaml"), pace=Pace(speed), seed=1)
        await LocalHardwareControl(fleet).fault("A", {"kind": "timeout", "count": 1000})
        api = client_of("h3api", fleet.transport("A", "h3api", timeout_s=1.1), None, patience_s=1.1)
        for _ in range(100):
            await asyncio.sleep(0.1)
            begun_s = asyncio.get_running_loop().time()
            reply = await asyncio.wait_for(api.detach("000100"), 60)
            assert reply.outcome is ReplyOutcome.UNKNOWN
            assert asyncio.get_running_loop().time() - begun_s == pytest.approx(1.1)

    run_virtual(main)


def test_operations_of_one_chassis_queue_while_two_chassis_work_in_parallel() -> None:
    async def main() -> None:
        fleet = LocalFleet(load_hardware(FIXTURES / "testbed.yaml"), pace=Pace(), seed=1)
        a = client_of("h3api", fleet.transport("A", "h3api"))
        b = client_of("h3api", fleet.transport("B", "h3api"))
        loop = asyncio.get_running_loop()
        ends = {}

        async def detach(name: str, api: ChassisApi, device: str) -> None:
            await api.detach(device)
            ends[name] = loop.time()

        await asyncio.gather(
            detach("A1", a, "000500"), detach("A2", a, "000C00"), detach("B1", b, "000500"), detach("B2", b, "000C00")
        )
        assert ends["A2"] - ends["A1"] > 4.5
        assert ends["B1"] < ends["A2"]
        assert ends["B2"] < ends["A2"] + 13.4

    run_virtual(main)


def test_a_killed_chassis_refuses_connections_and_finds_its_table_when_started() -> None:
    async def main() -> None:
        fleet = LocalFleet(load_hardware(FIXTURES / "testbed.yaml"), pace=Pace(), seed=1)
        api = client_of("h3api", fleet.transport("A", "h3api"))
        await api.detach("000500")
        running = asyncio.create_task(api.detach("000C00"))
        await asyncio.sleep(1)
        fleet.kill("A")
        assert (await running).outcome is ReplyOutcome.UNKNOWN
        with pytest.raises(ChassisError, match="refused"):
            await api.resources()
        fleet.start("A")
        ports = {row.device: row.port for row in (await api.resources()).devices}
        assert ports == {"000500": None, "000C00": "48", "001300": "48", "001800": "48"}

    run_virtual(main)


def test_no_event_of_an_edit_while_a_chassis_was_dead_is_lost() -> None:
    """Whoever puts late events into their order would wait for it, and show nothing more."""

    async def main() -> None:
        heard = []
        hardware = load_hardware(FIXTURES / "demo.yaml")
        fleet = LocalFleet(hardware, pace=Pace(), seed=1, listener=lambda e: heard.append(e.number))
        control = LocalHardwareControl(fleet)
        await control.fault("A", {"kind": "events-out-of-order", "delay_s": 5.0})
        fleet.kill("A")
        await control.edit("A", "000100", None)
        await asyncio.sleep(1)
        fleet.start("A")
        await control.edit("A", "000200", None)
        await asyncio.sleep(10)
        assert heard == [1, 2, 3, 4]  # the fault, that it fired, the edit; its successor counts on, or hosts drop it

    run_virtual(main)


def test_a_scheduled_fault_happens_at_its_time_although_nobody_looks() -> None:
    async def main() -> None:
        heard = []
        fleet = LocalFleet(
            load_hardware(FIXTURES / "demo.yaml"), pace=Pace(), seed=1, listener=lambda e: heard.append((e.event, e.t))
        )
        control = LocalHardwareControl(fleet)
        await control.fault("A", {"kind": "concurrent-editor", "edit": "000100", "port": "3", "after_s": 7})
        await asyncio.sleep(8)
        assert ("table-changed", 7.0) in heard

    run_virtual(main)
