"""A chassis' table as it is believed, for a listing may be partial (contract chassis.md section 2). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.chassis.port import DeviceRecord, Listing

_GPU = "GPU"


class BelievedTable:
    """Devices by ID. One that a listing lacks is believed to be gone after so many listings in a row without it."""

    def __init__(self, vanish_reads: int) -> None:
        self._vanish_reads = vanish_reads
        self._devices: dict[str, DeviceRecord] = {}
        self._lacked: dict[str, int] = {}
        self._listings = 0
        self.changes = 0
        """How often what is believed has become something else."""

    def take(self, listing: Listing) -> None:
        """Take in a listing."""
        before = (dict(self._devices), self.is_known, self.is_sure)
        listed = {each.device: each for each in listing.devices if each.kind == _GPU}
        for device in [device for device in self._devices if device not in listed]:
            self._lacked[device] = self._lacked.get(device, 0) + 1
            if self._lacked[device] >= self._vanish_reads:
                del self._devices[device], self._lacked[device]
        for device, found in listed.items():
            self._lacked.pop(device, None)
            self._devices[device] = found
        self._listings += 1
        self.changes += before != (self._devices, self.is_known, self.is_sure)

    @property
    def devices(self) -> Mapping[str, DeviceRecord]:
        """All that are believed to be there."""
        return self._devices

    @property
    def is_known(self) -> bool:
        """Whether the chassis has been read."""
        return self._listings > 0

    @property
    def is_sure(self) -> bool:
        """Whether a device that is not there has left, rather than been missing from the first listings."""
        return self._listings >= self._vanish_reads

    def lacked(self, device: str) -> bool:
        """Return whether the last listing did not have it."""
        return device in self._lacked
