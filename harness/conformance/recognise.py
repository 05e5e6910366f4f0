"""Sees at once that there is nothing to judge: no such host, nobody there, or a server of another kind."""

from __future__ import annotations

import socket
import threading

from mews.dialects import OURS
from mews.harness.conformance.bench import SHOWN_AFTER_S, ClauseContext
from mews.harness.conformance.client import MAY_WANT_CERTIFICATE, Client, HttpReply
from mews.harness.conformance.dialects.registry import DialectClauses, clauses_of
from mews.harness.conformance.errors import NoAnswerError
from mews.harness.errors import RequirementError

RESOLVED_WITHIN_S = 1.8
"""Resolvers of unreachable name servers take half a minute to give up."""
CONNECTED_WITHIN_S = 1.8
DROPPED_TRIES = 4
"""A port that closes so many connections in a row, and has answered none, is nobody's; together 1.2 s apart."""
EMPTY = ("", "[]", "{}", "null")


def recognise(bench: ClauseContext, dialect: str) -> None:
    """Look whether it is a chassis of that dialect; what goes wrong otherwise is noted.

    Raises RequirementError, one line, where it is surely none, and where it asks for credentials and none are given.
    What answers with 403, 5xx or not at all may be one.
    """
    client: Client = bench.client
    _reach(client)
    judged = clauses_of(dialect)
    if not judged.home:
        return
    why, may_be = _unlike(bench, judged)
    if why:
        other = next((name for name in OURS if name != dialect and _is_one(client, clauses_of(name))), None)
        hint = "" if other is None else f"; it looks like {other}: --dialect {other}"
        if other is not None or not may_be:
            raise RequirementError(
                f"{client.address.url}: this does not look like {dialect}: GET {judged.home}: {why}{hint}"
            )
        if client.credentials is None and why.startswith("HTTP 401,"):
            url = client.address.url
            raise RequirementError(
                f"{url}: GET {judged.home}: HTTP 401: it requires credentials: give --credentials FILE"
            )


def _reach(client: Client) -> None:
    """Resolve the host and connect once, within bounds of its own."""
    resolved: list[object] = []

    def resolve() -> None:
        try:
            resolved.append(client.addresses())
        except OSError as error:
            resolved.append(error)

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(RESOLVED_WITHIN_S)
    url = client.address.url
    if not resolved or isinstance(resolved[0], OSError):
        error = resolved[0] if resolved else None
        why = error.strerror if isinstance(error, socket.gaierror) else f"no answer within {RESOLVED_WITHIN_S:g} s"
        raise RequirementError(f"{url}: the host's name cannot be resolved: {why}; no chassis answers there")
    try:
        client.connect_once(min(CONNECTED_WITHIN_S, client.address.patience_s))
    except NoAnswerError as error:
        raise RequirementError(f"{error}; no chassis answers there") from error


def _unlike(bench: ClauseContext, judged: DialectClauses) -> tuple[str, bool]:
    """Return why it is no such chassis, empty where it looks like one; and whether it may be one all the same, unless
    it is another: who asks for credentials does not say for what."""
    patience = f"up to {bench.client.address.patience_s:g} s"
    notice = threading.Timer(SHOWN_AFTER_S, bench.on_wait, (f"GET {judged.home}: no answer yet; waiting {patience}",))
    notice.daemon = True
    notice.start()
    try:
        reply = _first_reply(bench, judged.home)
    except NoAnswerError as error:
        if error.kind in (*NoAnswerError.HOPELESS, "dropped"):
            raise RequirementError(f"{error}{_perhaps(bench.client, error)}; no chassis answers there") from error
        bench.note(error.topic, str(error))
        return "", True
    finally:
        notice.cancel()
    if reply.status >= 500:
        bench.note("server-errors", f"GET {judged.home}: HTTP {reply.status}: {reply.text[:120]}")
    if reply.status >= 500 or _names(reply, judged):
        return "", True
    if reply.status < 300 and reply.text.strip() in EMPTY:
        return "", True
    kind = reply.headers.get("content-type", "without a Content-Type").partition(";")[0]
    return f"HTTP {reply.status}, {kind}, {' '.join(reply.text[:60].split())!r}", reply.status in (401, 403)


def _perhaps(client: Client, error: NoAnswerError) -> str:
    """Return who closes each connection under TLS may want a client certificate: its reason is lost with the
    connection."""
    if error.kind != "dropped" or not client.encrypted or client.address.cert is not None:
        return ""
    return MAY_WANT_CERTIFICATE


def _first_reply(bench: ClauseContext, path: str) -> HttpReply:
    """Return the first reply, asked for again where the connection is closed without one.

    Raises NoAnswerError.
    """
    for attempt in range(1, DROPPED_TRIES):
        try:
            return bench.client.send("GET", path)
        except NoAnswerError as error:
            if error.kind != "dropped":
                raise
            bench.note(error.topic, str(error))
            threading.Event().wait(0.2 * attempt)
    return bench.client.send("GET", path)


def _is_one(client: Client, judged: DialectClauses) -> bool:
    try:
        reply = client.send("GET", judged.home)
    except NoAnswerError:
        return False
    return reply.status == 200 and _names(reply, judged)


def _names(reply: HttpReply, judged: DialectClauses) -> bool:
    """Return whether one of the dialect's own member names or error codes is in it, be it wrapped, cut short or in
    another case."""
    text = reply.text.lower()
    known = [*(f'"{word}"' for word in judged.words), *(f'"{code}' for code in judged.codes)]
    return any(each.lower() in text for each in known)
