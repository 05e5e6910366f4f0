"""All faults of a chassis by kind; one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mews.emulator.chassis.faults.spec import fault_registry

OURS: Mapping[str, str] = {
    "slow-operation": "mews.emulator.chassis.faults.slow:SlowOperation",
    "lying-result": "mews.emulator.chassis.faults.lying:LyingResult",
    "dropped-connection": "mews.emulator.chassis.faults.dropped:DroppedConnection",
    "partial-list": "mews.emulator.chassis.faults.lists:PartialList",
    "listed-twice": "mews.emulator.chassis.faults.strange_lists:ListedTwice",
    "unknown-host": "mews.emulator.chassis.faults.strange_lists:UnknownHost",
    "token-ends": "mews.emulator.chassis.faults.token:TokenEnds",
    "layout-busy": "mews.emulator.chassis.faults.layouts:LayoutBusy",
    "layout-half-done": "mews.emulator.chassis.faults.layouts:LayoutHalfDone",
    "stale-list": "mews.emulator.chassis.faults.lists:StaleList",
    "http-error": "mews.emulator.chassis.faults.http_error:HttpError",
    "timeout": "mews.emulator.chassis.faults.timeout:Timeout",
    "half-applied-attach": "mews.emulator.chassis.faults.attach:HalfAppliedAttach",
    "never-trains": "mews.emulator.chassis.faults.attach:NeverTrains",
    "management-reboot": "mews.emulator.chassis.faults.reboot:ManagementReboot",
    "concurrent-editor": "mews.emulator.chassis.faults.editor:ConcurrentEditor",
    "link-down": "mews.emulator.chassis.faults.link:LinkDownFault",
    "lost-uuid": "mews.emulator.chassis.faults.lost_uuid:LostUuidFault",
    "wrong-uuid": "mews.emulator.chassis.faults.uuid:WrongUuid",
    "events-out-of-order": "mews.emulator.chassis.faults.order:EventsOutOfOrder",
    "read-aftermath": "mews.emulator.chassis.faults.aftermath:ReadAftermath",
}

CHASSIS_FAULTS: Final = fault_registry(OURS, "chassis")
