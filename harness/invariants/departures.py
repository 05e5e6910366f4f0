"""Invariant 71: a device leaves its host in order, held by nobody, or it is lost and the host says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_FALLS = ("nvml-hidden", "driver-unbound", "function-removed")
_IN_USE, _ORDERLY = 2, 10
_GPU, _SURPRISE_XID = "GPU", 79

Key = tuple[str, str, str]
"""The host's actor, GPUID, address: a device may be back while its dead function is still there."""


class Departures(Invariant[ObservedState]):
    """Orderly removal and surprise removal are different paths (contract host.md section 1). A device that the chassis
    takes away while its PCI function is there is lost first. A GPU with its driver reports XID 79 before that. A driver
    releases a device that is not lost only once no container has the device open (section 3)."""

    number = 71
    name = "a device leaves its host in order and unused, or is lost"
    events = frozenset(
        ("host", event)
        for event in (*_FALLS, "table", "function-added", "driver-bound", "xid", "lost", "powered-off", "powered-on")
    )

    def __init__(self) -> None:
        self._there: dict[Key, bool] = {}
        """Devices with a PCI function, and whether they have their driver."""
        self._lost: dict[Key, Line] = {}
        self._xids: dict[Key, Line] = {}
        self._off: set[str] = set()

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge one line of a host."""
        if line.event == "table":
            self._boot(line)
            return
        if line.event in ("powered-off", "powered-on"):
            (self._off.add if line.event == "powered-off" else self._off.discard)(line.actor)
            return
        key = line.actor, str(line.fields["gpuid"]), str(line.fields.get("bdf", ""))
        if line.event == "xid":
            self._xids[key] = line
        elif line.event == "lost":
            yield from self._falls_off(line, key, state.bounds.lag_s)
        elif line.event in _FALLS:
            yield from self._goes(line, key, state)
        else:
            self._there[key] = line.event == "driver-bound"
            self._lost.pop(key, None)

    def _boot(self, line: Line) -> None:
        every: tuple[dict[Key, Any], ...] = (self._there, self._lost, self._xids)
        for known in every:
            for key in [key for key in known if key[0] == line.actor]:
                del known[key]
        self._off.discard(line.actor)
        for gpuid, row in line.fields["devices"].items():
            if row.get("healthy"):
                self._there[line.actor, gpuid, str(row.get("bdf", ""))] = True

    def _falls_off(self, line: Line, key: Key, lag_s: float) -> Iterator[Breach]:
        self._lost[key] = line
        xid = self._xids.get(key)
        is_reported = xid is not None and line.t - xid.t <= lag_s and xid.fields.get("xid") == _SURPRISE_XID
        if self._there.get(key) and line.fields.get("kind") == _GPU and not is_reported:
            what = f"{key[1]} fell off the bus of {_host(line)}, and its driver reports no XID {_SURPRISE_XID}"
            yield Breach((*key, str(line.number)), what, line, key[1], after=xid)

    def _goes(self, line: Line, key: Key, state: ObservedState) -> Iterator[Breach]:
        was_there = key in self._there
        if line.event == "function-removed":
            self._there.pop(key, None)
        elif line.event == "driver-unbound" and was_there:
            self._there[key] = False
        if key in self._lost or line.actor in self._off or not was_there:
            if line.event == "function-removed":
                self._lost.pop(key, None)
            return
        if state.bounds.lag_s == 0 and not state.excused(_ORDERLY, line.t):
            yield from self._taken_away(line, key, state)
        if line.event == "driver-unbound":
            yield from self._in_use(line, key[1], state)

    def _taken_away(self, line: Line, key: Key, state: ObservedState) -> Iterator[Breach]:
        device = state.world.devices.get(key[1])
        if device is not None and (device.host != _host(line) or not device.link):
            what = f"{line.event} of {key[1]} on {_host(line)}, which the chassis took away: it was never lost"
            yield Breach((*key, "not lost"), what, line, key[1], after=device.changed)

    def _in_use(self, line: Line, gpuid: str, state: ObservedState) -> Iterator[Breach]:
        if state.excused(_IN_USE, line.t, gpuid):
            return
        for held in state.world.holders(gpuid):
            if held.host == _host(line) and (held.uid, held.container) in state.world.started:
                what = f"the driver of {_host(line)} let go of {gpuid}, which {held.pod} ({held.container}) has open"
                yield Breach((gpuid, held.uid, "open"), what, line, gpuid, after=held.line)


def _host(line: Line) -> str:
    return line.actor.partition("/")[2]
