"""Two hosts cabled to one chassis, and short words for what happens to them."""

import random

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.holders import Holder
from mews.emulator.host.tree import HostTree
from mews.emulator.inventory.reading import parse_hardware

MODELS = ("V100", "A100", "H100", "T4")


def hardware(profile="instant", kinds=("GPU",) * 4, ports=("1", "1", "1", "2"), models=()):
    devices = [
        {
            "id": f"{n:06d}",
            "uuid": f"{kind}-00000000-0000-4000-8000-{n:012d}",
            "kind": kind,
            "model": (models or MODELS)[n % len(models or MODELS)],
            "serial": f"13200{n:08d}",
            "port": port,
        }
        for n, (kind, port) in enumerate(zip(kinds, ports, strict=True), start=1)
    ]
    hosts = [{"name": f"host-{n}", "cpus": 64, "memory_mib": 1024, "profile": profile} for n in (1, 2)]
    chassis = {"name": "A", "index": 0, "slots": 8, "ports": {"1": "host-1", "2": "host-2"}, "devices": devices}
    document = {"apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "pair"}}
    return parse_hardware({**document, "hosts": hosts, "chassis": [chassis]}, "test")


class Pair:
    """Both hosts, their time and what they told."""

    def __init__(self, profile="instant", **options):
        self.t = 0.0
        self.number = 0
        self.told = []
        seed = random.Random(7).random()
        self.hosts = Hosts(hardware(profile, **options), EmulationContext(seed), listener=self.told.append)
        self.hosts.begin(self.t)
        self.told.clear()
        self.host = self.hosts.host("host-1")
        self.other = self.hosts.host("host-2")
        self.tree = HostTree(self.host)
        self.operator = self.tree.operator
        self.nvml_calls = self.tree.nvml_calls

    def move(self, device, old, new):
        fields = {"device": device, "old_port": old, "new_port": new, "cause": "edit"}
        self.chassis_event("table-changed", fields)

    def link(self, device, up, port="1"):
        self.chassis_event("link-up" if up else "link-down", {"device": device, "port": port})

    def chassis_event(self, event, fields, number=None):
        """The next event of the chassis, or one that comes late."""
        if number is None:
            number = self.number = self.number + 1
        self.hosts.on_event("A", number, event, fields, self.t)

    def later(self, seconds):
        self.t += seconds
        for host in self.hosts.hosts.values():
            host.settle(self.t)

    def device(self, device, host=None):
        return (host or self.host).bus.holding(device)

    def hold(self, device, key="somebody"):
        self.host.hold(Holder(key, (self.device(device).device.uuid,), pid=4711), self.t)

    def release(self, key="somebody"):
        self.host.release(key, self.t)

    def events(self):
        """Names of the events told since the last look."""
        names = [event.event for event in self.told]
        self.told.clear()
        return names
