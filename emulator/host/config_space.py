"""The bytes of a function's ``config`` file: its configuration space (PCI Local Bus 3.0 section 6.1, PCI Express Base
4.0 section 7), as far as readers like lspci and go-nvlib look at it."""

from __future__ import annotations

import struct
from zlib import crc32

from mews.emulator.hardware.cards import VIRTUAL, VIRTUAL_OFFSET, VIRTUAL_STRIDE, Card

SIZE = 4096
ONES = b"\xff" * SIZE
"""What a function that has fallen off the bus reads as."""

LAST_SLOT = 0x1FFF
"""The highest number that a port's slot capabilities hold. Of a higher one, on a host that is cabled to more slots than
that, they have the lower bits: a number is unique within its chassis only."""

_POWER, _EXPRESS, _SERIAL, _SHARING = 0x50, 0x60, 0x100, 0x180
_ENDPOINT, _ROOT_PORT, _UPSTREAM, _DOWNSTREAM = 0x0, 0x4, 0x5, 0x6
PORT_TYPES = {"endpoint": _ENDPOINT, "root": _ROOT_PORT, "upstream": _UPSTREAM, "downstream": _DOWNSTREAM}


def endpoint_config(
    card: Card, bars: tuple[int, ...], *, irq: int, bound: bool, serial: str, virtual: int = 0
) -> bytes:
    """Return a device's 4096 bytes; ``bars`` are the start addresses of ``card.bars``, ``virtual`` the virtual
    functions that it has now."""
    space = _header(card, header_type=0x00, command=0x0406 if bound else 0x0400)
    for (number, size, wide), start in zip(card.bars, bars, strict=True):
        flags = 0xC if wide else 0x0
        struct.pack_into("<I", space, 0x10 + 4 * number, (start & 0xFFFFFFF0) | flags)
        if wide:
            struct.pack_into("<I", space, 0x14 + 4 * number, start >> 32)
        assert size
    struct.pack_into("<HH", space, 0x2C, card.subsystem_vendor, card.subsystem_device)
    space[0x3C], space[0x3D] = irq & 0xFF, 1
    _capabilities(space, card, _ENDPOINT, slot=None)
    struct.pack_into("<I", space, _SERIAL, 0x0003 | 1 << 16)
    struct.pack_into("<Q", space, _SERIAL + 4, crc32(serial.encode()) | card.device << 32 | card.vendor << 48)
    made = VIRTUAL.get(card.driver)
    if card.virtual_functions and made is not None:
        struct.pack_into("<I", space, _SERIAL, 0x0003 | 1 << 16 | _SHARING << 20)
        _sharing(space, card, made, virtual)
    return bytes(space)


def bridge_config(card: Card, port: str, *, primary: int, secondary: int, last: int, slot: int | None = None) -> bytes:
    """Return a switch port's 4096 bytes; ``port`` is a key of ``PORT_TYPES``, ``slot`` the number of the slot it leads
    to."""
    space = _header(card, header_type=0x01, command=0x0407)
    space[0x18], space[0x19], space[0x1A] = primary, secondary, last
    struct.pack_into("<HH", space, 0x20, 0x0000, 0x0FF0)
    _capabilities(space, card, PORT_TYPES[port], slot=slot)
    return bytes(space)


def _sharing(space: bytearray, card: Card, made: Card, virtual: int) -> None:
    """The SR-IOV capability (PCI Express Base 4.0 section 9.3.3)."""
    enabled = 0x0009 if virtual else 0x0000
    struct.pack_into("<IIHH", space, _SHARING, 0x0010 | 1 << 16, 0, enabled, 0)
    struct.pack_into("<HHHBB", space, _SHARING + 0x0C, card.virtual_functions, card.virtual_functions, virtual, 0, 0)
    struct.pack_into("<HHHH", space, _SHARING + 0x14, VIRTUAL_OFFSET, VIRTUAL_STRIDE, 0, made.device)
    struct.pack_into("<II", space, _SHARING + 0x1C, 0x553, 0x1)


def _header(card: Card, *, header_type: int, command: int) -> bytearray:
    space = bytearray(SIZE)
    struct.pack_into("<HHHH", space, 0, card.vendor, card.device, command, 0x0010)
    struct.pack_into("<I", space, 8, card.pci_class << 8 | card.revision)
    space[0x0C], space[0x0E], space[0x34] = 16, header_type, _POWER
    return space


def _capabilities(space: bytearray, card: Card, port: int, *, slot: int | None) -> None:
    struct.pack_into("<BBHH", space, _POWER, 0x01, _EXPRESS, 0x0003, 0x0008)
    status = card.gen | card.width << 4
    flags = 2 | port << 4 | (0x100 if slot is not None else 0)
    struct.pack_into("<BBH", space, _EXPRESS, 0x10, 0, flags)
    struct.pack_into("<I", space, _EXPRESS + 0x0C, status)
    struct.pack_into("<HH", space, _EXPRESS + 0x10, 0x0040, status)
    if slot is not None:
        struct.pack_into("<IHH", space, _EXPRESS + 0x14, (slot & LAST_SLOT) << 19 | 0x7F, 0x0000, 0x0040)
    struct.pack_into("<H", space, _EXPRESS + 0x30, card.gen)
