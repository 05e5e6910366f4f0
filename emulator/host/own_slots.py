"""Where a server's devices have their places: below its chassis ports, and in the server itself."""

from __future__ import annotations

from collections.abc import Sequence

from mews.emulator.hardware.addresses import OVERFLOW, AddressPool, Bridge, FixedAddresses, PciAddresses
from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.inventory import ChassisSpec, HostSpec
from mews.emulator.hardware.pcie_tree import lay_out
from mews.emulator.host.config_space import LAST_SLOT

SLOTS_PER_CHASSIS = 1000
"""Slot numbers of a host: those of its first chassis from 1 on, of the next from 1001 on."""

OWN = ""
"""The name of what holds a server's built-in devices, where others have their chassis'."""


def own_chassis(spec: HostSpec) -> tuple[ChassisSpec, ...]:
    """Return the server's own slots; none in a server that has nothing built in."""
    if not spec.devices:
        return ()
    return (ChassisSpec(OWN, 0, spec.name, len(spec.devices), {}, spec.devices, parse_profile("instant", OWN)),)


class LazyPools(dict[str, AddressPool]):
    """The addresses below each chassis port of a host by the chassis' name, made when its first device comes."""

    def __init__(self, chassis: Sequence[ChassisSpec], number: int) -> None:
        super().__init__()
        self._chassis = chassis
        self._number = number

    def __missing__(self, name: str) -> AddressPool:
        port = next(port for port, one in enumerate(self._chassis) if one.name == name)
        overflow = OVERFLOW
        while overflow < len(self._chassis):
            overflow *= 0x10
        self[name] = PciAddresses(port, self._number, self._chassis[port].slots, overflow)
        return self[name]


class HostSlots:
    """In which slots of its chassis the devices are, and the numbers of these slots on a host.

    Numbers of two chassis are a thousand apart, or, where thirteen bits (PCI Express Base 4.0 section 7.5.3.9) do not
    hold that for each of them, as many as the largest has slots.
    """

    def __init__(self, chassis: Sequence[ChassisSpec]) -> None:
        self._chassis = chassis
        self._places: dict[str, dict[str, int]] = {}
        most = max((one.slots for one in chassis), default=0)
        roomy = max(SLOTS_PER_CHASSIS, most)
        self._apart = roomy if roomy * len(chassis) <= LAST_SLOT else most

    def place(self, chassis: str, device: str) -> int:
        """Return the slot of a device in its chassis, counted from 0: as the hardware file has it, else the first that
        is free from now on. A chassis is looked through when its first device comes, which of most none does."""
        places = self._places.get(chassis)
        if places is None:
            spec = next(one for one in self._chassis if one.name == chassis)
            places = self._places[chassis] = {each.id: place for place, each in enumerate(spec.devices)}
        if device not in places:
            taken = set(places.values())
            places[device] = next(n for n in range(len(taken) + 1) if n not in taken)
        return places[device]

    def number(self, ordinal: int, place: int) -> int:
        """Return the number of a slot of the host's chassis of that ordinal."""
        return self._apart * ordinal + place + 1


def address_pools(
    spec: HostSpec, chassis: Sequence[ChassisSpec], number: int
) -> tuple[LazyPools, tuple[tuple[Bridge, ...], ...]]:
    """Return the addresses below each chassis port of a host and in the host itself, by the chassis' name; and the
    ports that lead to the server's own switches, which are there with or without devices.

    Raises ValueError for a PCIe tree without room for its devices.
    """
    pools = LazyPools(chassis, number)
    if spec.pcie is None:
        return pools, ()
    # The server's own come after its chassis: what is hot-plugged keeps its domain whatever is built in.
    domain = sum(one.name != OWN for one in chassis)
    layout = lay_out(spec.pcie, [device.below or "" for device in spec.devices], domain)
    pools[OWN] = FixedAddresses(layout.devices)
    return pools, layout.switches
