"""A fleet in wall time: a lock per chassis, the clock, the event feed, a keeper that lets things happen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.fleet import Fleet
from mews.emulator.chassis.store import TableStore
from mews.emulator.clock import EmulatedClock
from mews.emulator.delivery import EventDelivery
from mews.emulator.dialects.wire import ChassisFace, Dropped, Request, Response, SendingFace, Stream
from mews.emulator.feed import EventFeed
from mews.emulator.hardware.emulation_context import BY_DEFAULT, EmulationContext
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.request_log import RequestLog
from mews.emulator.settling import SettlingThread, earliest
from mews.emulator.telemetry.store import TelemetryStore

T = TypeVar("T")

HEARTBEAT_S = 10.0
"""Real seconds of silence after which a stream shows whether its reader is still there."""
QUIET_S = 0.5
"""Real seconds after which a stream looks for news that nobody announced."""


class Rack:
    """All chassis of a hardware file, shared by the threads of their servers."""

    def __init__(
        self,
        hardware: Hardware,
        *,
        clock: EmulatedClock,
        context: EmulationContext = BY_DEFAULT,
        stores: Mapping[str, TableStore] | None = None,
        telemetry_stores: Mapping[str, TelemetryStore] | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        """``fleet``: boxes that are there already, in place of those that ``context`` and stores would make."""
        self.hardware = hardware
        self.clock = clock
        self.feed = EventFeed()
        self.requests = RequestLog(clock.now)
        self._fleet = fleet or Fleet(
            hardware, context, listener=self.feed.emit, stores=stores, telemetry_stores=telemetry_stores
        )
        self._locks = {name: threading.Lock() for name in self._fleet.boxes}
        self._couriers: list[EventDelivery] = []
        self._keeper = SettlingThread(clock, next_due=self._next_due, settle=self._settle)

    def start(self) -> None:
        """Let what is due happen although nobody looks."""
        self._keeper.start()
        for courier in self._couriers:
            courier.start()

    def stop(self) -> None:
        """End all waits and readers."""
        self.clock.stop()
        self.feed.close()
        self._keeper.join()
        for courier in self._couriers:
            courier.join()

    def names(self) -> tuple[str, ...]:
        """Return the chassis, in the order of the file."""
        return tuple(self._fleet.boxes)

    def speak(self, chassis: str, make: Callable[[EmulatedChassis], ChassisFace]) -> ChassisFace:
        """Return a chassis' face in a dialect, to be used with ``answer``; before ``start``."""
        face = make(self._fleet.box(chassis))
        if isinstance(face, SendingFace):
            self._couriers.append(EventDelivery(face.hub, self._locks[chassis], self.clock))
        return face

    @contextmanager
    def box(self, name: str) -> Iterator[EmulatedChassis]:
        """Provide one chassis, nobody else touching it meanwhile; then whoever waits on its times asks again.

        Raises ValueError naming those there are.
        """
        box = self._fleet.box(name)
        with self._locks[name]:
            yield box
        self.clock.stir()

    def answer(self, chassis: str, dialect: ChassisFace, request: Request) -> Response | Dropped:
        """Begin, wait until due, finish."""
        lock, clock, box = self._locks[chassis], self.clock, self._fleet.box(chassis)
        with lock:
            next_s = box.agenda.next_s()
            now_s = clock.now()
            pending = dialect.begin(request, now_s)
            due = pending.due_s <= now_s
            reply = dialect.finish(pending, now_s) if due else None
            quiet = due and request.method in ("GET", "HEAD") and box.agenda.next_s() == next_s
        if not quiet:
            clock.stir()
        if reply is None:
            if not clock.wait_until(lambda: pending.due_s):
                return Dropped()
            with lock:
                reply = dialect.finish(pending, clock.now())
        return self._guarded(lock, reply)

    def _guarded(self, lock: threading.Lock, reply: Response | Dropped) -> Response | Dropped:
        """Return a reply whose stream takes the chassis' lock, and waits for something to happen."""
        if isinstance(reply, Dropped) or reply.stream is None:
            return reply
        stream = reply.stream

        def locked() -> list[bytes] | None:
            with lock:
                return stream.take()

        def take() -> list[bytes] | None:
            until_s = self.clock.real_s() + HEARTBEAT_S
            while (taken := locked()) == [] and self.clock.real_s() < until_s:
                if not self.clock.pause(QUIET_S):
                    return None
            return taken

        def close() -> None:
            with lock:
                stream.close()

        return replace(reply, stream=Stream(take, close))

    def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> row; see ``Fleet.table``."""
        return {name: self._one_table(name) for name in self._fleet.boxes}

    def _one_table(self, name: str) -> dict[str, dict[str, Any]]:
        with self._locks[name]:
            return self._fleet.rows(name, self.clock.now())

    def telemetry_version(self, name: str) -> int:
        """Return the version of a chassis' telemetry; wakes nobody, as whoever waits for another asks again and
        again."""
        return self._fleet.box(name).telemetry.version

    def _settle(self) -> None:
        now_s = self.clock.now()
        for name, box in self._fleet.boxes.items():
            with self._locks[name]:
                box.settle(now_s)
        self.clock.stir()

    def _next_due(self) -> float | None:
        return earliest(box.agenda.next_s() for box in self._fleet.boxes.values())
