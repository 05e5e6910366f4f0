"""``/sys/class/dmi/id``: what machine a host is, as its firmware tells (Linux, drivers/firmware/dmi-id.c)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from zlib import crc32

from mews.emulator.hardware.inventory import HostSpec
from mews.emulator.host.entries import File, Folder, Node

VENDOR, PRODUCT = "Mews", "Emulated Host"
RACK_MOUNT = 23
"""Type of chassis (DMTF DSP0134, 7.4.1)."""


def dmi_folder(spec: HostSpec) -> Folder:
    """``sys/class/dmi``."""
    texts = {
        "bios_vendor": VENDOR,
        "board_name": PRODUCT,
        "board_vendor": VENDOR,
        "chassis_type": str(RACK_MOUNT),
        "chassis_vendor": VENDOR,
        "product_family": "Hosts",
        "product_name": PRODUCT,
        "product_serial": f"{crc32(spec.name.encode()):08X}",
        "product_version": "1.0",
        "sys_vendor": VENDOR,
    }
    files: Mapping[str, Node] = {name: File(_line(text)) for name, text in texts.items()}
    return Folder(lambda: {"id": Folder(lambda: files)})


def _line(text: str) -> Callable[[], bytes]:
    return lambda: f"{text}\n".encode()
