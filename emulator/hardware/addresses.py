"""Bus addresses: each chassis port of a host is a PCI domain of its own, with a switch whose downstream ports lead to
the devices.

``DDDD:00:01.0`` root port, ``DDDD:01:00.0`` the switch's upstream port, ``DDDD:02:SS.F`` one downstream port per slot,
and behind it a bus for the device. A bus number that was just given up is given again last, so a device that comes back
has another address; hosts begin at different numbers, so a device that moves has too.
"""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

FIRST_BUS, BUSES = 0x20, 0xDF
"""Device buses 0x20 to 0xfe; below are the switch's own."""

LAST_BUS = FIRST_BUS + BUSES - 1

OVERFLOW = 0x10
"""Domain added for each further ``BUSES`` devices of one chassis, where a host has no more than so many chassis."""


class Bridge(Struct, frozen=True):
    """A port of a root complex or of a switch: the bus on its lower side, the last bus of all that is below it, and the
    NUMA node that it is on."""

    bdf: str
    port: Literal["root", "upstream", "downstream"]
    secondary: int
    last: int
    numa_node: int


class PciAddress(Struct, frozen=True):
    """Where a device is: its own BDF, and the ports above it from the root down."""

    bdf: str
    above: tuple[Bridge, ...]

    @property
    def numa_node(self) -> int:
        """The NUMA node that it is on."""
        return self.above[0].numa_node


def root_of(way: tuple[Bridge, ...]) -> str:
    """Return the root complex that ports are below, as sysfs calls it: ``pci0000:00``."""
    return f"pci{way[0].bdf[:7]}"


def ports_path(way: tuple[Bridge, ...]) -> str:
    """Return where the last of these ports lies below ``/sys/devices``."""
    return "/".join((root_of(way), *(bridge.bdf for bridge in way)))


def pcie_level(one: PciAddress, other: PciAddress) -> str:
    """Return how near two devices are by PCIe, in the words of ``nvidia-smi topo``: ``PIX`` over one switch at most,
    ``PXB`` over several, ``PHB`` over their root complex, ``NODE`` within the NUMA node, ``SYS`` across."""
    shared = sum(a == b for a, b in zip(one.above, other.above, strict=False))
    if shared:
        return "PIX" if max(len(one.above), len(other.above)) - shared <= 1 else "PXB"
    if root_of(one.above) == root_of(other.above):
        return "PHB"
    return "NODE" if one.numa_node == other.numa_node else "SYS"


class AddressPool(Protocol):
    """Gives the addresses below one chassis port, or within a server."""

    def give(self, slot: int) -> PciAddress:
        """Return an address for the device in that slot of the chassis (counted from 0)."""
        ...

    def take(self, bdf: str) -> None:
        """Release the address of a device that went."""
        ...


class PciAddresses:
    """Gives and takes back the addresses below one chassis port; every second port is on the second NUMA node."""

    def __init__(self, port: int, host: int, slots: int, overflow: int = OVERFLOW) -> None:
        self._port = port
        self._overflow = overflow
        self._size = BUSES * (1 + slots // BUSES)
        self._next = 0x10 * (host % 12) if slots <= BUSES else 0
        self._given: set[int] = set()

    def give(self, slot: int) -> PciAddress:
        """Return an address for the device in that slot of the chassis (counted from 0)."""
        while self._next % self._size in self._given:
            self._next += 1
        place = self._next % self._size
        self._given.add(place)
        self._next = place + 1
        domain = self._port + self._overflow * (place // BUSES)
        bus = FIRST_BUS + place % BUSES
        numa_node = self._port % 2
        port = f"{domain:04x}:{2 + slot // 256:02x}:{slot % 256 >> 3:02x}.{slot & 7}"
        above = (
            Bridge(f"{domain:04x}:00:01.0", "root", 1, LAST_BUS, numa_node),
            Bridge(f"{domain:04x}:01:00.0", "upstream", 2, LAST_BUS, numa_node),
            Bridge(port, "downstream", bus, bus, numa_node),
        )
        return PciAddress(f"{domain:04x}:{bus:02x}:00.0", above)

    def take(self, bdf: str) -> None:
        """Release the address of a device that went."""
        domain, bus, _ = bdf.split(":")
        place = (int(domain, 16) - self._port) // self._overflow * BUSES + int(bus, 16) - FIRST_BUS
        self._given.discard(place)


class FixedAddresses:
    """Addresses of devices that stay where they are: those in the server itself."""

    def __init__(self, addresses: tuple[PciAddress, ...]) -> None:
        self._addresses = addresses

    def give(self, slot: int) -> PciAddress:
        """Return the address of the device in that slot."""
        return self._addresses[slot]

    def take(self, bdf: str) -> None:
        """The slot keeps its address."""
