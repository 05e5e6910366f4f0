"""What a node's DevMgr does on its host when a device goes and when one comes. One task touches the host, so that a
rescan for what comes never meets a removal of what goes.

What is touched is written down first (``RemovedDevice``, in the node's report): an incarnation that begins after a
crash knows what it has to give back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping

from msgspec import Struct

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.component import record
from mews.kube.pulse import Pulse
from mews.kube.system.host_steps import HostPlace, HostSteps, RemovalRefusedError
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.node_devices import LocalDevice, NodeDevices
from mews.systems.kubecomp.records import RemovedDevice

_FIRST_TRY_S, _LAST_TRY_S = 2.0, 30.0
_COMING_S = 15.0
"""A device that came and that the host does not show may still be coming up; after this long it is taken to be dead."""
_DRIVER_S = 5.0
"""The kernel offers a device to its driver by itself; after this long without one it is offered again."""
_SHOWN_S = 5.0
_LOOK_S = 0.2


class _Retry(Struct):
    """Something is tried until it has come about. ``known``: the device was here before we looked."""

    since_s: float
    due_s: float
    tries: int = 0
    known: bool = False

    def again(self, now_s: float) -> None:
        """The next try, later than the last."""
        self.due_s = now_s + _pause_s(self.tries)
        self.tries += 1


class _Unused(Struct, frozen=True):
    """A device that a request withdrew and that no pod uses. ``since``: the book's round then."""

    request: str
    since: int


def _pause_s(tries: int) -> float:
    return min(_FIRST_TRY_S * 2.0**tries, _LAST_TRY_S)


def rescan_wait_s(ready_s: float, timing: Timing) -> float:
    """From the moment that a device came, when the rescan begins at the latest that finds it, if there is nothing to be
    found for ``ready_s``."""
    tries, earliest_s, latest_s = 0, 0.0, 0.0
    while earliest_s < ready_s:
        earliest_s += _pause_s(tries)
        latest_s += _pause_s(tries) + timing.device_poll_s
        tries += 1
    return latest_s


class Handover:
    """The devices of one node on their way out, back, and in. ``write_ahead`` writes the node's report (raises
    ApiError, UnavailableError); ``changed`` is called when what may be consented to, or announced, changed."""

    def __init__(
        self,
        steps: HostSteps,
        book: NodeDevices,
        timing: Timing,
        log: logging.Logger,
        *,
        write_ahead: Callable[[], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self._steps = steps
        self._book = book
        self._timing = timing
        self._log = log
        self._write_ahead = write_ahead
        self._changed = changed
        self._pulse = Pulse()
        self._watched: Collection[LocalDevice] | None = None
        self._here: Mapping[str, LocalDevice] | None = None
        self._unused: Mapping[str, _Unused] = {}
        self._read = -1
        self._off: set[str] = set()
        self._coming: dict[str, _Retry] = {}
        self._returning: dict[str, _Retry] = {}
        self._blocked: set[str] = set()

    # What DevMgr says

    def watch(self, devices: Collection[LocalDevice], *, round_begun: int, is_whole: bool = True) -> None:
        """What the chassis has on this node's ports, after each reading. ``round_begun``: the book's round then;
        ``is_whole``: whether each of its chassis has been read, so that what is not there has gone."""
        self._read = round_begun
        if devices is not self._watched:
            self._watched = devices
            before, now_s = self._here, _loop_s()
            self._here = {device.gpuid: device for device in devices}
            for gpuid in self._here.keys() - (before or {}).keys():
                self._coming[gpuid] = _Retry(now_s, now_s, known=before is None)
        if is_whole:
            self._forget_what_went(self._here or {})
        if self._is_busy():
            self._pulse.beat()

    def _forget_what_went(self, here: Mapping[str, LocalDevice]) -> None:
        for held in (self._coming, self._returning, self._book.out):
            for gpuid in [gpuid for gpuid in held if gpuid not in here] if held else ():
                del held[gpuid]
        self._blocked &= here.keys()

    def may_go(self, requests: Mapping[str, str]) -> None:
        """What is withdrawn and used by no pod, to be taken off the host: GPUID -> request. Each request is looked at
        anew: since the one before, the device may have been put back here."""
        before, asked = self._unused, {gpuid: _Unused(request, self._book.round) for gpuid, request in requests.items()}
        known = {gpuid for gpuid in asked.keys() & before.keys() if before[gpuid].request == asked[gpuid].request}
        self._unused = {gpuid: before[gpuid] if gpuid in known else asked[gpuid] for gpuid in asked}
        self._off &= known
        if requests.keys() - self._off:
            self._pulse.beat()

    @property
    def off(self) -> Collection[str]:
        """What the host does not have (any more)."""
        return self._off

    # The task

    async def run(self) -> None:
        """Take out, give back, look for what came, until cancelled."""
        while True:
            try:
                await self._tend()
            except OSError as error:
                record(self._log, "host-unread", error=str(error))
            await self._pulse.wait(self._timing.device_poll_s if self._is_busy() else None)

    def _is_busy(self) -> bool:
        """Return whether anything goes, comes, or is to be looked at again."""
        return bool(self._unused or self._coming or self._returning or self._blocked or self._book.out)

    async def _tend(self) -> None:
        for gpuid in sorted(self._book.out):
            if gpuid in self._book.out and not self._book.is_withdrawn(gpuid):
                await self._give_back(gpuid)
        for gpuid in sorted(self._unused):
            if self._may_be_taken(gpuid):
                await self._take_out(gpuid)
        await self._look_for_blocked()
        await self._look_for_coming()

    def _may_be_taken(self, gpuid: str) -> bool:
        return gpuid in self._unused and self._book.is_withdrawn(gpuid) and not self._book.holders.uses(gpuid)

    # Out

    async def _take_out(self, gpuid: str) -> None:
        device = (self._here or {}).get(gpuid)
        if device is None or not device.uuid:
            if self._read > self._unused[gpuid].since:  # It may have come since what was read before.
                self._is_off(gpuid)  # It is not here, or nothing here is known to be it.
            return
        place = await self._steps.find(device.uuid)
        if place is None:
            if not self._is_coming_up(gpuid):
                self._is_off(gpuid)
            return
        self._off.discard(gpuid)
        if not await self._note(gpuid, device.uuid, place) or not self._may_be_taken(gpuid):
            return
        try:
            await self._steps.take_out(place)
        except RemovalRefusedError as refusal:
            record(self._log, "removal-refused", device=gpuid, reason=str(refusal))
            if refusal.pending:
                self._blocked.add(gpuid)
            self._book.refuse(gpuid, str(refusal))
            self._changed()
            return
        record(self._log, "taken-out", device=gpuid, address=place.bdf)
        self._is_off(gpuid)

    def _is_off(self, gpuid: str) -> None:
        self._coming.pop(gpuid, None)
        if gpuid in self._unused and gpuid not in self._off:  # It may have been asked back meanwhile.
            self._off.add(gpuid)
            self._changed()

    def _is_coming_up(self, gpuid: str) -> bool:
        coming = self._coming.get(gpuid)
        return gpuid not in self._book.out and coming is not None and _loop_s() - coming.since_s < _COMING_S

    async def _note(self, gpuid: str, uuid: str, place: HostPlace) -> bool:
        """Write down what is about to be touched; whether that succeeded."""
        before = self._book.out.get(gpuid)
        persistence = before.persistence if before else await self._steps.persistence(place)
        entry = RemovedDevice(uuid, place.bdf, place.bridge, persistence)
        if entry == before:
            return True
        self._book.out[gpuid] = entry
        try:
            await self._write_ahead()
        except (ApiError, UnavailableError) as error:
            record(self._log, "report-unwritten", error=str(error))
            if before is None:
                self._book.out.pop(gpuid, None)
            return False
        return True

    # Back

    async def _give_back(self, gpuid: str) -> None:
        entry, now_s = self._book.out[gpuid], _loop_s()
        retry = self._returning.setdefault(gpuid, _Retry(now_s, now_s))
        if now_s < retry.due_s:
            return
        place = await self._steps.find(entry.uuid)
        if place is None:
            await self._steps.rescan([entry.bridge] if entry.bridge else [], kept_out=self._kept_out())
            place = await self._shown(entry.uuid)
        if place is not None and not place.driver:
            await self._steps.bind(place)
            place = await self._shown(entry.uuid)
        if place is None or not place.driver or not await self._steps.undrain(place, persistence=entry.persistence):
            record(self._log, "not-given-back", device=gpuid, tries=retry.tries + 1)
            retry.again(_loop_s())
            return
        self._returning.pop(gpuid, None)
        self._coming.pop(gpuid, None)
        self._book.given_back(gpuid)
        record(self._log, "given-back", device=gpuid, address=place.bdf)
        self._changed()

    async def _shown(self, uuid: str) -> HostPlace | None:
        """Return where the device is once it has a driver, or after a while."""
        deadline_s = _loop_s() + _SHOWN_S
        place = await self._steps.find(uuid)
        while (place is None or not place.driver) and _loop_s() < deadline_s:
            await asyncio.sleep(_LOOK_S)
            place = await self._steps.find(uuid)
        return place

    def _kept_out(self) -> set[str]:
        """Return the bridges of what is off the host and must stay so."""
        return {entry.bridge for gpuid, entry in self._book.out.items() if self._book.is_withdrawn(gpuid)}

    async def _look_for_blocked(self) -> None:
        """A removal that was given up, and happened after all when the last process closed the device."""
        for gpuid in sorted(self._blocked):
            if self._book.is_withdrawn(gpuid) or gpuid in self._book.out or self._here is None:
                continue
            if await self._steps.find(self._here[gpuid].uuid) is None:
                self._blocked.discard(gpuid)
                self._coming[gpuid] = _Retry(_loop_s(), _loop_s())

    # In

    async def _look_for_coming(self) -> None:
        """One rescan for all that the chassis has put here since, and again for what does not show."""
        now_s, wanted = _loop_s(), []
        for gpuid in sorted(self._coming):
            coming = self._coming[gpuid]
            if self._book.is_withdrawn(gpuid) or gpuid in self._book.out or now_s < coming.due_s:
                continue
            if not await self._has_come(gpuid, coming):
                wanted.append(gpuid)
        if not wanted:
            return
        record(self._log, "rescanning", devices=wanted)
        await self._steps.rescan([], kept_out=self._kept_out())
        for gpuid in wanted:
            if gpuid in self._coming:
                self._coming[gpuid].again(_loop_s())

    async def _has_come(self, gpuid: str, coming: _Retry) -> bool:
        device = (self._here or {}).get(gpuid)
        place = await self._steps.find(device.uuid) if device is not None and device.uuid else None
        if place is not None and place.driver and (coming.tries or coming.known):
            del self._coming[gpuid]
            return True
        if place is not None and not place.driver and _loop_s() - coming.since_s >= _DRIVER_S:
            await self._steps.bind(place)
        return False


def _loop_s() -> float:
    return asyncio.get_running_loop().time()
