"""Wrongs of the table: what a move does, what it says, and what listings show of it."""

from __future__ import annotations

from mews.emulator.dialects.wire import Request, Response
from mews.emulator.wrongs.over_http import EACH, PLAIN, TABLES
from mews.emulator.wrongs.parts import (
    attaches,
    claimed,
    detaches,
    listing,
    lists,
    moved,
    place_of,
    settled,
    sometimes,
    table,
)
from mews.emulator.wrongs.tables import PLAIN as PLAIN_WORDS
from mews.emulator.wrongs.tables import AskedMove, Records, Words, records_of, with_records, words_of
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, Wrong, dialect_of


def _held_too(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
    """What is attached is detached first."""
    words = words_of(request)
    reply = settled(request, ask(request), ask, stage)
    if move.port is None or not isinstance(reply, Response) or words.is_done(reply):
        return reply
    before = table(request, ask).get(move.device)
    if not before:
        return reply
    settled(request, ask(words.asking(request, AskedMove(move.device, None, before))), ask, stage)
    return settled(request, ask(request), ask, stage)


def _knocks_off(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
    """An attach of the first device takes a neighbour off its port."""
    reply = ask(request)
    words, rows = words_of(request), table(request, ask)
    first = bool(rows) and move.device == next(iter(rows))
    if move.port is not None and first and isinstance(reply, Response) and words.is_done(reply):
        neighbour = next((each for each, port in rows.items() if port and each != move.device), None)
        if neighbour is not None:
            ask(words.asking(request, AskedMove(neighbour, None, rows[neighbour])))
    return reply


def _elsewhere(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
    """An attach goes to another port."""
    if move.port is None:
        return ask(request)
    others = sorted({port for port in table(request, ask).values() if port and port != move.port})
    reply = ask(request)
    words = words_of(request)
    if others and isinstance(reply, Response) and words.is_done(reply):
        ask(words.asking(request, AskedMove(move.device, None, move.port)))
        ask(words.asking(request, AskedMove(move.device, others[0])))
    return reply


def _twice(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
    """A request is carried out twice; the second answer is given."""
    settled(request, ask(request), ask, stage)
    return ask(request)


class _Held:
    """Where devices were brought, as the answers to moves say."""

    def __init__(self) -> None:
        self._ports: dict[str, str] = {}

    def again(self, move: AskedMove) -> bool:
        """Return whether the device is on that port already."""
        return move.port is not None and self._ports.get(move.device) == move.port

    def begins(self, move: AskedMove) -> str | None:
        """Take down a move that is under way, whose device may be there before its answer is; where it was."""
        before = self._ports.get(move.device)
        self._put(move.device, move.port)
        return before

    def fails(self, move: AskedMove, before: str | None) -> None:
        """Such a move is answered as not done."""
        self._put(move.device, before)

    def _put(self, device: str, port: str | None) -> None:
        self._ports.pop(device, None)
        if port is not None:
            self._ports[device] = port

    def saw(self, move: AskedMove, reply: Reply, words: Words) -> None:
        """Take down a move that is answered as done."""
        if isinstance(reply, Response) and words.is_done(reply):
            self._put(move.device, move.port)


def _again_detaches(stage: Stage) -> Handler:
    """Return an attach to the port that the device is on already is refused, and takes it off."""
    held = _Held()

    def act(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
        words = words_of(request)
        again, before = held.again(move), held.begins(move)
        reply = settled(request, ask(request), ask, stage)
        if isinstance(reply, Response) and not words.is_done(reply):
            held.fails(move, before)
            if again:
                off = AskedMove(move.device, None, move.port)
                held.saw(off, settled(request, ask(words.asking(request, off)), ask, stage), words)
        return reply

    return moved(act)(stage)


def _again_attaches(stage: Stage) -> Handler:
    """Return a detach of a device that a detach has taken off a port puts it back there."""
    left: dict[str, str] = {}

    def act(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
        words = words_of(request)
        if move.port is None and move.device in left:
            port = left.pop(move.device)
            return settled(request, ask(words.asking(request, AskedMove(move.device, port))), ask, stage)
        before = place_of(move.device, request, ask) if move.port is None else None
        reply = settled(request, ask(request), ask, stage)
        if isinstance(reply, Response) and words.is_done(reply):
            left.pop(move.device, None)
            if before:
                left[move.device] = before
        return reply

    return moved(act)(stage)


def _again_listed(stage: Stage) -> Handler:
    """Return a device that is attached to its port a second time is listed twice, until it is detached."""
    held = _Held()
    twice: set[str] = set()

    def handler(request: Request, ask: Ask) -> Reply:
        words, plain = words_of(request), PLAIN_WORDS[dialect_of(request)]
        move = words.move(request)
        reply = ask(request)
        if move is not None:
            (twice.add if held.again(move) else twice.discard)(move.device)
            held.saw(move, reply, words)
        records = records_of(reply) if isinstance(reply, Response) and words.lists(request) else None
        if records is None or not twice:
            return reply
        assert isinstance(reply, Response)
        return with_records(reply, [*records, *(each for each in records if each.get(plain.device) in twice)])

    return handler


class _Shown:
    """Where devices are shown to be, whatever the chassis says."""

    def __init__(self) -> None:
        self.ports: dict[str, str] = {}


def _any_port(stage: Stage) -> Handler:
    """Return a port that the chassis does not know takes devices."""
    shown = _Shown()

    def handler(request: Request, ask: Ask) -> Reply:
        words, plain = words_of(request), PLAIN_WORDS[dialect_of(request)]
        move = words.move(request)
        if words.lists(request):
            reply = ask(request)
            records = records_of(reply) if isinstance(reply, Response) else None
            if records is None or not shown.ports:
                return reply
            assert isinstance(reply, Response)
            for record in records:
                if record.get(plain.device) in shown.ports:
                    record[plain.port] = shown.ports[record[plain.device]]
            known = {record.get("Port#") for record in records}
            more = [{"Port#": port, "Port_GID": "00h"} for port in sorted({*shown.ports.values()} - known)]
            return with_records(reply, records + (more if plain.device == "Dev_GID" else []))
        if move is None:
            return ask(request)
        if move.device in shown.ports:
            if move.port is not None:
                return words.answered(request, done=False)
            del shown.ports[move.device]
            return words.answered(request, done=True)
        rows = table(request, ask)
        reply = ask(request)
        free = rows.get(move.device) == "" and bool(move.port)
        refused = isinstance(reply, Response) and not words.is_done(reply)
        # Another request may have won meanwhile: that is no port that the chassis does not know.
        if free and refused and move.port is not None and table(request, ask).get(move.device) == "":
            shown.ports[move.device] = move.port
            return words.answered(request, done=True)
        return reply

    return handler


def _loses(stage: Stage) -> Handler:
    """What is detached is listed no more."""
    lost: set[str] = set()

    def handler(request: Request, ask: Ask) -> Reply:
        words, plain = words_of(request), PLAIN_WORDS[dialect_of(request)]
        move = words.move(request)
        held = move is not None and move.port is None and place_of(move.device, request, ask) is not None
        reply = ask(request)
        if move is not None and held and isinstance(reply, Response) and words.is_done(reply):
            lost.add(move.device)
        records = records_of(reply) if isinstance(reply, Response) and words.lists(request) else None
        if records is None or not isinstance(reply, Response):
            return reply
        return with_records(reply, [record for record in records if record.get(plain.device) not in lost])

    return handler


def _stale(stage: Stage) -> Handler:
    """A listing after a move is the one of before it, three times."""
    kept: list[Response] = []
    left = [0]

    def handler(request: Request, ask: Ask) -> Reply:
        words = words_of(request)
        reply = ask(request)
        if words.move(request) is not None and isinstance(reply, Response) and words.is_done(reply):
            left[0] = 3
        if not words.lists(request) or not isinstance(reply, Response):
            return reply
        if left[0] and kept:
            left[0] -= 1
            return kept[0]
        kept[:] = [reply]
        return reply

    return handler


def _uuid_of_port(stage: Stage) -> Handler:
    """A device's UUID is another on each port."""

    def handler(request: Request, ask: Ask) -> Reply:
        reply = ask(request)
        plain = PLAIN_WORDS[dialect_of(request)]
        records = records_of(reply) if isinstance(reply, Response) and words_of(request).lists(request) else None
        if records is None or not isinstance(reply, Response):
            return reply
        for record in records:
            if record.get(plain.port):
                port = str(record[plain.port])
                record[plain.uuid] = f"{record[plain.uuid][:-2]}{int(port) % 256:02x}" if port.isdecimal() else ""
        return with_records(reply, records)

    return handler


def _without_first(records: Records) -> Records:
    return records[1:]


OF_TABLES: tuple[Wrong, ...] = (
    Wrong(
        "attach-lies", "an attach is answered as done and is not", EACH, claimed(attaches, done=True, carried_out=False)
    ),
    Wrong(
        "attach-denies",
        "an attach is answered as failed and is done",
        EACH,
        claimed(attaches, done=False, carried_out=True),
    ),
    Wrong(
        "detach-lies", "a detach is answered as done and is not", EACH, claimed(detaches, done=True, carried_out=False)
    ),
    Wrong(
        "detach-denies",
        "a detach is answered as failed and is done",
        EACH,
        claimed(detaches, done=False, carried_out=True),
    ),
    Wrong("attach-refused", "every attach is refused", EACH, claimed(attaches, done=False, carried_out=False)),
    Wrong("detach-refused", "every detach is refused", EACH, claimed(detaches, done=False, carried_out=False)),
    Wrong("any-port", "a host port that the chassis lacks takes devices", PLAIN, _any_port),
    Wrong("moves-held", "an attach moves what is attached", TABLES, moved(_held_too)),
    Wrong("knocks-off", "an attach of the first device takes another one off its port", TABLES, moved(_knocks_off)),
    Wrong("other-port", "an attach goes to another port", TABLES, moved(_elsewhere)),
    Wrong("carried-out-twice", "a move is carried out twice, the second answer is given", EACH, moved(_twice)),
    Wrong("again-detaches", "an attach that is made again takes the device off its port", EACH, _again_detaches),
    Wrong("again-attaches", "a detach that is made again puts the device back on its port", EACH, _again_attaches),
    Wrong("again-listed", "an attach that is made again lists the device twice", TABLES, _again_listed),
    Wrong("loses", "a detached device is listed no more", TABLES, _loses),
    Wrong("stale", "listings after a move are those of before it", TABLES, _stale),
    Wrong("uuid-of-port", "a device has another UUID on each port", PLAIN, _uuid_of_port),
    Wrong(
        "partial-sometimes", "a listing now and then lacks a device", TABLES, sometimes(listing(_without_first), lists)
    ),
)
