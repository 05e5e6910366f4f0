"""The log: an entry for each edit of the table, whichever dialect made it. A system shows those about its own host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.emulator.dialects.redfish import chassis_events, uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.replies import JSON_TYPE, PreparedReply
from mews.emulator.dialects.redfish.resources.systems import host_of
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import LOG_KEPT, RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.wire import Request, as_json

CLEAR = "LogService.ClearLog"
NAME, ATTACHED = "Table", "Attachment"

Record = Mapping[str, Any]
Owns = Callable[[RedfishView, tuple[str, ...]], Callable[[Record], bool] | None]
"""(view, the owner's part of the path) -> which records are in its log; None where there is no such owner."""


def _of_manager(view: RedfishView, owner: tuple[str, ...]) -> Callable[[Record], bool] | None:
    return lambda record: True


def _of_system(view: RedfishView, owner: tuple[str, ...]) -> Callable[[Record], bool] | None:
    host = host_of(view, owner[0])
    if host is None:
        return None
    about = {uris.system(host), *(uris.zone(port) for port, cabled in view.ports.items() if cabled == host)}
    return lambda record: record["OriginOfCondition"]["@odata.id"] in about


# Complex: counts the functions inside it.
def _routes(home: str, owns: Owns, *, clears: bool) -> tuple[RedfishRoute, ...]:  # noqa: C901
    """Return a log below ``home``, whose path may have an argument of its own."""

    def base(owner: tuple[str, ...]) -> str:
        return f"{home.replace('{system}', owner[0]) if owner else home}/LogServices"

    def services(view: RedfishView, *owner: str) -> Body | None:
        """Return all logs: one."""
        if owns(view, owner) is None:
            return None
        uri = base(owner)
        return collection("LogService", uri, "Log services", [f"{uri}/{NAME}"]) | {"Description": "All logs"}

    def service(view: RedfishView, *owner: str) -> Body | None:
        """Return the log of the table."""
        if owns(view, owner) is None:
            return None
        uri = f"{base(owner)}/{NAME}"
        action = {"Actions": {f"#{CLEAR}": {"target": f"{uri}/Actions/{CLEAR}"}}} if clears else {}
        return resource(
            "LogService",
            uri,
            "Table log",
            Description="Edits of the device lookup table",
            LogEntryType="Event",
            MaxNumberOfRecords=LOG_KEPT,
            OverWritePolicy="WrapsWhenFull",
            ServiceEnabled=True,
            DateTime=view.stamp(),
            DateTimeLocalOffset="+00:00",
            Status=dict(OK),
            Entries=ref(f"{uri}/Entries"),
            **action,
        )

    def entries(view: RedfishView, *owner: str) -> Body | None:
        """Newest last; the schema has this collection show its members whole."""
        is_ours, uri = owns(view, owner), f"{base(owner)}/{NAME}/Entries"
        if is_ours is None:
            return None
        found = [_body(record, uri) for record in view.state.log if is_ours(record)]
        shown = {"Description": "Entries, the newest last", "Members": found, "Members@odata.count": len(found)}
        return collection("LogEntry", uri, "Log entries", []) | shown

    def record_of(view: RedfishView, path: tuple[str, ...]) -> Record | None:
        *owner, name = path
        log, is_ours = view.state.log, owns(view, tuple(owner))
        place = int(name) - int(log[0]["EventId"]) if log and name.isascii() and name.isdecimal() else -1
        if is_ours is None or not 0 <= place < len(log) or log[place]["EventId"] != name or not is_ours(log[place]):
            return None
        return log[place]

    def entry(view: RedfishView, *path: str) -> Body | None:
        """Return one entry."""
        record = record_of(view, path)
        return None if record is None else _body(record, f"{base(path[:-1])}/{NAME}/Entries")

    def attached(view: RedfishView, request: Request, path: tuple[str, ...]) -> PreparedReply:
        """Return the chassis' own event behind an entry.

        Raises RedfishError: 404.
        """
        record = record_of(view, path)
        if record is None:
            raise fail(404, "ResourceMissingAtURI", request.path)
        return PreparedReply(200, as_json(record["about"]), {"Content-Type": JSON_TYPE, "Allow": "GET, HEAD"})

    at = f"{home}/LogServices"
    return (
        RedfishRoute(at, services),
        RedfishRoute(f"{at}/{NAME}", service, privilege=MANAGER, actions={CLEAR: clear} if clears else {}),
        RedfishRoute(f"{at}/{NAME}/Entries", entries),
        RedfishRoute(f"{at}/{NAME}/Entries/{{entry}}", entry),
        RedfishRoute(f"{at}/{NAME}/Entries/{{entry}}/{ATTACHED}", entry, answer=attached),
    )


def _body(record: Record, entries: str) -> Body:
    name = record["EventId"]
    uri = f"{entries}/{name}"
    resolution = chassis_events.resolution(record["MessageId"])
    return resource(
        "LogEntry",
        uri,
        f"Log entry {name}",
        EntryType="Event",
        Severity=record["MessageSeverity"],
        Created=record["EventTimestamp"],
        EventTimestamp=record["EventTimestamp"],
        EventId=name,
        Message=record["Message"],
        MessageId=record["MessageId"],
        MessageArgs=record["MessageArgs"],
        Links={"OriginOfCondition": record["OriginOfCondition"]},
        AdditionalDataURI=f"{uri}/{ATTACHED}",
        AdditionalDataSizeBytes=len(as_json(record["about"])),
        **({"Resolution": resolution} if resolution else {}),
    )


def clear(call: RedfishWrite) -> Done:
    """Forget all entries."""
    call.state.clear_log(call.now_s)
    return Done()


ROUTES = (
    *_routes(uris.MANAGER, _of_manager, clears=True),
    *_routes(f"{uris.SYSTEMS}/{{system}}", _of_system, clears=False),
)
