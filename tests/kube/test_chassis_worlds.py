"""Seeded worlds of one chassis in process: clients that come at odd moments, faults, edits, resets and kills.

Whatever happens, a client hears within its own limit, and the same seed tells the same story.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from mews.emulator.inventory_file import load_hardware
from mews.harness.clock import run_virtual
from mews.harness.ports.chassis import LocalFleet
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.port import ChassisApi, ChassisError
from mews.kube.clock import Pace

HARDWARE = Path(__file__).parents[2] / "fixtures" / "hardware" / "demo.yaml"
FAULTS = (
    {"kind": "management-reboot", "down_s": 3.7},
    {"kind": "dropped-connection"},
    {"kind": "timeout"},
    {"kind": "http-error", "status": 503},
    {"kind": "slow-operation", "factor": 3},
    {"kind": "stale-list"},
    {"kind": "partial-list"},
    {"kind": "lying-result"},
)
CLIENTS, CALLS, BLOWS = 5, 8, 6
Told = tuple[object, ...]


async def called(api: ChassisApi, rng: random.Random, devices: list[str]) -> object:
    kind = rng.choice(["read", "read", "read", "attach", "detach"])
    try:
        if kind == "read":
            return sorted((row.device, row.port or "") for row in (await api.resources()).devices)
        if kind == "attach":
            return (await api.attach(rng.choice(devices), rng.choice("12"))).outcome
        return (await api.detach(rng.choice(devices))).outcome
    except ChassisError as error:
        return str(error)


async def strike(fleet: LocalFleet, control: LocalHardwareControl, rng: random.Random, devices: list[str]) -> None:
    kind = rng.choice(["kill", "fault", "fault", "fault", "edit", "reset"])
    if kind == "kill":
        fleet.kill("A")
        await asyncio.sleep(rng.choice([0.0, 3 * rng.random()]))
        fleet.start("A")
    elif kind == "fault":
        await control.fault("A", rng.choice(FAULTS))
    elif kind == "edit":
        await control.edit("A", rng.choice(devices), rng.choice([None, "1", "2"]))
    else:
        fleet.fleet.box("A").reset(fleet.pace.now())
        fleet.stirred("A")


def story(seed: int) -> list[Told]:
    """What each client heard, and when: (client, call, limit, asked at, heard at, what), loop seconds."""
    rng, told = random.Random(seed), list[Told]()

    async def main() -> None:
        fleet = LocalFleet(load_hardware(HARDWARE), pace=Pace(rng.choice([1.0, 1.0, 7.3, 0.3])), seed=seed)
        control, loop = LocalHardwareControl(fleet), asyncio.get_running_loop()
        devices = list(fleet.fleet.box("A").table.devices())

        async def client(number: int) -> None:
            own = random.Random(f"{seed}/{number}")
            limit_s = own.choice([120.0, 1.0, 3.0, 10.0])
            api = client_of("h3api", fleet.transport("A", "h3api", timeout_s=limit_s), None, patience_s=limit_s)
            for call in range(CALLS):
                await asyncio.sleep(own.choice([0.0, 0.0, 0.5, 5 * own.random()]))
                asked_s = loop.time()
                heard = await called(api, own, devices)
                told.append((number, call, limit_s, asked_s, loop.time(), heard))

        async def blows() -> None:
            for _ in range(BLOWS):
                await asyncio.sleep(15 * rng.random() / fleet.pace.speed)
                await strike(fleet, control, rng, devices)

        await asyncio.gather(*map(client, range(CLIENTS)), blows())
        fleet.close()

    run_virtual(main)
    return told


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_client_hears_within_its_limit(first: int) -> None:
    for seed in range(first, first + 20):
        told = story(seed)
        assert len(told) == CLIENTS * CALLS
        late = [entry for entry in told if entry[4] - entry[3] > entry[2] + 1e-6]  # type: ignore[operator]
        assert late == [], seed


def test_the_same_seed_tells_the_same_story() -> None:
    assert [story(seed) for seed in range(10)] == [story(seed) for seed in range(10)]
    assert story(1) != story(2)
