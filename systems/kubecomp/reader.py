"""Reads chassis, all at once, and keeps what is believed of each."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from mews.kube.chassis.port import ChassisApi, ChassisError, DeviceRecord, Listing
from mews.kube.component import record
from mews.systems.kubecomp import published
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.listing import KnownChassis, judge
from mews.systems.kubecomp.records import PoolState


class ChassisReader:
    """The chassis of one component. A reading that fails or is partial changes nothing but what it shows."""

    def __init__(self, chassis: Mapping[str, ChassisApi], config: KubeCompConfig, log: logging.Logger) -> None:
        self._chassis = chassis
        self._kind = config.device_kind
        self._believes = config.has(KubeCompFault.ADVERTISED_IS_ALL)
        self._timing = config.timing
        self._log = log
        self._shown: dict[str, set[str]] = {name: set() for name in chassis}
        self._beliefs: dict[str, KnownChassis] = {name: KnownChassis() for name in chassis}
        self._read_s: dict[str, float] = {}
        self._listings: dict[str, Listing] = {}
        self.version = 0
        """Counts the readings that changed anything of what is known here."""

    def seed(self, state: PoolState | None) -> None:
        """Remember what an earlier incarnation knew, so that a partial first reading is seen to be one."""
        for device in state.devices if state else ():
            belief = self._beliefs.get(device.chassis)
            if belief is not None and not belief.seen:
                known = DeviceRecord(device.device, device.uuid, device.port, self._kind)
                self._beliefs[device.chassis] = KnownChassis({**belief.devices, device.device: known})
                self.version += 1

    async def read(self, name: str) -> bool:
        """Read one chassis; whether an answer came."""
        try:
            async with asyncio.timeout(self._timing.chassis_timeout_s):
                listing = await self._chassis[name].resources()
        except (ChassisError, TimeoutError) as error:
            record(self._log, "chassis-read-failed", chassis=name, error=str(error) or "timeout")
            if self._believes:
                self._learn(name, published.believed(None, kind=self._kind))
            return False
        self._read_s[name] = asyncio.get_running_loop().time()
        if self._listings.get(name) is listing and self._beliefs[name].is_full:
            return True  # The very listing that made it what it is.
        self._shown[name].update(entry.device for entry in listing.devices)
        if self._believes:
            belief = published.believed(listing, kind=self._kind)
        else:
            belief = judge(self._beliefs[name], listing, kind=self._kind, vanish_reads=self._timing.vanish_reads)
        if belief.missing:
            record(self._log, "listing-partial", chassis=name, missing=sorted(belief.missing), repeats=belief.repeats)
        self._learn(name, belief)
        self._listings[name] = listing
        return True

    def _learn(self, name: str, belief: KnownChassis) -> None:
        self._beliefs[name] = belief
        self._listings.pop(name, None)
        self.version += 1

    async def read_all(self, names: Iterable[str]) -> bool:
        """Read these chassis in parallel: as long as the slowest takes. Whether all answered in full."""
        wanted = list(names)
        if len(wanted) == 1:
            answered = [await self.read(wanted[0])]
        else:
            answered = await asyncio.gather(*(self.read(name) for name in wanted))
        return all(answered) and all(self._beliefs[name].is_full for name in wanted)

    def age_s(self, name: str) -> float:
        """Return how long ago the chassis last answered; infinite before it did."""
        return asyncio.get_running_loop().time() - self._read_s.get(name, float("-inf"))

    def belief(self, name: str) -> KnownChassis:
        """Return what is believed of a chassis."""
        return self._beliefs[name]

    def device(self, name: str, device: str) -> DeviceRecord | None:
        """Return the last record of a device that a reading has shown, None when it is gone or was never shown."""
        return self._beliefs[name].devices.get(device) if device in self._shown[name] else None

    def devices(self, name: str) -> list[DeviceRecord]:
        """Return the chassis' devices that a reading has shown, in order of ID."""
        belief, shown = self._beliefs[name], self._shown[name]
        return [belief.devices[device] for device in sorted(belief.devices) if device in shown]

    def has_seen(self, name: str) -> bool:
        """Return whether the chassis has ever been read here."""
        return self._beliefs[name].seen

    def lacked(self, name: str, device: str) -> bool:
        """Return whether the last reading lacked the device."""
        return device in self._beliefs[name].missing
