"""All faults of a chassis by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mews.emulator.chassis.faults.aftermath import ReadAftermath
from mews.emulator.chassis.faults.attach import HalfAppliedAttach, NeverTrains
from mews.emulator.chassis.faults.dropped import DroppedConnection
from mews.emulator.chassis.faults.editor import ConcurrentEditor
from mews.emulator.chassis.faults.http_error import HttpError
from mews.emulator.chassis.faults.link import LinkDownFault
from mews.emulator.chassis.faults.lists import PartialList, StaleList
from mews.emulator.chassis.faults.lost_uuid import LostUuidFault
from mews.emulator.chassis.faults.lying import LyingResult
from mews.emulator.chassis.faults.order import EventsOutOfOrder
from mews.emulator.chassis.faults.reboot import ManagementReboot
from mews.emulator.chassis.faults.slow import SlowOperation
from mews.emulator.chassis.faults.spec import fault_registry
from mews.emulator.chassis.faults.timeout import Timeout
from mews.emulator.chassis.faults.uuid import WrongUuid

OURS: Mapping[str, type[Any]] = {
    "slow-operation": SlowOperation,
    "lying-result": LyingResult,
    "dropped-connection": DroppedConnection,
    "partial-list": PartialList,
    "stale-list": StaleList,
    "http-error": HttpError,
    "timeout": Timeout,
    "half-applied-attach": HalfAppliedAttach,
    "never-trains": NeverTrains,
    "management-reboot": ManagementReboot,
    "concurrent-editor": ConcurrentEditor,
    "link-down": LinkDownFault,
    "lost-uuid": LostUuidFault,
    "wrong-uuid": WrongUuid,
    "events-out-of-order": EventsOutOfOrder,
    "read-aftermath": ReadAftermath,
}

CHASSIS_FAULTS: Final = fault_registry(OURS, "chassis")
