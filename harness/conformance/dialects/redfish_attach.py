"""Clauses about one attach that is looked at from all sides (contract chassis.md 4), as each may take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from msgspec import Struct

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import Clause, must
from mews.harness.conformance.client import HttpReply
from mews.harness.conformance.dialects.redfish_protocol import RULES, Pages, ask, in_pages
from mews.harness.conformance.dialects.redfish_table import durable_name
from mews.harness.conformance.errors import ListingUnavailableError, MalformedError, NotJudgedError, OutOfTimeError
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.fields import link_of, links, text

T = TypeVar("T")
WATCHED = "watched-attach"
"""Among the bench's facts."""
ENDED = ("Completed", "Exception", "Cancelled", "Killed", "Interrupted")
"""Of TaskState (DSP2046, Task): nothing goes on any more."""
AT = "chassis.md 4"


class Sighting(Generic[T]):
    """What was seen, or why it could not be: one thing that cannot be read hides no other."""

    def __init__(self, look: Callable[[], T]) -> None:
        try:
            self._found: list[T] = [look()]
        except OutOfTimeError:
            raise
        except (ListingUnavailableError, MalformedError, NotJudgedError) as error:
            self._found, self._error = [], error

    def __call__(self) -> T:
        """Return what was seen; raises what was raised when it was looked at."""
        if not self._found:
            raise self._error
        return self._found[0]


class WatchedAttach(Struct, frozen=True):
    """An attach of an idle device. ``tags`` and ``names``: the zone's ETag and the endpoint's DurableName, before and
    after; ``statuses``: LinkStatus of the device's ``port``, while it went on; ``pages``: the endpoints, the attach
    having come after the first page; ``replies``: those to the attach."""

    zone: str
    endpoint: str
    port: Sighting[str]
    tags: tuple[Sighting[str], Sighting[str]]
    names: tuple[Sighting[str], Sighting[str]]
    statuses: tuple[Sighting[str], ...]
    pages: Sighting[Pages]
    replies: tuple[HttpReply, ...]
    exchanges: tuple[Exchange, ...]


def watched(bench: ClauseContext) -> WatchedAttach:
    """Return the attach, made once a run; its exchanges are shown with each clause that is judged by it.

    Raises NotJudgedError where no device can be attached.
    """
    if WATCHED in bench.facts:
        bench.borrowed = bench.facts[WATCHED].exchanges
    else:
        bench.facts[WATCHED] = _watch(bench)
    found: WatchedAttach = bench.facts[WATCHED]
    return found


def _watch(bench: ClauseContext) -> WatchedAttach:
    device, host_port = bench.free(), bench.ports[0]
    zone, endpoint = bench.face.zone(host_port), bench.face.endpoint(device)
    first = len(bench.client.log)
    tag, name = (Sighting(partial(look, bench, where)) for look, where in ((_tag, zone), (_name, endpoint)))
    port = Sighting(partial(_port, bench, endpoint))
    statuses: list[Sighting[str]] = []
    moved: list[bool] = []

    def attach() -> None:
        bench.face.during = lambda: statuses.append(Sighting(lambda: _link_status(bench, port())))
        try:
            moved.append(bench.move(device, host_port))
        finally:
            bench.face.during = lambda: None

    pages = Sighting(lambda: in_pages(bench, bench.face.path("Endpoints"), 2, attach))
    if not moved:
        attach()
    if moved != [True]:
        raise NotJudgedError(f"device {device} cannot be attached")
    return WatchedAttach(
        zone,
        endpoint,
        port,
        (tag, Sighting(partial(_tag, bench, zone))),
        (name, Sighting(partial(_name, bench, endpoint))),
        tuple(statuses),
        pages,
        tuple(bench.face.task),
        tuple(bench.client.log[first:]),
    )


def _tag(bench: ClauseContext, path: str) -> str:
    found = ask(bench, "GET", path).headers.get("etag")
    if not found:
        raise NotJudgedError(f"{path} has no ETag")
    return found


def _name(bench: ClauseContext, endpoint: str) -> str:
    return durable_name(ask(bench, "GET", endpoint).json())


def _port(bench: ClauseContext, endpoint: str) -> str:
    ports = links(ask(bench, "GET", endpoint).json(), "Links", "ConnectedPorts")
    if not ports:
        raise NotJudgedError(f"{endpoint} names no port")
    return ports[0]


def _link_status(bench: ClauseContext, port: str) -> str:
    return text(ask(bench, "GET", port).json(), "LinkStatus")


def _etag_changes(bench: ClauseContext) -> None:
    found = watched(bench)
    before, after = (tag() for tag in found.tags)
    must(after != before, f"{found.zone}: ETag {before} is the same after an attach")


def _task(bench: ClauseContext) -> None:
    replies = watched(bench).replies
    if not replies:
        raise NotJudgedError("the attach was never answered")
    if replies[0].status != 202:
        raise NotJudgedError(f"an attach is answered immediately, with HTTP {replies[0].status}")
    if not replies[0].headers.get("location"):
        raise NotJudgedError("4.monitor does not hold: 202 without the Location of a task monitor")
    must(replies[0].headers.get("retry-after"), "202 without Retry-After")
    must(replies[-1].status in (200, 201, 202, 204), f"the task monitor ends with HTTP {replies[-1].status}")


def _task_state(bench: ClauseContext) -> None:
    """The attach's task, now that its device is where it was to go."""
    first = next((reply for reply in watched(bench).replies if reply.status == 202), None)
    if first is None:
        raise NotJudgedError("no operation went on after its answer")
    try:
        where = link_of(first.json()) if first.body else ""
    except MalformedError:
        where = ""
    if not where:
        raise NotJudgedError("the 202 names no task")
    began_s = time.monotonic()
    while True:
        reply = ask(bench, "GET", where)
        if reply.status == 404:
            raise NotJudgedError(f"{where}: is gone already")
        state = text(reply.json(), "TaskState")
        if state in ENDED or time.monotonic() - began_s > bench.limits.settle_s:
            break
        threading.Event().wait(0.1)
    must(
        state in ENDED,
        f"{where}: TaskState {state}, though its operation has ended: must be {', '.join(ENDED[:3])} or such",
    )


def _training(bench: ClauseContext) -> None:
    found = watched(bench)
    port, statuses = found.port(), [status() for status in found.statuses]
    if not statuses:
        raise NotJudgedError("an attach is answered immediately")
    must("Training" in statuses, f"{port}: LinkStatus {', '.join(statuses)} during an attach")


def _pages_stay(bench: ClauseContext) -> None:
    """A reader of pages does not know that a device moves meanwhile: which endpoints there are is the same."""
    watched(bench).pages().judge()


def _name_stays(bench: ClauseContext) -> None:
    """A device's endpoint is the same resource wherever the device is."""
    found = watched(bench)
    if bench.ledger.of("uuid"):
        raise NotJudgedError("4.uuid does not hold")
    before, after = (name() for name in found.names)
    must(after == before, f"{found.endpoint}: its DurableName is another after an attach")


def _clause(id_: str, title: str, reference: str, check: Callable[[ClauseContext], None], *needs: str) -> Clause:
    return Clause(id_, title, reference, check, changes=True, needs=needs)


ATTACH_CLAUSES: tuple[Clause, ...] = (
    _clause("4.etag-changes", "an ETag changes on each write", RULES, _etag_changes, "4.etag-stays"),
    _clause("4.task", "a long operation is 202, Location, Retry-After, then its own reply", RULES, _task),
    _clause(
        "4.task-state", "a task's TaskState says that it has ended once it has", f"{AT}: Task", _task_state, "4.task"
    ),
    _clause("4.training", "a port's LinkStatus is Training during an attach", f"{AT}: Port", _training),
    _clause("4.pages-stay", "pages name each member once while a device moves", RULES, _pages_stay, "4.pages"),
    _clause("4.endpoint-stays", "an endpoint keeps its DurableName when it moves", f"{AT}: Endpoint", _name_stays),
)
