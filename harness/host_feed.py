"""Turns what a host tells (``mews.emulator.host.events``) into journal lines; the same in process and over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.emulator.host import events
from mews.harness.journal import Journal

QUIET = ("node-added", "node-removed")
"""Events that are not news: they come with the driver."""

EVENTS = tuple(each for each in events.EVENTS if each not in QUIET and not each.startswith("fault-"))
"""Every event that it writes of layer ``host``."""

KEYS = (
    *("t", "layer", "actor", "event", "paper", "devices", "below", "holders", "act", "instances", "instance"),
    *("device", "uuid", "gpuid", "kind", "bdf", "minor", "healthy"),
    *("xid", "text", "corrected", "uncorrected", "arrow", "on", "count", "what"),
)
"""What its lines may have."""


class HostFeed:
    """The feed of one host."""

    def __init__(self, journal: Journal, host: str) -> None:
        self._journal = journal
        self._actor = f"host/{host}"

    def on_event(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write one event."""
        if event.startswith("fault-"):
            self._fault(event.removeprefix("fault-"), fields)
        elif event not in QUIET:
            self._journal.write("host", self._actor, event, **fields)

    def _fault(self, event: str, fields: Mapping[str, Any]) -> None:
        written = {name: value for name, value in fields.items() if name not in ("may_break", "grace_s")}
        if "may_break" in fields:
            written["excuses"] = {str(number): fields["grace_s"] for number in fields["may_break"]}
        self._journal.write("fault", self._actor, event, **written)
