"""Replies to GET that are still true: kept until anything changes that a resource could show, but for the time."""

from __future__ import annotations

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import OperationKind
from mews.emulator.chassis.table import DeviceRow
from mews.emulator.dialects.wire import Response


class RenderedReplies:
    """Path -> the reply and its tag. What depends on the time is never kept (``RedfishView.timed``)."""

    def __init__(self, box: EmulatedChassis) -> None:
        self._box = box
        self._replies: dict[str, tuple[Response, str]] = {}
        self._rows: tuple[DeviceRow, ...] = ()
        self._pending: dict[str, OperationKind] = {}
        self._divisions = 0

    def changed(self) -> None:
        """Something of the service's own is another: none of the replies may be true any more."""
        self._replies.clear()

    def get(self, path: str) -> tuple[Response, str] | None:
        """Return the reply that is still true, with its tag."""
        is_same = self._rows is self._box.table.listing() and self._pending == self._box.operations.pending()
        if not (is_same and self._divisions == self._box.telemetry.divisions):
            self.changed()
        return self._replies.get(path)

    def keep(self, path: str, reply: Response, tag: str) -> None:
        """It is true as long as nothing changes."""
        self._rows, self._pending = self._box.table.listing(), self._box.operations.pending()
        self._divisions = self._box.telemetry.divisions
        self._replies[path] = (reply, tag)
