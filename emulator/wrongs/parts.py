"""What wrongs are made of: changes to listings, to replies and to what a move does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mews.emulator.dialects.wire import Request, Response
from mews.emulator.wrongs.tables import (
    ACTION,
    CDIM,
    PLAIN,
    REDFISH,
    AskedMove,
    Fm,
    Records,
    records_of,
    with_json,
    with_records,
    words_of,
)
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, dialect_of, on_target

Make = Callable[[Stage], Handler]
EVERY = 7
"""What happens now and then happens to each so many-th request, from a place that the dice choose."""
MOST_POLLS = 100
"""Of a task monitor, a tenth of a second apart."""


def replies(when: Callable[[Request], bool], change: Callable[[Response], Reply]) -> Make:
    """Every reply to such a request is changed."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            return change(reply) if isinstance(reply, Response) and when(request) else reply

        return handler

    return make


def instead(when: Callable[[Request], bool], reply: Reply) -> Make:
    """Every such request is answered so, and the chassis does not hear of it."""

    def make(stage: Stage) -> Handler:
        return lambda request, ask: reply if when(request) else ask(request)

    return make


def sometimes(make: Make, when: Callable[[Request], bool]) -> Make:
    """Now and then, of such requests."""

    def sometimes_made(stage: Stage) -> Handler:
        handler, phase, seen = make(stage), stage.rng.randrange(2, EVERY), [0]

        def answer(request: Request, ask: Ask) -> Reply:
            if not when(request):
                return ask(request)
            with stage.lock:
                seen[0] += 1
                struck = seen[0] % EVERY == phase
            return handler(request, ask) if struck else ask(request)

        return answer

    return sometimes_made


def later(when: Callable[[Request], bool], seconds: float) -> Make:
    """Such requests are answered late."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            if when(request):
                stage.wait(seconds)
            return reply

        return handler

    return make


def lists(request: Request) -> bool:
    """Return whether it reads the table."""
    return words_of(request).lists(request)


def reads(request: Request) -> bool:
    """Return whether it reads anything."""
    return request.method == "GET"


def looks(request: Request) -> bool:
    """Return whether it reads anything, or only its headers."""
    return request.method in ("GET", "HEAD")


def moves(request: Request) -> bool:
    """Return whether it moves a device."""
    return words_of(request).move(request) is not None


def attaches(request: Request) -> bool:
    """Return whether it attaches a device."""
    move = words_of(request).move(request)
    return move is not None and move.port is not None


def detaches(request: Request) -> bool:
    """Return whether it detaches a device."""
    move = words_of(request).move(request)
    return move is not None and move.port is None


def writes(request: Request) -> bool:
    """Return whether it is sent to where moves are, be it one or not."""
    plain = PLAIN.get(dialect_of(request))
    if isinstance(plain, Fm):
        return plain.updates(request)
    return moves(request) if plain is None else request.method != "GET" and request.path == plain.allocation


def headers(when: Callable[[Request], bool], **changed: str | None) -> Make:
    """Replies with these headers, or without; names in any case, ``_`` for ``-``."""
    wanted = {name.replace("_", "-"): value for name, value in changed.items()}

    def change(reply: Response) -> Response:
        gone = {name.lower() for name in wanted}
        kept = {name: value for name, value in reply.headers.items() if name.lower() not in gone}
        return Response(
            reply.status, {**kept, **{k: v for k, v in wanted.items() if v is not None}}, reply.body, reply.stream
        )

    return replies(when, change)


def listing(change: Callable[[Records], Any]) -> Make:
    """Return the records of a plain listing, changed."""

    def changed(reply: Response) -> Response:
        records = records_of(reply)
        return reply if records is None else with_records(reply, change(records))

    return replies(lists, changed)


def each_device(change: Callable[[dict[str, Any]], object]) -> Make:
    """Return a deviation of plain listings that changes each record of a device."""

    def changed(records: Records) -> Records:
        for record in records:
            if "Port#" not in record:
                change(record)
        return records

    return listing(changed)


def member(which: str, convert: Callable[[str], Any]) -> Make:
    """Return one member of each device: ``device``, ``port`` or ``uuid``."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            plain = PLAIN.get(dialect_of(request))
            records = records_of(reply) if isinstance(reply, Response) and lists(request) else None
            if plain is None or records is None:
                return reply
            assert isinstance(reply, Response)
            name = getattr(plain, which)
            for record in records:
                if name in record:
                    record[name] = convert(record[name])
            return with_records(reply, records)

        return handler

    return make


def text(change: Callable[[str], str]) -> Make:
    """Return the text of every listing, changed."""
    return replies(
        lists, lambda reply: Response(reply.status, reply.headers, change(reply.body.decode()).encode(), reply.stream)
    )


def moved(act: Callable[[Request, AskedMove, Ask, Stage], Reply]) -> Make:
    """Moves are carried out so."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            move = words_of(request).move(request)
            return ask(request) if move is None else act(request, move, ask, stage)

        return handler

    return make


def claimed(when: Callable[[Request], bool], *, done: bool, carried_out: bool) -> Make:
    """Such moves, where the chassis does them, are answered as done or not, and carried out or not: undone again."""

    def act(request: Request, move: AskedMove, ask: Ask, stage: Stage) -> Reply:
        if not when(request):
            return ask(request)
        words = words_of(request)
        before = place_of(move.device, request, ask)
        reply = settled(request, ask(request), ask, stage)
        changed = dialect_of(request) == "redfish" or before != move.port
        if not isinstance(reply, Response) or not words.is_done(reply) or not changed:
            return reply
        if not carried_out:
            settled(request, ask(words.asking(request, AskedMove(move.device, before))), ask, stage)
        return words.answered(request, done=done)

    return moved(act)


def place_of(device: str, request: Request, ask: Ask) -> str | None:
    """Return the port that a device is on; of Redfish, the zone that it is to leave."""
    plain = PLAIN.get(dialect_of(request))
    if plain is None:
        move = REDFISH.move(request)
        named = ACTION.fullmatch(request.path)
        return named[2] if named is not None and move is not None and move.port is None else None
    rows = table(request, ask)
    return rows.get(device) or None


def table(request: Request, ask: Ask) -> dict[str, str]:
    """Device -> port, "" where it is free, of a plain dialect."""
    plain = PLAIN[dialect_of(request)]
    tenant = request.query.get("tenant_uuid")
    where = plain.listing if tenant is None else f"{plain.listing}?tenant_uuid={tenant}"
    target = on_target(replace(request, method="GET", body=b""), where)
    reply = ask(target)
    records = records_of(reply) if isinstance(reply, Response) else None
    return {each[plain.device]: each.get(plain.port) or "" for each in records or () if plain.device in each}


def settled(request: Request, reply: Reply, ask: Ask, stage: Stage) -> Reply:
    """Return a long operation's own reply, once it has one."""
    for _ in range(MOST_POLLS):
        where = _monitor(request, reply) if isinstance(reply, Response) else ""
        if not where:
            return reply
        stage.wait(0.1)
        reply = ask(on_target(replace(request, method="GET", body=b""), where))
    return reply


def _monitor(request: Request, reply: Response) -> str:
    """Return where to look how a long operation goes on, "" once it does not."""
    if dialect_of(request) != "cdim":
        return reply.headers.get("Location", "") if reply.status == 202 else ""
    value = json.loads(reply.body) if reply.status in (200, 202) else {}
    going_on = reply.status == 202 or value.get("status") in ("IN_PROGRESS", "CANCELING")
    return f"{CDIM.allocation}/{value['applyID']}" if going_on else ""


def resources(change: Callable[[dict[str, Any]], object], kind: str = "") -> Make:
    """Return every resource of Redfish (of that kind), alone or within an expanded collection, changed in its place."""

    def changed(reply: Response) -> Response:
        if reply.status != 200 or not reply.body.startswith(b"{"):
            return reply
        whole = json.loads(reply.body)
        listed = whole.get("Members")
        for each in (whole, *(listed if isinstance(listed, list) else ())):
            if isinstance(each, dict) and (not kind or kind_of(each) == kind):
                change(each)
        return with_json(reply, whole)

    return replies(lambda request: request.method == "GET" and request.path.startswith("/redfish/v1"), changed)


def kind_of(value: dict[str, Any]) -> str:
    """Return the unversioned name of a resource's type."""
    return str(value.get("@odata.type", "")).lstrip("#").partition(".")[0]


def instead_of(when: Callable[[Request, Response], bool], reply: Response) -> Make:
    """Answer with this reply where the request and its reply are such."""

    def make(stage: Stage) -> Handler:
        def handler(request: Request, ask: Ask) -> Reply:
            found = ask(request)
            return reply if isinstance(found, Response) and when(request, found) else found

        return handler

    return make
