"""Where a server's devices have their places: below its chassis ports, and in the server itself."""

from __future__ import annotations

from collections.abc import Sequence

from mews.emulator.chassis.inventory import ChassisSpec, HostSpec
from mews.emulator.chassis.profiles import parse_profile
from mews.emulator.host.addresses import AddressPool, Bridge, FixedAddresses, PciAddresses
from mews.emulator.host.pcie_tree import lay_out

OWN = ""
"""The name of what holds a server's built-in devices, where others have their chassis'."""


def own_chassis(spec: HostSpec) -> tuple[ChassisSpec, ...]:
    """The server's own slots; none in a server that has nothing built in."""
    if not spec.devices:
        return ()
    return (ChassisSpec(OWN, 0, spec.name, len(spec.devices), {}, spec.devices, parse_profile("instant", OWN)),)


def address_pools(
    spec: HostSpec, chassis: Sequence[ChassisSpec], number: int
) -> tuple[dict[str, AddressPool], tuple[tuple[Bridge, ...], ...]]:
    """The addresses below each chassis port of a host and in the host itself, by the chassis' name; and the ports that
    lead to the server's own switches, which are there with or without devices.

    Raises ValueError for a PCIe tree without room for its devices.
    """
    pools: dict[str, AddressPool] = {
        one.name: PciAddresses(port, number, one.slots) for port, one in enumerate(chassis)
    }
    if spec.pcie is None:
        return pools, ()
    # The server's own come after its chassis: what is hot-plugged keeps its domain whatever is built in.
    domain = sum(one.name != OWN for one in chassis)
    layout = lay_out(spec.pcie, [device.below or "" for device in spec.devices], domain)
    return {**pools, OWN: FixedAddresses(layout.devices)}, layout.switches
