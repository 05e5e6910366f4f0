"""The PCIe tree of a server as a hardware file gives it, and the addresses that its devices have in it.

A root complex is on a NUMA node and has switches and devices below it; switches have switches and devices below them.
Bus numbers are given as Linux does: depth first, one to each port's lower side. The root complexes share a domain's 256
buses evenly (``pci0000:00``, ``pci0000:80`` of two).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from mews.emulator.hardware.addresses import Bridge, PciAddress

ALL_BUSES = 256
ROOT_PORTS = 31
"""Of one root complex: device numbers 1 to 31 of its bus."""

SWITCH_PORTS = 256
MOST_ROOTS = 16


class PcieRoot(Struct, frozen=True):
    """A root complex; ``numa_node`` -1: of a machine without NUMA."""

    name: str
    numa_node: int = 0


class PcieSwitch(Struct, frozen=True):
    """A switch; ``below`` names the root complex or the switch whose port it is on."""

    name: str
    below: str


class PcieTree(Struct, frozen=True):
    """The root complexes and switches of a server, in the order of the file."""

    roots: tuple[PcieRoot, ...]
    switches: tuple[PcieSwitch, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return what a device can be on."""
        return (*(root.name for root in self.roots), *(switch.name for switch in self.switches))


class ServerLayout(Struct, frozen=True):
    """Where everything is: an address for each device, and the ports from the root down to each switch's upper one."""

    devices: tuple[PciAddress, ...]
    switches: tuple[tuple[Bridge, ...], ...]


def lay_out(tree: PcieTree, places: Sequence[str], domain: int) -> ServerLayout:
    """Return the layout of a server whose devices are on those root complexes and switches.

    Raises ValueError, one line, where a root complex or a switch has more below it than there are ports or buses.
    """
    share = ALL_BUSES // len(tree.roots)
    found: dict[int, PciAddress] = {}
    switches: list[tuple[Bridge, ...]] = []
    for number, root in enumerate(tree.roots):
        walk = _Enumeration(tree, places, domain, root)
        last = walk.below(root.name, (), number * share)
        if last >= (number + 1) * share:
            raise ValueError(
                f"{root.name}: takes {last + 1 - number * share} buses, and each of {len(tree.roots)} root complexes "
                f"has {share}"
            )
        found |= walk.devices
        switches += walk.switches
    return ServerLayout(tuple(found[place] for place in range(len(places))), tuple(switches))


PortKind = Literal["root", "downstream"]


class _Enumeration:
    """Goes through one root complex as the kernel does at boot."""

    def __init__(self, tree: PcieTree, places: Sequence[str], domain: int, root: PcieRoot) -> None:
        self._tree, self._places, self._domain, self._root = tree, places, domain, root
        self.devices: dict[int, PciAddress] = {}
        self.switches: list[tuple[Bridge, ...]] = []

    def below(self, name: str, above: tuple[Bridge, ...], bus: int) -> int:
        """Number what is below a root complex or a switch whose ports are on that bus; the last bus it takes."""
        kind: PortKind = "downstream" if above else "root"
        switches = [switch for switch in self._tree.switches if switch.below == name]
        devices = [place for place, on in enumerate(self._places) if on == name]
        most = SWITCH_PORTS if above else ROOT_PORTS
        if len(switches) + len(devices) > most:
            raise ValueError(f"{name}: has {len(switches) + len(devices)} ports; at most {most}")
        first = 0 if above else 1
        last = bus
        for port, switch in enumerate(switches, first):
            last = self._switch(switch, above, self._bdf(bus, port), kind, last + 1)
        for port, place in enumerate(devices, first + len(switches)):
            last += 1
            bridge = Bridge(self._bdf(bus, port), kind, last, last, self._root.numa_node)
            self.devices[place] = PciAddress(self._bdf(last, 0), (*above, bridge))
        return last

    def _switch(self, switch: PcieSwitch, above: tuple[Bridge, ...], bdf: str, kind: PortKind, bus: int) -> int:
        last = bus + self._buses(switch.name)
        port = Bridge(bdf, kind, bus, last, self._root.numa_node)
        upstream = Bridge(self._bdf(bus, 0), "upstream", bus + 1, last, self._root.numa_node)
        self.switches.append((*above, port, upstream))
        return self.below(switch.name, (*above, port, upstream), bus + 1)

    def _buses(self, name: str) -> int:
        """Return how many are below a switch's upper port: its own, and those of what is on it."""
        inner = (1 + self._buses(switch.name) for switch in self._tree.switches if switch.below == name)
        return 1 + self._places.count(name) + sum(inner)

    def _bdf(self, bus: int, port: int) -> str:
        return f"{self._domain:04x}:{bus:02x}:{port % 32:02x}.{port // 32}"
