"""The log: an entry for each edit of the table, whichever dialect made it."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.accounts import MANAGER
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import LOG_KEPT, RedfishView
from mews.emulator.dialects.redfish.tasks import Done
from mews.emulator.dialects.redfish.uris import ref

URI = f"{uris.MANAGER}/LogServices"
ENTRIES = f"{uris.LOG}/Entries"
CLEAR = "LogService.ClearLog"


def services(view: RedfishView) -> Body:
    """All logs: one."""
    return collection("LogService", URI, "Log services", [uris.LOG])


def service(view: RedfishView) -> Body:
    """The log of the table."""
    return resource(
        "LogService",
        uris.LOG,
        "Table log",
        LogEntryType="Event",
        MaxNumberOfRecords=LOG_KEPT,
        OverWritePolicy="WrapsWhenFull",
        ServiceEnabled=True,
        DateTime=view.stamp(),
        DateTimeLocalOffset="+00:00",
        Status=dict(OK),
        Entries=ref(ENTRIES),
        Actions={f"#{CLEAR}": {"target": f"{uris.LOG}/Actions/{CLEAR}"}},
    )


def entries(view: RedfishView) -> Body:
    """Newest last; the schema has this collection show its members whole."""
    found = [_body(record) for record in view.state.log]
    return collection("LogEntry", ENTRIES, "Log entries", []) | {"Members": found, "Members@odata.count": len(found)}


def entry(view: RedfishView, name: str) -> Body | None:
    """One entry."""
    log = view.state.log
    place = int(name) - int(log[0]["EventId"]) if log and name.isascii() and name.isdecimal() else -1
    if not 0 <= place < len(log) or log[place]["EventId"] != name:
        return None
    return _body(log[place])


def _body(record: dict[str, Any]) -> Body:
    name = record["EventId"]
    return resource(
        "LogEntry",
        f"{ENTRIES}/{name}",
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
    )


def clear(call: RedfishWrite) -> Done:
    """Forget all entries."""
    call.state.log.clear()
    return Done()


ROUTES = (
    RedfishRoute(URI, services),
    RedfishRoute(uris.LOG, service, privilege=MANAGER, actions={CLEAR: clear}),
    RedfishRoute(ENTRIES, entries),
    RedfishRoute(f"{ENTRIES}/{{entry}}", entry),
)
