"""What the chassis' process says to those of the hosts: all records and how its emulated time passes.

Time is told by CLOCK_MONOTONIC, which all processes of a machine share (``boot`` names the machine's run); a reader on
another machine takes the moment of receipt instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mews.emulator.telemetry.record import BoardRecord


class TimeAnchor(Struct, frozen=True):
    """At ``monotonic_ns`` of a machine's clock it was ``emulated_ns``, which pass ``speed`` times as fast."""

    monotonic_ns: int
    emulated_ns: int
    speed: float

    def emulated_at(self, monotonic_ns: int) -> int:
        """Return the emulated time of a moment."""
        return self.emulated_ns + round((monotonic_ns - self.monotonic_ns) * self.speed)


class TelemetryBulletin(Struct, frozen=True):
    """``version`` is another whenever something is; ``sent_ns`` is the emulated time of sending."""

    version: str
    boot: str
    anchor: TimeAnchor
    sent_ns: int
    records: Mapping[str, BoardRecord] = field(default_factory=dict)

    def anchored(self, boot: str, monotonic_ns: int) -> TimeAnchor:
        """Return the anchor on the machine of that ``boot``, where it is received at ``monotonic_ns``."""
        if boot == self.boot:
            return self.anchor
        return TimeAnchor(monotonic_ns, self.sent_ns, self.anchor.speed)

    def until_ns(self) -> int | None:
        """Return up to when the first of the records reaches; None: for ever."""
        return min((record.until_ns for record in self.records.values() if record.until_ns is not None), default=None)

    def as_value(self) -> dict[str, Any]:
        """Return them for JSON; ``from_value`` reads it back."""
        return {
            "version": self.version,
            "boot": self.boot,
            "monotonic_ns": self.anchor.monotonic_ns,
            "emulated_ns": self.anchor.emulated_ns,
            "speed": self.anchor.speed,
            "sent_ns": self.sent_ns,
            "records": [record.as_value() for record in self.records.values()],
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> TelemetryBulletin:
        """Return the bulletin of ``as_value``. Raises KeyError, TypeError, ValueError for anything else."""
        records = [BoardRecord.from_value(record) for record in value["records"]]
        anchor = TimeAnchor(int(value["monotonic_ns"]), int(value["emulated_ns"]), float(value["speed"]))
        by_uuid = {record.uuid: record for record in records}
        return cls(str(value["version"]), str(value["boot"]), anchor, int(value["sent_ns"]), by_uuid)
