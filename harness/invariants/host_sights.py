"""Invariant 96: a host sees what its chassis does to its devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from mews.harness.invariants.declared_faults import HELD_BACK
from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_SEEN = {"attached": "host", "detached": "old_host", "link-down": "host", "edited": "old_host"}
"""What a chassis does to a device -> the field that names the host that sees it."""


class _Owed(Struct):
    """What a host is to see, and the line that came in the place of its own."""

    act: Line
    follower: Line | None = None


class HostSights(Invariant[ObservedState]):
    """A running host sees that a device is attached or detached, or that its link goes down. Its line about this comes
    in the same moment, because it gets a hot-plug interrupt (contract host.md). The breach names the line that came in
    its place. A host shows the devices that it has from the start (its line ``table``) before its node is there. These
    are its built-in devices, and the devices that its chassis have on its ports. The line of a fault on a layer of the
    host counts as the host's line. The law does not judge a chassis whose events a fault holds back."""

    number = 96
    name = "a host sees what its chassis does to its devices"
    ours_alone = True

    def __init__(self) -> None:
        self._off: set[str] = set()
        self._held_back: set[str] = set()
        self._links_down: dict[str, set[str]] = {}
        """Chassis -> devices. What is attached meanwhile is seen when its link comes up."""
        self._owed: dict[tuple[str, str], _Owed] = {}
        """By host and device; all of one moment."""

    def on_line(self, line: Line, state: ObservedState) -> Iterable[Breach]:
        """Look at what follows on a chassis' line; of all lines, so that most must cost nothing."""
        found: Iterable[Breach] = ()
        if self._owed:
            found = self._follow(line)
        if line.layer == "chassis":
            self._chassis(line, state)
        elif line.layer == "host":
            self._note_power(line.actor.partition("/")[2], line)
            if line.event == "table":
                found = (*found, *self._shown(line, state))
        elif line.layer == "fault" and line.fields["kind"] == HELD_BACK:
            self._held_back.add(line.actor)
        elif line.event == "created" and line.actor.startswith("node/"):
            found = (*found, *self._node(line, state))
        return found

    def _node(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        host = line.actor.partition("/")[2]
        if host in state.world.seen or state.bounds.lag_s:
            return
        if any(device.host == host for device in state.world.devices.values()):
            yield Breach((host, "table"), f"node {host} is there, and its host has shown no table of its devices", line)

    def _shown(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Compare what a host has from the start with what it is to have, where that is known."""
        own = state.bounds.built_in.get(line.actor)
        if own is None or state.bounds.lag_s or self._held_back:
            return
        host = line.actor.partition("/")[2]
        there = {*own, *(each.gpuid for each in state.world.devices.values() if each.host == host and each.link)}
        for gpuid in sorted(there ^ line.fields["devices"].keys()):
            what = f"shows {gpuid}, which it does not have" if gpuid not in there else f"does not show {gpuid}"
            yield Breach((host, gpuid, "shown", str(line.number)), f"host {host} {what}", line, gpuid)

    def _follow(self, line: Line) -> Iterable[Breach]:
        for owed in self._owed.values():
            owed.follower = owed.follower or line
        if all(line.t == owed.act.t for owed in self._owed.values()):
            if line.layer == "host" or (line.layer == "fault" and line.actor.startswith("host/")):
                self._owed.pop((line.actor.partition("/")[2], line.fields.get("gpuid", "")), None)
            return ()
        return list(self._missing())

    def _missing(self) -> Iterator[Breach]:
        for (host, gpuid), owed in self._owed.items():
            if owed.act.actor not in self._held_back:
                what = f"{gpuid} is {owed.act.event} at {owed.act.actor}, and host {host} sees nothing of it"
                yield Breach((host, gpuid, str(owed.act.number)), what, owed.follower, gpuid, after=owed.act)
        self._owed.clear()

    def _is_dark(self, line: Line) -> bool:
        """Return whether the line is about a device whose link is down before and after it."""
        down, gpuid = self._links_down.setdefault(line.actor, set()), line.fields.get("gpuid", "")
        if line.event in ("link-up", "inserted"):
            down.discard(gpuid)
        elif line.event == "link-down":
            down.add(gpuid)
            return False
        return gpuid in down

    def _note_power(self, host: str, line: Line) -> None:
        if line.event == "powered-off":
            self._off.add(host)
        elif line.event == "powered-on":
            self._off.discard(host)

    def _chassis(self, line: Line, state: ObservedState) -> None:
        if self._is_dark(line):
            return
        host = line.fields.get(_SEEN.get(line.event, ""))
        if not host or host in self._off or state.bounds.lag_s or line.actor in self._held_back:
            return
        if line.event == "edited" and line.fields.get("host") == host:
            return
        known = state.world.seen.get(host)
        seen = known.get(line.fields["gpuid"]) if known is not None else None
        if known is not None and (line.event == "attached" or (seen is not None and seen.healthy)):
            self._owed[host, line.fields["gpuid"]] = _Owed(line)
