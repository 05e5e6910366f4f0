"""Bus addresses: each chassis port of a host is a PCI domain of its own, with a switch whose downstream ports lead to
the devices.

``DDDD:00:01.0`` root port, ``DDDD:01:00.0`` the switch's upstream port, ``DDDD:02:SS.F`` one downstream port per slot,
and behind it a bus for the device. A bus number that was just given up is given again last, so a device that comes back
has another address; hosts begin at different numbers, so a device that moves has too.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_BUS, BUSES = 0x20, 0xDF
"""Device buses 0x20 to 0xfe; below are the switch's own."""

OVERFLOW = 0x10
"""Domain added for each further ``BUSES`` devices of one chassis."""


@dataclass(frozen=True, slots=True)
class PciAddress:
    """Where a device is: its own BDF, that of the downstream port above it, and what holds both."""

    bdf: str
    bridge: str


class PciAddresses:
    """Gives and takes back the addresses below one chassis port."""

    def __init__(self, port: int, host: int, slots: int) -> None:
        self._port = port
        self._size = BUSES * (1 + slots // BUSES)
        self._next = 0x10 * (host % 12) if slots <= BUSES else 0
        self._given: set[int] = set()

    def give(self, slot: int) -> PciAddress:
        """An address for the device in that slot of the chassis (counted from 0)."""
        while self._next % self._size in self._given:
            self._next += 1
        place = self._next % self._size
        self._given.add(place)
        self._next = place + 1
        domain = self._port + OVERFLOW * (place // BUSES)
        bus = FIRST_BUS + place % BUSES
        bridge = f"{domain:04x}:{2 + slot // 256:02x}:{slot % 256 >> 3:02x}.{slot & 7}"
        return PciAddress(f"{domain:04x}:{bus:02x}:00.0", bridge)

    def take(self, bdf: str) -> None:
        """Release the address of a device that went."""
        domain, bus, _ = bdf.split(":")
        place = (int(domain, 16) - self._port) // OVERFLOW * BUSES + int(bus, 16) - FIRST_BUS
        self._given.discard(place)
