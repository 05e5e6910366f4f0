"""Names in the patterns of checks, against what there is to be matched: a pattern with a name that nothing has would
fail whatever happens, or, where it must not match, hold whatever happens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from mews.emulator.chassis.fleet import ROW_KEYS
from mews.emulator.host.function import BringUpStage
from mews.emulator.host.host import VIEW_KEYS
from mews.emulator.telemetry.reading import GpuReading
from mews.emulator.yaml_document import Place
from mews.harness import chassis_feed, host_feed
from mews.harness.journal import LAYERS
from mews.harness.scenario.findings import Finding, keys_of, one_of, plain
from mews.harness.scenario.known import KnownNames

EVENTS: Mapping[str, Sequence[str]] = {
    "chassis": chassis_feed.EVENTS,
    "host": host_feed.EVENTS,
    "fault": ("added", "fired", "cleared"),
    "step": ("begun", "passed", "failed"),
    "invariant": ("violated",),
}
"""Layers whose events are all known; components of others write what they will."""

KEYS: Mapping[str, Sequence[str]] = {"chassis": chassis_feed.KEYS, "host": host_feed.KEYS}
"""Layers whose lines' fields are all known."""

POD_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
STAGES = tuple(stage.name.lower() for stage in BringUpStage)
BOARD_KEYS = (*(each.name for each in fields(GpuReading)), "set")


def pod_words(place: Place, value: Mapping[str, Any], hosts: Sequence[str]) -> Iterator[Finding]:
    """Yield a pod's node and phase."""
    yield from one_of((*place, "node"), value.get("node"), hosts)
    yield from one_of((*place, "phase"), value.get("phase"), POD_PHASES)


def table_row(place: Place, row: Any) -> Iterator[Finding]:
    """Yield a row of the chassis' table."""
    yield from keys_of(place, row, ROW_KEYS)


def board_row(place: Place, row: Any) -> Iterator[Finding]:
    """Yield what a board shows."""
    yield from keys_of(place, row, BOARD_KEYS)


def seen_by_host(place: Place, seen: Any) -> Iterator[Finding]:
    """Yield what a host sees, and how far its devices have come up."""
    yield from keys_of(place, seen, VIEW_KEYS)
    for name, device in plain(plain(seen).get("devices")).items():
        yield from one_of((*place, "devices", name, "stage"), plain(device).get("stage"), STAGES)


def chassis_events(place: Place, value: Any) -> Iterator[Finding]:
    """Counts by event of a chassis."""
    yield from keys_of(place, value, chassis_feed.EVENTS)


def journal_line(place: Place, line: Any) -> Iterator[Finding]:
    """Yield a line of the journal: its layer and, where that layer's are all known, its event and its fields."""
    given = plain(line)
    layer = given.get("layer")
    yield from one_of((*place, "layer"), layer, LAYERS)
    if isinstance(layer, str) and layer in EVENTS:
        yield from one_of((*place, "event"), given.get("event"), EVENTS[layer])
    if isinstance(layer, str) and layer in KEYS:
        yield from keys_of(place, line, KEYS[layer])


def kubernetes_event(place: Place, value: Mapping[str, Any], known: KnownNames) -> Iterator[Finding]:
    """Yield what an event is about, ``KIND/NAME`` or ``KIND/NAMESPACE/NAME``, and its type."""
    about = value.get("object")
    yield from one_of((*place, "type"), value.get("type"), ("Normal", "Warning"))
    if not isinstance(about, str) or "${" in about:
        return
    parts = about.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        yield (*place, "object"), about, "must be KIND/NAME or KIND/NAMESPACE/NAME, such as Pod/trainer"
        return
    why = known.unserved(parts[0], "")
    if why is not None:
        yield (*place, "object"), about, f"kind {parts[0]}: {why}"
