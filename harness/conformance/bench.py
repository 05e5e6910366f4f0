"""One chassis under judgement: reads and moves that go on whatever happens, noting in the ledger what went wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Protocol, TypeVar

from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.errors import (
    HttpServerError,
    ListingUnavailableError,
    MalformedError,
    NoAnswerError,
    NotJudgedError,
    OutOfTimeError,
    UnmetClauseError,
)
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.observations import Observations
from mews.harness.conformance.table import Limits, ListedDevice, ListedTable, TableClient, Units, port_text

T = TypeVar("T")


class UndoLog(Protocol):
    """Takes down what may have to be undone."""

    def begin(self, device: str, port: str | None) -> None:
        """A request is about to be made that may bring a device to that port."""
        ...

    def saw(self, device: str, port: str | None) -> None:
        """Our requests brought a device there."""
        ...

    def answered(self) -> None:
        """A request that was begun has been answered."""
        ...

    def knocked_off(self, device: str) -> None:
        """One of our requests took another device off its port."""
        ...


SHOWN_AFTER_S = 1.5
"""After so long without an answer the user is shown what is waited for."""
MISSING_READS = 8
"""A device that so many listings in a row lack is lost."""
TRIES = 3
"""Of one move."""
READING_PART, BESIDE_MOVES_PART = 0.6, 0.2
"""Of the time left, for reading everything: where nothing is moved, and where devices are."""


class ClauseContext:
    """What a clause gets. ``devices`` are the idle ones that may be moved, empty in a read-only run."""

    def __init__(
        self,
        client: Client,
        face: TableClient,
        *,
        limits: Limits | None = None,
        home: str = "",
        units: Units | None = None,
    ) -> None:
        self.client = client
        self.face: Any = face
        self.home = home
        """A path that any chassis of the dialect answers; empty where there is none beside that of the listing."""
        self.limits = limits or Limits()
        self.units = units or Units()
        self.on_wait: Callable[[str], None] = lambda text: None
        """Called with one line when an answer is long in coming."""
        self.devices: tuple[str, ...] = ()
        self.ports: tuple[str, ...] = ()
        self.ledger = Observations()
        self.halted = ""
        """Why no device may be moved any more; empty while they may."""
        self.slow = ""
        """Why each thing is tried once only; empty where there is time for more."""
        self.reading_part = READING_PART
        """How much of the time left a walk through all resources may take before it reads less."""
        self.sampled = ""
        """Why not all was read; empty where it was."""
        client.on_note = self.note
        self.facts: dict[str, Any] = {}
        """What one clause found out and others use."""
        self.borrowed: tuple[Exchange, ...] = ()
        """Exchanges of before that the clause which is being judged looks at: they are shown with its own."""
        self._keeper: UndoLog | None = None
        self._known: dict[str, str] = {}
        self._lost: set[str] = set()
        self._hopeless: set[str] = set()
        """Kinds of moves that failed every time: they are tried once from then on."""
        self._stuck = ""
        """That no device goes to any port, once all were tried: it is not tried again for each clause."""
        self._dead = ""
        self._failing: set[str] = set()
        """Requests that were answered with HTTP 5xx every time: they are made once from then on."""
        self._malformed: set[str] = set()
        """What was said of replies that were of another form every time; likewise."""
        self._took_s: dict[str, float] = {}
        """The longest attach and detach so far that was answered."""

    def allow(self, devices: tuple[str, ...], ports: tuple[str, ...], keeper: UndoLog | None) -> None:
        """Let these devices be moved, onto these ports."""
        self.devices, self.ports, self._keeper = devices, ports, keeper

    # Looking

    def get(self, path: str, method: str = "GET", **headers: str) -> HttpReply:
        """Return a reply below 500, asked for again while none comes."""
        return self.insist(lambda: below_500(self.client.send(method, path, None, headers), f"{method} {path}"))

    def read(self) -> ListedTable:
        """Return the whole table: a listing that lacks known devices is noted and asked for again.

        Raises MalformedError, UnavailableError.
        """
        rows: dict[str, ListedDevice] = {}
        lacked = ""
        for attempt in range(MISSING_READS):
            table = self.insist(self.face.read)
            rows.update(table.rows)
            missing = [device for device in self._known if device not in rows and device not in self._lost]
            listed = [device for device in self._known if device not in table.rows and device not in self._lost]
            if listed:
                lacked = lacked or f"a listing lacks {', '.join(listed)}, which another one has"
            if not missing:
                break
            _rest(0.05 * (attempt + 1))
        else:
            self._lost.update(missing)
            self.note("lost", f"device {', '.join(missing)} is not listed any more")
            lacked = ""
        if lacked:
            self.note("complete", lacked)
        self.ledger.done["read"] += 1
        self._compare_uuids(rows)
        return ListedTable(rows, table.ports, table.twice)

    # Complex: one branch for each way in which an answer fails.
    def insist(self, ask: Callable[[], T]) -> T:  # noqa: C901
        """Return what it returns, asked again while no answer comes, as long as an outage may last; a few times where
        it is answered with HTTP 5xx or in another form than the dialect's.

        Raises ListingUnavailableError (at once where nothing has ever answered), MalformedError, OutOfTimeError.
        """
        if self._dead:
            raise ListingUnavailableError(self._dead)
        began_s, rest_s = time.monotonic(), 0.05
        silent = failed = malformed = 0
        shown = False
        while True:
            asked_s = time.monotonic()
            try:
                found = ask()
                self._timed("read", asked_s)
                return found
            except NoAnswerError as error:
                if error.kind in NoAnswerError.HOPELESS and not self.answered():
                    raise ListingUnavailableError(str(error)) from error
                self.note(error.topic, str(error))
                text, silent = str(error), silent + 1
                if silent >= TRIES - 1 and (error.kind == "cut" or self._answers_elsewhere()):
                    raise ListingUnavailableError(text) from error
            except HttpServerError as error:
                self.note(error.topic, str(error))
                text, failed = str(error), failed + 1
                if failed >= TRIES or error.where in self._failing:
                    self._failing.add(error.where)
                    raise ListingUnavailableError(text) from error
            except MalformedError as error:
                self.note("form", str(error))
                text, malformed = str(error), malformed + 1
                if malformed >= TRIES or text in self._malformed:
                    self._malformed.add(text)
                    raise
            waited_s = time.monotonic() - began_s
            if waited_s > SHOWN_AFTER_S and not shown:
                shown = True
                self.on_wait(f"{text}; asked again for up to {self.limits.outage_s:g} s")
            if self.client.left_s() <= 0:
                raise OutOfTimeError(f"{text}; no time is left")
            if waited_s > self.limits.outage_s:
                self._dead = f"no answer for {self.limits.outage_s:g} s: {text}"
                raise ListingUnavailableError(self._dead)
            _rest(rest_s)
            rest_s = min(rest_s * 1.6, 5.0)

    def answered(self) -> bool:
        """Return whether the chassis has ever answered anything."""
        return any(exchange.status for exchange in self.client.log)

    def _answers_elsewhere(self) -> bool:
        """Return whether it is the path that gets no answer, and not the chassis that is away."""
        if not self.home or (self.client.log and self.client.log[-1].path == self.home):
            return False
        try:
            self.client.send("GET", self.home)
        except NoAnswerError:
            return False
        return True

    def last_write(self) -> Exchange:
        """Return the last exchange that was no read; there must have been one."""
        return next(each for each in reversed(self.client.log) if each.method not in ("GET", "HEAD"))

    def note(self, topic: str, text: str) -> None:
        """Into the ledger, with the last exchange."""
        self.ledger.note(topic, text, len(self.client.log) - 1)

    def _compare_uuids(self, rows: dict[str, ListedDevice]) -> None:
        for device, row in rows.items():
            known = self._known.setdefault(device, row.uuid)
            if known != row.uuid:
                self.note("uuid", f"device {device} had UUID {known!r} and now shows {row.uuid!r}")
                self._known[device] = row.uuid

    def _timed(self, kind: str, began_s: float, *, alone: bool = True) -> None:
        took_s, limit_s = time.monotonic() - began_s, getattr(self.limits, f"{kind}_s")
        if alone:
            self._took_s[kind] = max(took_s, self._took_s.get(kind, 0.0))
        if took_s > limit_s:
            self.note("times", f"{kind} took {took_s:.2f} s, the longest measured is below {limit_s:g} s")

    # Moving

    def often(self, times: int) -> int:
        """Return how often to try what is tried several times: once where the chassis is slow."""
        return 1 if self.slow else times

    def time_for(self, kind: str, times: int = 1) -> None:
        """Raise OutOfTimeError where so many attaches or detaches, one after another as a chassis serves them, would go
        on when no time is left: what became of them would be unknown."""
        most_s = times * self._took_s.get(kind, 0.0)
        if most_s > self.client.left_s():
            raise OutOfTimeError(f"{times} {kind} may take {most_s:.1f} s, which is longer than the time left")

    def forget_failures(self) -> None:
        """Moves are made in another way from now on: what failed so far may work."""
        self._hopeless.clear()
        self._failing.clear()
        self._stuck = ""

    def free(self, *, but: tuple[str, ...] = ()) -> str:
        """Return an idle device on no port, moved there if need be.

        Raises NotJudgedError where none can be had.
        """
        for device in self._usable(but):
            if self.move(device, None):
                return device
        raise NotJudgedError("no idle device could be detached")

    def attached(self) -> tuple[str, str]:
        """Return an idle device and the port that it is on, moved there if need be.

        Raises NotJudgedError where none can be had.
        """
        table = self.read()
        for device in self._usable(()):
            port = table.port(device)
            if port is not None:
                return device, port
        for device, port in () if self._stuck else product(self._usable(()), self.ports[:2]):
            if self.move(device, port):
                return device, port
        self._stuck = "no idle device could be attached"
        raise NotJudgedError(self._stuck)

    def move(self, device: str, port: str | None, ask: Callable[[], bool] | None = None) -> bool:
        """Bring a device to a port (None: to none) and see it there; False if it does not go.

        ``ask`` makes the request in another way than the face does. Raises MalformedError, UnavailableError.
        """
        kind = "detach" if port is None else "attach"
        failed = len(self.ledger.of("server-errors"))
        for _ in range(1 if kind in self._hopeless else self.often(TRIES)):
            before = self.read()
            if before.port(device) == port and device in before.rows:
                return True
            if kind == "attach" and before.port(device) is not None and not self.move(device, None):
                return False
            claim = self.ask(device, port, ask or self._usual(device, port))
            after = self._settled(device, port, claim)
            if device in self._lost:
                return False
            self._judge_move(device, port, claim, before=before, after=after)
            if after.port(device) == port:
                return True
        self._hopeless.add(kind)
        if len(self.ledger.of("server-errors")) - failed >= TRIES:
            self.note(kind, f"the {kind} of idle device {device} is answered with HTTP 5xx every time")
        return False

    def refused(
        self, device: str, port: str | None, ask: Callable[[], bool], what: str, *, judged: bool = True
    ) -> bool:
        """Make a request that must change nothing; ``judged``: and must not be answered as done. What it claims.

        Raises UnmetClauseError if the device went elsewhere, NotJudgedError if there never was an answer.
        """
        for _ in range(self.often(TRIES)):
            before = self.read()
            claim = self.ask(device, port, ask)
            after = self.read()
            if after.port(device) != before.port(device) and device in after.rows:
                self.saw(device, after.port(device))
                was, now = port_text(before.port(device)), port_text(after.port(device))
                raise UnmetClauseError(f"{what}: device {device} was on {was}, is on {now}")
            if claim is True and judged:
                kind = "detach" if port is None else "attach"
                self.note(f"truth-{kind}", f"{what}: answered as done, and nothing changed")
            if claim is not None:
                self.compare_others(device, before, after)
                return claim
        raise NotJudgedError(f"{what}: no answer")

    def ask(self, device: str, port: str | None, ask: Callable[[], bool], *, alone: bool = True) -> bool | None:
        """Make one request that may move a device; what it claims, None where there is no claim. One that is not
        ``alone`` may wait for another one: how long it takes says nothing of the next."""
        kind = "detach" if port is None else "attach"
        self.time_for(kind)
        if self._keeper is not None:
            self._keeper.begin(device, port)
        self.ledger.done[kind] += 1
        began_s = time.monotonic()
        claim = None
        try:
            claim = ask()
        except NoAnswerError as error:
            if error.kind != NoAnswerError.LOST:
                self.note(error.topic, str(error))
            return None
        except HttpServerError as error:
            self.note(error.topic, str(error))
        except MalformedError as error:
            self.note("reply", str(error))
        if self._keeper is not None:
            self._keeper.answered()
        self._timed(kind, began_s, alone=alone)
        return claim

    def _usual(self, device: str, port: str | None) -> Callable[[], bool]:
        def ask() -> bool:
            claim = self.face.detach(device) if port is None else self.face.attach(device, port)
            return bool(claim)

        return ask

    def _settled(self, device: str, port: str | None, claim: bool | None) -> ListedTable:
        """Return the table once it shows the move, or as it is when it should have."""
        began_s, rest_s, late = time.monotonic(), 0.05, False
        while True:
            table = self.read()
            if device in self._lost:
                return table
            if table.port(device) == port:
                if late and claim:
                    self.note("fresh", f"a listing showed device {device} where it was before its acknowledged move")
                return table
            if time.monotonic() - began_s > self.limits.settle_s:
                self.saw(device, table.port(device))
                return table
            late = True
            _rest(rest_s)
            rest_s = min(rest_s * 1.6, 1.0)

    def seen_on_some_port(self, device: str) -> ListedTable:
        """Return the table once a device is on a port, or as it is when it should have been: by then a listing is
        settled."""
        return self.once(lambda table: table.port(device) is not None, self.limits.settle_s)

    def once(self, holds: Callable[[ListedTable], bool], most_s: float) -> ListedTable:
        """Return the table once that holds of it, or as it is after so long."""
        began_s = time.monotonic()
        while not holds(table := self.read()) and time.monotonic() - began_s < most_s:
            _rest(0.1)
        return table

    def _judge_move(
        self, device: str, port: str | None, claim: bool | None, *, before: ListedTable, after: ListedTable
    ) -> None:
        kind = "detach" if port is None else "attach"
        arrived = after.port(device) == port
        where = f"device {device} is on {port_text(after.port(device))}, must be on {port_text(port)}"
        if claim is False and arrived:
            self.note(f"truth-{kind}", f"the {kind} of device {device} was answered as failed, and took effect")
        if claim is True and not arrived:
            self.note(kind, f"the {kind} was answered as done: {where}")
        if claim is False and not arrived:
            self.note(kind, f"the {kind} of an idle device failed: {where}")
        self.compare_others(device, before, after)

    def move_unanswered(self, device: str, port: str | None) -> ListedTable:
        """Ask for a move without reading the answer; the table once it shows the device elsewhere, or as it is when
        the move can no longer take effect. Raises NotJudgedError where no such move has worked so far."""
        kind = "detach" if port is None else "attach"
        if kind in self._hopeless:
            raise NotJudgedError(f"no {kind} takes effect")
        before = self.read()
        with self.client.answers_lost():
            claim = self.ask(device, port, self._usual(device, port))
        limits, where = self.limits, before.port(device)
        most_s = getattr(limits, f"{kind}_s") + max(limits.settle_s, limits.quiet_s)
        table = self.once(lambda table: table.port(device) != where, most_s)
        self.compare_others(device, before, table)
        if claim is None and table.port(device) != where and self._keeper is not None:
            self._keeper.answered()
        return table

    def saw(self, device: str, port: str | None) -> None:
        """A request of ours brought a device there, which it was not to."""
        if self._keeper is not None:
            self._keeper.saw(device, port)

    def touched(self, *devices: str) -> None:
        """A request of ours took these off their ports, whoever's they are."""
        for device in devices:
            if self._keeper is not None and device in self.devices:
                self._keeper.saw(device, None)
            elif self._keeper is not None:
                self._keeper.knocked_off(device)

    def compare_others(self, asked: str, before: ListedTable, after: ListedTable) -> None:
        """Note what a request did to other devices than the one that it was about."""
        for device, row in after.rows.items():
            if device != asked and device in before.rows and before.rows[device].port != row.port:
                moved = f"from {port_text(before.rows[device].port)} to {port_text(row.port)}"
                text = f"device {device} went {moved}, only {asked} was asked: the chassis, or another client"
                self.note("alone", text)
                if self._keeper is not None and row.port is None:
                    self._keeper.knocked_off(device)

    def _usable(self, but: tuple[str, ...]) -> Iterator[str]:
        return (device for device in self.devices if device not in self._lost and device not in but)


def _rest(seconds: float) -> None:
    threading.Event().wait(seconds)
