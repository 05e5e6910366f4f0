"""A host that is cabled to many chassis: domains, slot numbers and what the ports' configuration spaces say of them."""

from __future__ import annotations

from typing import Any

import pytest

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.host.config_space import LAST_SLOT
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.own_slots import LazyPools
from mews.emulator.host.tree import HostTree
from mews.emulator.inventory.reading import parse_hardware

HOSTS = ("host-1", "host-2")


def inventory(chassis: int, slots: int) -> Hardware:
    """Two hosts cabled to every chassis; the first has the first and the last device of each, the rest is free."""
    boxes: list[dict[str, Any]] = []
    for box in range(chassis):
        devices = [
            {
                "id": f"{slot:04X}",
                "uuid": f"GPU-{box:08x}-0000-4000-8000-{slot:012x}",
                **({"port": "1"} if slot in (0, slots - 1) else {}),
            }
            for slot in range(slots)
        ]
        ports = {str(number): host for number, host in enumerate(HOSTS, 1)}
        boxes.append({"name": f"C{box}", "index": box, "slots": slots, "ports": ports, "devices": devices})
    content = {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "many"},
        "hosts": [{"name": host} for host in HOSTS],
        "chassis": boxes,
    }
    return parse_hardware(content, "many.yaml")


def slot_in_capabilities(config: bytes) -> int:
    """The physical slot number of a port's slot capabilities register (PCI Express Base 4.0 section 7.5.3.9)."""
    return int.from_bytes(config[0x74:0x78], "little") >> 19


@pytest.mark.parametrize(("chassis", "slots"), [(9, 2), (40, 32)])
def test_every_port_shows_the_number_of_its_slot(chassis: int, slots: int) -> None:
    hosts = Hosts(inventory(chassis, slots), EmulationContext(1))
    hosts.begin(0.0)
    tree = HostTree(hosts.host("host-1"))
    functions = hosts.host("host-1").bus.functions()
    assert len(functions) == 2 * chassis
    shown = {
        slot_in_capabilities(tree.read(f"sys/bus/pci/devices/{function.bridge}/config")): function.bdf
        for function in functions
    }
    assert shown == {function.slot: function.bdf for function in functions}
    assert sorted(shown, key=int) == sorted(int(name) for name in tree.names("sys/bus/pci/slots"))


def test_few_chassis_keep_a_thousand_numbers_each() -> None:
    hosts = Hosts(inventory(8, 2), EmulationContext(1))
    hosts.begin(0.0)
    assert [function.slot for function in hosts.host("host-1").bus.functions()] == [
        1000 * box + n for box in range(8) for n in (1, 2)
    ]


def test_of_more_slots_than_a_port_can_number_it_has_the_lower_bits() -> None:
    hosts = Hosts(inventory(300, 32), EmulationContext(1))
    hosts.begin(0.0)
    host = hosts.host("host-1")
    last = max(host.bus.functions(), key=lambda function: function.slot)
    assert last.slot == 300 * 32 > LAST_SLOT
    config = HostTree(host).read(f"sys/bus/pci/devices/{last.bridge}/config")
    assert slot_in_capabilities(config) == last.slot & LAST_SLOT


def test_domains_of_many_and_large_chassis_do_not_meet() -> None:
    many = LazyPools(inventory(20, 450).chassis, number=1)
    addresses = {(name, many[name].give(slot).bdf[:4]) for name in ("C0", "C3", "C16", "C19") for slot in range(450)}
    assert len(addresses) > 4
    assert len(addresses) == len({domain for _, domain in addresses})


def test_a_device_comes_back_into_its_slot_and_a_new_one_into_the_first_free() -> None:
    hosts = Hosts(inventory(2, 4), EmulationContext(1))
    hosts.begin(0.0)
    host = hosts.host("host-1")
    before = {function.device.id: function.slot for function in host.bus.functions() if function.chassis == "C1"}
    hosts.on_event("C1", 1, "table-changed", {"device": "0000", "old_port": "1", "new_port": None}, 1.0)
    new = {"device": "NEW", "uuid": "GPU-ffffffff-0000-4000-8000-000000000000", "new_port": "1"}
    hosts.on_event("C1", 2, "device-inserted", {**new, "kind": "GPU", "model": "V100", "serial": ""}, 2.0)
    hosts.on_event("C1", 3, "table-changed", {"device": "0000", "old_port": None, "new_port": "1"}, 3.0)
    after = {function.device.id: function.slot for function in host.bus.functions() if function.chassis == "C1"}
    assert after == {**before, "NEW": 1005}
