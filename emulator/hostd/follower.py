"""Hears the chassis over their back door ``control``, over every restart of their process."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any

from mews.emulator.hostd.chassis_control import ChassisControl, ChassisStream, ControlLostError
from mews.emulator.hostd.rack import HostRack

_RETRY_S = 0.1

Ports = Mapping[str, Mapping[str, str | None]]


class ChassisFollower:
    """Every event of the chassis goes to the hosts."""

    def __init__(self, control: ChassisControl, rack: HostRack) -> None:
        self._control = control
        self._rack = rack
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)
        self._stream = ChassisStream(control)
        self._seq = 0

    def begin(self) -> Ports:
        """Return the table now; events are heard from here on.

        Raises ControlLostError.
        """
        self._seq = int(self._control.ask("/v1/events?since=1000000000000")["seq"])
        table = self._control.ask("/v1/table")
        return {chassis: {device: row["port"] for device, row in rows.items()} for chassis, rows in table.items()}

    def start(self) -> None:
        """Hear events, on a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Hear no more."""
        self._stop.set()
        self._stream.end()
        if self._thread.ident is not None:
            self._thread.join(2.0)

    def _follow(self) -> None:
        again = False
        while not self._stop.is_set():
            try:
                if again:
                    self._rack.reconcile(self.begin())
                again = True
                self._read_events()
            except ControlLostError:
                self._stop.wait(_RETRY_S)

    def _read_events(self) -> None:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(self._seq)}
        response = self._stream.open("/v1/events", headers)
        try:
            for line in iter(response.readline, b""):
                if line.startswith(b"data: "):
                    self._take(json.loads(line[6:]))
        except (OSError, HTTPException, ValueError) as error:
            raise ControlLostError(str(error)) from error
        finally:
            response.close()
        raise ControlLostError("the feed ended")

    def _take(self, event: dict[str, Any]) -> None:
        self._seq = event.pop("seq")
        self._rack.on_event(event.pop("chassis"), event.pop("number"), event.pop("event"), event)
