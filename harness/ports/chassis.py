"""The chassis in process: the emulator's dialects carried without a socket, on the running loop."""

from __future__ import annotations

import asyncio
from functools import partial

from msgspec import Struct

from mews.emulator.chassis.events import ChassisEvent, Listener, ignore
from mews.emulator.chassis.fleet import Fleet
from mews.emulator.chassis.store import MemoryStore
from mews.emulator.dialects.redfish.settings import without_a_wire
from mews.emulator.dialects.registry import face, face_of
from mews.emulator.dialects.wire import ChassisFace, Dropped, Pending, Request, Response, split_target
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.kube.chassis.port import TransportError, WireRequest, WireResponse
from mews.kube.clock import Pace, later

LOCAL_PASSWORD = "no-wire-no-secret"
"""The first account's password where chassis are in process: there is no wire that anybody could log in by."""

_NO_TIME_S = 1e-9
"""What rounding may leave of a wait: a timer of so little may not move the clock of virtual time at all."""


class LocalFleet:
    """All chassis of a hardware file on the running loop; emulated time is ``pace.now()``.

    ``listener`` hears every chassis event at its time. A chassis can be killed and started again: its table is kept,
    as on disk.
    """

    def __init__(self, hardware: Hardware, *, pace: Pace, seed: int | str = 0, listener: Listener = ignore) -> None:
        self._listener = listener
        self._listeners: list[Listener] = []
        self.pace = pace
        self.hardware = hardware
        stores = {spec.name: MemoryStore() for spec in hardware.chassis}
        self.fleet = Fleet(hardware, EmulationContext(seed), listener=self._emit, stores=stores)
        self._dead: set[str] = set()
        self._faces: dict[tuple[str, str], tuple[object, ChassisFace]] = {}
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}
        self._waiting: dict[str, dict[asyncio.Future[None], _Wait]] = {spec.name: {} for spec in hardware.chassis}

    def listen(self, listener: Listener) -> None:
        """One more who hears every event."""
        self._listeners.append(listener)

    def _emit(self, event: ChassisEvent) -> None:
        self._listener(event)
        for listener in self._listeners:
            listener(event)

    def transport(self, chassis: str, dialect: str, *, timeout_s: float = 120.0) -> InProcessTransport:
        """Return how a client reaches that chassis; ``timeout_s`` are loop seconds."""
        self.fleet.box(chassis)
        return InProcessTransport(self, chassis, dialect, timeout_s=timeout_s)

    def face(self, chassis: str, dialect: str) -> ChassisFace:
        """Return the chassis in a dialect: the same one for all clients, another after it was killed and started."""
        box = self.fleet.boxes[chassis]
        known = self._faces.get((chassis, dialect))
        if known is None or known[0] is not box:
            known = box, face(dialect, box, without_a_wire(chassis, LOCAL_PASSWORD))
            self._faces[chassis, dialect] = known
        return known[1]

    def kill(self, chassis: str) -> None:
        """Kill -9 of that chassis' management server: open connections end, new ones are refused."""
        self.fleet.box(chassis).power_off(self.pace.now())
        self._dead.add(chassis)
        self.stirred(chassis)

    def start(self, chassis: str) -> None:
        """Start it again from its stored table."""
        if chassis in self._dead:
            self.fleet.box(chassis).power_off(self.pace.now())  # its table was edited by hand: no event of that is lost
            self.fleet.boxes[chassis] = self.fleet.build(chassis)
            self._dead.discard(chassis)

    def alive(self, chassis: str) -> bool:
        """Return whether its management server runs."""
        return chassis not in self._dead

    def stirred(self, chassis: str) -> None:
        """Something was begun or changed: see to it that what is due next happens in time, and that waits are right."""
        waiting = self._waiting[chassis]
        if waiting:
            only_reads = self.fleet.boxes[chassis].operations.only_reads()
            for waiter, wait in waiting.items():
                if wait.has_come() or wait.only_reads is not only_reads or wait.pending.due_s != wait.due_s:
                    _wake(waiter)
        self.pump(chassis)

    def pump(self, chassis: str) -> None:
        """Set the timer for what is due next, so that it happens although nobody looks."""
        box = self.fleet.boxes[chassis]
        due_s = box.agenda.next_s()
        timed = self._timers.get(chassis)
        if timed is not None:
            if timed[0] == due_s:
                return
            timed[1].cancel()
            del self._timers[chassis]
            # What it was set for may have happened already, as the chassis was looked at.
            for waiter, wait in self._waiting[chassis].items():
                if wait.has_come():
                    _wake(waiter)
        if due_s is not None:
            delay_s = self.pace.loop_s(max(due_s - self.pace.now(), 0.0))
            if box.operations.only_reads():
                handle = later(delay_s, partial(self._due, chassis, due_s))
            else:
                handle = asyncio.get_running_loop().call_later(delay_s, self._due, chassis, due_s)
            self._timers[chassis] = (due_s, handle)

    def _due(self, chassis: str, due_s: float) -> None:
        """A timer that was cancelled when it had run out already still calls."""
        timed = self._timers.get(chassis)
        if timed is None or timed[0] != due_s:
            return
        del self._timers[chassis]
        self.fleet.boxes[chassis].settle(max(due_s, self.pace.now()))
        self.stirred(chassis)

    async def wait(self, chassis: str, pending: Pending, delay_s: float, limit_s: float) -> None:
        """Sleep the ``delay_s`` until ``pending`` is due, but at most ``limit_s`` (both loop seconds), and no longer if
        it is due at another time meanwhile; for an answer to a mere read it is a rest, since that changes nothing.

        The chassis' own timer wakes whoever is answered as soon as the chassis is done, which is every reader."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        only_reads = self.fleet.boxes[chassis].operations.only_reads()
        wait = _Wait(pending, pending.due_s, only_reads, only_reads and delay_s <= limit_s and _ends_when_done(pending))
        timer: asyncio.TimerHandle | None = None
        if not wait.by_chassis:
            wake = partial(_wake, waiter)
            sleep_s = min(delay_s, limit_s)
            timer = later(sleep_s, wake) if only_reads else loop.call_later(sleep_s, wake)
        waiting = self._waiting[chassis]
        waiting[waiter] = wait
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            del waiting[waiter]

    def close(self) -> None:
        """Cancel all timers."""
        for _, handle in self._timers.values():
            handle.cancel()
        self._timers.clear()


class InProcessTransport:
    """A client's connection to one chassis: ``begin``, wait until due, ``finish``."""

    def __init__(self, fleet: LocalFleet, chassis: str, dialect: str, *, timeout_s: float = 120.0) -> None:
        face_of(dialect)
        self._fleet = fleet
        self._chassis = chassis
        self._name = dialect
        self._timeout_s = timeout_s
        self._asked: tuple[WireRequest, Request] | None = None
        self._answered: tuple[Response, WireResponse] | None = None

    async def send(self, request: WireRequest) -> WireResponse:
        """Return the answer.

        Raises TransportError.
        """
        if not self._fleet.alive(self._chassis):
            raise TransportError(f"chassis {self._chassis}: connection refused")
        dialect, pace = self._fleet.face(self._chassis, self._name), self._fleet.pace
        now_s = pace.now()
        pending = dialect.begin(self._on_wire(request), now_s)
        self._fleet.pump(self._chassis)
        answer = dialect.finish(pending, await self._until_due(pending, now_s))
        self._fleet.pump(self._chassis)
        if isinstance(answer, Dropped):
            raise TransportError(f"chassis {self._chassis}: connection dropped without an answer")
        if self._answered is None or self._answered[0] is not answer:
            self._answered = answer, WireResponse(answer.status, answer.body, answer.headers)
        return self._answered[1]

    def _on_wire(self, request: WireRequest) -> Request:
        """Return it as the chassis sees it; who reads the listing sends the same value every second."""
        if self._asked is None or self._asked[0] is not request:
            headers = {name.lower(): value for name, value in request.headers.items()}
            path, query = split_target(request.path)
            self._asked = request, Request(request.method, path, query, headers, request.body)
        return self._asked[1]

    async def _until_due(self, pending: Pending, now_s: float) -> float:
        """Sleep until it is; the emulated time then."""
        pace = self._fleet.pace
        deadline_s = now_s + self._timeout_s * pace.speed
        while (delay_s := pace.loop_s(pending.due_s - now_s)) > _NO_TIME_S:
            left_s = pace.loop_s(deadline_s - now_s)
            if left_s <= _NO_TIME_S:
                raise TransportError(f"chassis {self._chassis}: no answer within {self._timeout_s:g} s")
            await self._fleet.wait(self._chassis, pending, delay_s, left_s)
            now_s = pace.now()
        return now_s


class _Wait(Struct, frozen=True):
    """For what somebody waits, and what was known of it: when it is due, and that nothing but reads is going on.
    ``by_chassis``: the chassis' own timer is for it."""

    pending: Pending
    due_s: float
    only_reads: bool
    by_chassis: bool

    def has_come(self) -> bool:
        """Return whether the chassis is done with what its timer was for."""
        operation = self.pending.operation
        return self.by_chassis and operation is not None and operation.settled


def _ends_when_done(pending: Pending) -> bool:
    """Return whether the answer is due at the very time at which the chassis is done, which it has on its agenda."""
    operation = pending.operation
    return operation is not None and not operation.settled and operation.due_s == operation.answer_s


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
