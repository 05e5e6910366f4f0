"""A host's power takes all along that runs on it, and nothing of other hosts."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from mews.harness.clock import run_virtual
from mews.harness.clusters.embedded.host_power import PoweredHosts
from mews.harness.clusters.unit import Unit
from mews.harness.journal import Journal
from mews.kube.emulated.kubelet.machine import Machine


class Running:
    async def run(self) -> None:
        await asyncio.Event().wait()


class FakeMachine:
    """Notes which of its host's components ran as it went down."""

    def __init__(self, units: dict[str, Unit]) -> None:
        self.units = units
        self.reboots: list[list[str]] = []

    async def reboot(self) -> None:
        await asyncio.sleep(0.1)
        self.reboots.append([name for name, unit in self.units.items() if unit.running])


def played(*switches: tuple[str, str]) -> dict[str, Any]:
    """What runs after those lines of the journal (host, event), and what is off."""

    async def main() -> dict[str, Any]:
        journal = Journal(asyncio.get_running_loop().time)
        names = ("kubelet/host-1", "manager/host-1", "kubelet/host-2", "scheduler")
        units = {name: Unit(name, journal, lambda fence: Running()) for name in names}
        machine = FakeMachine(units)
        machines = {name: cast("Machine", machine) for name in ("host-1", "host-2")}
        power = PoweredHosts(journal, machines, units)
        for unit in units.values():
            unit.start()
        for host, event in switches:
            journal.write("host", f"host/{host}", event)
        at_once = [name for name, unit in units.items() if unit.running]
        await asyncio.sleep(1.0)
        found = {
            "at once": at_once,
            "running": [name for name, unit in units.items() if unit.running],
            "off": [name for name in units if power.is_off(name)],
            "reboots": machine.reboots,
        }
        await power.close()
        for unit in units.values():
            await unit.close()
        return found

    return run_virtual(main)


OTHERS = ["kubelet/host-2", "scheduler"]


def test_a_host_that_is_switched_off_takes_its_components_along_at_once() -> None:
    found = played(("host-1", "powered-off"))
    assert found["at once"] == found["running"] == OTHERS
    assert found["off"] == ["kubelet/host-1", "manager/host-1"]
    assert found["reboots"] == [OTHERS]  # containers end after all that would tell of it


def test_switched_on_it_starts_them_again_after_its_containers_have_ended() -> None:
    found = played(
        ("host-1", "powered-off"), ("host-1", "powered-on"), ("host-1", "powered-off"), ("host-1", "powered-on")
    )
    assert found["running"] == ["kubelet/host-1", "manager/host-1", *OTHERS]
    assert found["reboots"] == [OTHERS, OTHERS]  # each time, and nothing of the host ran before it was over
    assert found["off"] == []


def test_lines_of_hosts_that_are_none_of_the_clusters_and_other_events_are_passed_over() -> None:
    found = played(("host-9", "powered-off"), ("host-1", "link-down"))
    assert (len(found["running"]), found["off"], found["reboots"]) == (4, [], [])
