"""Invariant 70: the layers of a device on its host rise and fall one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

_ROSE = ("link-up", "function-added", "driver-bound", "nvml-visible")
_POWER = ("powered-off", "powered-on")
_FELL = ("link-down", "function-removed", "driver-unbound", "nvml-hidden")
_DEAD = frozenset({*_FELL, "link-up", "function-added", "lost"})
"""Of a device of which they speak no program has any use."""
_NUMBERED = frozenset({"driver-bound", "nvml-visible", "nvml-hidden", "driver-unbound"})
"""A GPU has a minor number from the first of them to the last."""
_ORDERLY = 10
"""A fault that excuses this law for all devices lets the hardware's lines come late."""


class HostLayers(Invariant[ObservedState]):
    """A layer comes up on the layer below it, and goes down before that layer (contract host.md section 1). Below all
    layers is the chassis, which has the device on a port of that host with its link up. The machine, which is on, is
    also below them. A device is on one host at a time. Its driver gives a GPU a minor number that no other GPU there
    has. The GPU has no minor number before and after that. A device with a missing layer is not healthy (contract
    host.md section 1). The law does not judge what was up and unhealthy before the host's first line of a device,
    because it is not known."""

    number = 70
    name = "the layers of a device on its host rise and fall in their order"
    events = frozenset({("host", event) for event in (*_ROSE, *_FELL, *_POWER, "table", "lost")})

    def __init__(self) -> None:
        self._heights: dict[tuple[str, ...], int] = {}
        """By host and device; of a function that is lost, by its address, too."""
        self._lines: dict[tuple[str, ...], Line] = {}
        self._dead: set[tuple[str, ...]] = set()
        """Functions that are lost. A process may hold one while the device comes back at another address."""
        self._off: dict[str, Line] = {}
        self._minors: dict[tuple[str, int], tuple[str, Line]] = {}
        """Host and minor number -> which GPU has it, and since when."""
        self._there: dict[tuple[str, str], Line] = {}
        """Which hosts have a link to which devices, and since when. A device that is lost may stay on the bus, dead."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge a layer that came up, or went."""
        if line.event == "table":
            self._begin(line)
            return
        if line.event in _POWER:
            self._power(line)
            return
        device = line.actor, str(line.fields.get("gpuid"))
        dead = *device, str(line.fields.get("bdf"))
        yield from self._shows(line, device[1])
        if line.event == "lost":
            self._there.pop(device, None)
            self._dead.add(dead)
            if device in self._heights:
                self._heights[dead], self._lines[dead] = self._heights.pop(device), self._lines.pop(device)
            return
        key: tuple[str, ...] = dead if dead in self._dead else device
        rises = line.event in _ROSE
        layer = (_ROSE if rises else _FELL).index(line.event)
        known, before = self._heights.get(key), self._lines.get(key)
        self._heights[key], self._lines[key] = layer + 1 if rises else layer, line
        due = layer if rises else layer + 1
        # An adapter has no NVML, so the layer above its driver is never seen to go.
        if known is not None and known != due:
            what = f"{line.event} of {key[1]} on {line.actor} where {_shown(known)}"
            yield Breach((*key, str(line.number)), what, line, key[1], after=before)
        elif rises:
            yield from self._on_nothing(line, key[1], state)
        if layer == 0 and rises:
            yield from self._elsewhere(line, key[1])
            self._there[device] = line
        elif layer == 0 and key == dead:
            self._dead.discard(dead)
            del self._heights[dead], self._lines[dead]
        elif layer == 0:
            self._there.pop(device, None)

    def _begin(self, line: Line) -> None:
        """Below what is healthy all is up; which layers of what is not are up, is not known."""
        self._heights = {key: height for key, height in self._heights.items() if key[0] != line.actor}
        self._there |= {(line.actor, gpuid): line for gpuid, row in line.fields["devices"].items() if row["healthy"]}
        self._dead = {key for key in self._dead if key[0] != line.actor}
        self._minors = {key: holder for key, holder in self._minors.items() if key[0] != line.actor}
        self._off.pop(line.actor, None)

    def _shows(self, line: Line, gpuid: str) -> Iterator[Breach]:
        """Yield what a line says of the device's health and number."""
        fields, what = line.fields, ""
        after: Line | None = self._lines.get((line.actor, gpuid))
        minor = fields.get("minor")
        if line.event in _DEAD and fields.get("healthy"):
            what = f"is called healthy by the line {line.event}"
        elif fields.get("kind") == "GPU" and "minor" in fields and line.event != "lost":
            held = None if minor is None else self._minors.get((line.actor, minor))
            if (minor is not None) != (line.event in _NUMBERED):
                what = f"has {'no minor number' if minor is None else f'minor number {minor}'} by the line {line.event}"
            elif line.event == "driver-bound" and held is not None:
                what, after = f"gets minor number {minor}, which {held[0]} has", held[1]
            elif line.event == "driver-bound" and minor is not None:
                self._minors[line.actor, minor] = gpuid, line
        if line.event == "driver-unbound" and minor is not None:
            self._minors.pop((line.actor, minor), None)
        if what:
            yield Breach(
                (line.actor, gpuid, str(line.number), "shown"), f"{gpuid} on {line.actor} {what}", line, gpuid, after
            )

    def _elsewhere(self, line: Line, gpuid: str) -> Iterator[Breach]:
        """Yield a device that comes up on one host while another has not let go of it."""
        for (actor, device), since in self._there.items():
            if device == gpuid and actor != line.actor and actor not in self._off:
                what = f"{gpuid} comes up on {line.actor}, and {actor} still has it"
                yield Breach((line.actor, gpuid, str(line.number)), what, line, gpuid, after=since)

    def _power(self, line: Line) -> None:
        if line.event == "powered-off":
            self._off[line.actor] = line
        else:
            self._off.pop(line.actor, None)

    def _on_nothing(self, line: Line, gpuid: str, state: ObservedState) -> Iterator[Breach]:
        """Yield a layer that comes up though the chassis, or the machine, has nothing below it."""
        host, device, below = line.actor.partition("/")[2], state.world.devices.get(gpuid), self._off.get(line.actor)
        if below is not None:
            yield Breach(
                (line.actor, gpuid, str(line.number)), f"{line.event} of {gpuid} on {host}, which is off", line
            )
            return
        if device is None or state.bounds.lag_s > 0 or state.excused(_ORDERLY, line.t):
            return  # Nobody's but its own; or lines may come in another order than things happened in.
        if device.host != host or not device.link:
            where = f"on {device.host or 'no port'}" if device.host != host else "without a link"
            what = f"{line.event} of {gpuid} on {host}, and the chassis has it {where}"
            yield Breach((line.actor, gpuid, str(line.number)), what, line, gpuid, after=device.changed)


def _shown(height: int) -> str:
    return "no layer is up" if height == 0 else f"{_ROSE[height - 1]} came last"
