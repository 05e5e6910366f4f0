"""The PCI bus of a host: which devices it has, each at its address."""

from __future__ import annotations

from collections.abc import Sequence

from mews.emulator.hardware.cards import card_of
from mews.emulator.hardware.inventory import ChassisSpec, DeviceSpec, HostSpec
from mews.emulator.host.errors import NoSuchDeviceError
from mews.emulator.host.function import Function
from mews.emulator.host.own_slots import HostSlots, address_pools


class HostBus:
    """Gives each device of one host its slot and its address, and finds it again."""

    def __init__(self, spec: HostSpec, chassis: Sequence[ChassisSpec], number: int) -> None:
        self._host = spec.name
        self._chassis = chassis
        self._slots = HostSlots(chassis)
        self._addresses, self.own_switches = address_pools(spec, chassis, number)
        self._numbers = 0
        self._functions: list[Function] = []

    def functions(self) -> tuple[Function, ...]:
        """Return all devices of which anything is left, by address."""
        return tuple(self._functions)

    def on_bus(self) -> list[Function]:
        """Return all PCI functions that sysfs shows, virtual ones after the physical one that has them."""
        return [f for own in self._functions for f in (own, *own.virtual) if f.has_function]

    def find(self, bdf: str) -> Function:
        """Return the function at that address.

        Raises NoSuchDeviceError.
        """
        for function in self.on_bus():
            if function.bdf == bdf:
                return function
        there = ", ".join(f.bdf for f in self.on_bus()) or "none"
        raise NoSuchDeviceError(f"PCI function {bdf!r}: {self._host} has {there}")

    def holding(self, device: str) -> Function:
        """Return the living entry of a device, by its own ID or GPUID.

        Raises NoSuchDeviceError.
        """
        for function in reversed(self._functions):
            if device in (function.device.id, function.gpuid) and function.plugged:
                return function
        there = ", ".join(f.gpuid for f in self._functions if f.plugged) or "none"
        raise NoSuchDeviceError(f"device {device!r}: {self._host} has {there}")

    def enter(self, chassis: str, device: DeviceSpec, link: bool = True) -> Function:
        """Return a new entry: the device that a chassis has put on our port, or a built-in one."""
        self._numbers += 1
        place = self._slots.place(chassis, device.id)
        address = self._addresses[chassis].give(place)
        ordinal = next(n for n, one in enumerate(self._chassis) if one.name == chassis)
        function = Function(
            number=self._numbers,
            chassis=chassis,
            gpuid=self._chassis[ordinal].gpuid(device.id),
            device=device,
            card=card_of(device.kind, device.model, device.virtual_functions),
            bdf=address.bdf,
            above=address.above,
            slot=self._slots.number(ordinal, place),
            link=link,
        )
        self._functions.append(function)
        self._functions.sort(key=lambda f: (f.bdf, f.number))
        return function

    def leave(self, function: Function) -> None:
        """Forget a device of which nothing is left; its address is free."""
        self._functions.remove(function)
        self._addresses[function.chassis].take(function.bdf)
