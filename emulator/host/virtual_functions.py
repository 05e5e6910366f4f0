"""Virtual functions (PCI Express Base 4.0 section 9): they come and go by writes into ``sriov_numvfs``.

Each is a function of its own, with a driver of its own, on the bus of its physical one; it is gone when that one loses
its driver. A write is answered as Linux' ``drivers/pci/iov.c`` does: ERANGE above ``sriov_totalvfs``, ENOENT where no
driver has the physical function or the driver that has it makes none, EBUSY where there is another number already.
"""

from __future__ import annotations

from msgspec.structs import replace

from mews.emulator.hardware.cards import VIRTUAL, VIRTUAL_OFFSET, VIRTUAL_STRIDE
from mews.emulator.host.function import BringUpStage, Function

KIND = "VF"
"""What the events of virtual functions call their kind."""


def virtual_function(physical: Function, place: int) -> Function:
    """Return the function at that place, counted from 0, of a physical one; its bus has just found it."""
    device, name = physical.device, f"vf{place}"
    own = replace(device, id=f"{device.id}-{name}", uuid=f"{device.uuid}-{name}", kind=KIND, serial="")
    return Function(
        number=physical.number,
        chassis=physical.chassis,
        gpuid=f"{physical.gpuid}-{name}",
        device=own,
        card=VIRTUAL[physical.card.driver],
        bdf=_address(physical.bdf, place),
        above=physical.above,
        slot=physical.slot,
        stage=BringUpStage.LINK,
        unbound=not physical.autoprobe,
        physical=physical,
    )


def makes_virtual_functions(function: Function) -> bool:
    """Return whether the driver that has a function can make virtual ones of it."""
    return function.bound == function.card.driver and function.bound in VIRTUAL


def _address(bdf: str, place: int) -> str:
    bus, _, rest = bdf.rpartition(":")
    device, _, number = rest.partition(".")
    own = (int(device, 16) << 3 | int(number)) + VIRTUAL_OFFSET + place * VIRTUAL_STRIDE
    return f"{bus}:{own >> 3:02x}.{own & 7}"
