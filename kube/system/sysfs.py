"""Whether the host sees a device that the chassis has put on its port: read from sysfs and /proc, never from NVML.

An NVIDIA GPU is found by the ``GPU UUID`` of ``/proc/driver/nvidia/gpus/<BDF>/information``; any other device by the
vendor's field V0 of its vital product data, where its kind has no such folder (assumed: the real boxes pooled GPUs
only). Either must have a driver and a configuration space that answers: one that reads as ones has fallen off the bus
(contract host.md section 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from mews.kube.system.files import FileTree
from mews.kube.system.vital_product_data import vendor_field

PCI = "sys/bus/pci/devices"
GPUS = "proc/driver/nvidia/gpus"
_GONE = b"\xff\xff"


class NamedByUuid(Protocol):
    """A device that a chassis has put on the host's port."""

    @property
    def uuid(self) -> str:
        """Its UUID, "" where it is not known."""
        ...


DeviceT = TypeVar("DeviceT", bound=NamedByUuid)


class SysfsConfirm:
    """Which of some devices a host sees, by its files. Where a device was found before is looked at first."""

    def __init__(self, tree: FileTree) -> None:
        self._tree = tree
        self._places: dict[str, str] = {}
        self._answers: dict[str, bool] = {}
        self._looked: dict[str, int] = {}
        self._uuids: dict[str, str] = {}
        self._read_in: int | None = None
        self._last: tuple[Sequence[Any], int | None, Sequence[Any]] | None = None

    async def __call__(self, devices: Sequence[DeviceT]) -> Sequence[DeviceT]:
        """Return those that the host sees, or that have no UUID: there is nothing to look for then. The last answer
        while no file has changed since."""
        version = self._tree.hardware_version()
        last = self._last
        if last is not None and last[0] is devices and version is not None and last[1] == version:
            return last[2]
        seen = [device for device in devices if not device.uuid or await self.sees(device.uuid)]
        firm = all(self._looked.get(device.uuid) == version for device in devices if device.uuid)
        self._last = (devices, version, seen) if firm else None
        return seen

    async def sees(self, uuid: str) -> bool:
        """Return whether the host has it, with a driver; the last answer while the files cannot be read at all, and
        while none of them has changed."""
        version = self._tree.hardware_version()
        if version is not None and self._looked.get(uuid) == version:
            return self._answers[uuid]
        self._looked.pop(uuid, None)
        try:
            answer = await self._sees(uuid)
        except (FileNotFoundError, NotADirectoryError):
            answer = False
        except OSError:
            return self._answers.get(uuid, False)
        self._answers[uuid] = answer
        if version is not None:
            self._looked[uuid] = version
        return answer

    async def address(self, uuid: str) -> str | None:
        """Return the PCI address at which the host has it, with or without a driver; None where it does not.

        Raises OSError while the files cannot be read.
        """
        place = self._places.get(uuid)
        if place is None or await self._uuid_at(place) != uuid:
            place = await self._search(uuid)
        if place is None:
            self._places.pop(uuid, None)
            return None
        self._places[uuid] = place
        return place

    async def _sees(self, uuid: str) -> bool:
        place = await self.address(uuid) if uuid else None
        return place is not None and await self._answers_at(place)

    async def _search(self, uuid: str) -> str | None:
        for bdf in await self._tree.names(PCI):
            if await self._uuid_at(bdf) == uuid:
                return bdf
        return None

    async def _uuid_at(self, bdf: str) -> str:
        """Read once for all devices that are looked for, where the host counts its changes."""
        version = self._tree.hardware_version()
        if version is None or version != self._read_in:
            self._uuids, self._read_in = {}, version
        if bdf not in self._uuids:
            self._uuids[bdf] = await self._read_uuid(bdf)
        return self._uuids[bdf]

    async def _read_uuid(self, bdf: str) -> str:
        try:
            return _uuid_of(await self._tree.read(f"{GPUS}/{bdf}/information"))
        except (FileNotFoundError, NotADirectoryError):
            pass
        try:
            return vendor_field(await self._tree.read(f"{PCI}/{bdf}/vpd"))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return ""

    async def _answers_at(self, bdf: str) -> bool:
        config = await self._tree.read(f"{PCI}/{bdf}/config")
        uevent = await self._tree.read(f"{PCI}/{bdf}/uevent")
        return config[:2] != _GONE and b"DRIVER=" in uevent


def _uuid_of(information: bytes) -> str:
    for line in information.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "GPU UUID":
            return value.strip()
    return ""
