"""What happens to a host's devices reaches NVML's event sets."""

from pathlib import Path

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.inventory_file import load_hardware

DEMO = Path(__file__).resolve().parents[3] / "fixtures" / "hardware" / "demo.yaml"


def kinds(host):
    return [(event.sequence, event.kind, event.bus_id, event.data) for event in nvml_host(host).events]


def test_moves_and_faults_are_events_in_their_order():
    host = Hosts(load_hardware(DEMO), EmulationContext(1)).host("host-1")
    spec = host.chassis[0]
    first, second = spec.devices[0], spec.devices[4]
    host.begin({spec.name: [first]}, 0.0)
    assert kinds(host) == []
    host.plug(spec.name, second, 1.0)
    while (due := host.actions.agenda.next_s()) is not None:
        host.settle(due)
    came = host.bus.functions()[1].bdf
    assert kinds(host) == [(1, "bind", came, 0)]
    host.faults.add({"kind": "ecc-errors", "device": second.id}, 2.0)
    host.settle(2.0)
    host.unplug(spec.name, second.id, 5.0)
    while (due := host.actions.agenda.next_s()) is not None:
        host.settle(due)
    assert kinds(host)[1:] == [(2, "ecc-single", came, 0), (3, "xid", came, 79), (4, "unbind", came, 0)]
