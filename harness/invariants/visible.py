"""Invariant 4: node allocatable <= healthy devices that NVML shows <= the chassis' table, each within its bound."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

Key = tuple[str, ...]
Finding = tuple[str, tuple[str, ...]]
"""What does not hold, and the devices whose faults may be the cause."""


class Visible(Invariant[ObservedState]):
    """A host's allocatable may exceed what the host sees for at most ``allocatable_s``. What the host sees may outlast
    the chassis' table for at most ``lag_s``. The law judges hosts that report what they see."""

    number = 4
    name = "allocatable <= healthy devices that NVML shows <= chassis table"
    of_time = True

    def __init__(self) -> None:
        self._since: dict[Key, tuple[float, Line]] = {}
        self._wrong: dict[str, dict[Key, Finding]] = {}
        """Host -> what does not hold there now, of those where anything does not."""
        self._ranks: dict[str, int] = {}
        """Host -> its place in the order in which hosts began to tell."""

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        hosts = self._concerned(line, state)
        for host in hosts:
            self._wrong.pop(host, None)
            if wrong := dict(_wrong_on(host, state)):
                self._wrong[host] = wrong
        if hosts and (self._wrong or self._since):
            keys = (key for host in sorted(self._wrong, key=self._ranks.__getitem__) for key in self._wrong[host])
            self._since = {key: self._since.get(key, (line.t, line)) for key in keys}
        return iter(())

    def _concerned(self, line: Line, state: ObservedState) -> Collection[str]:
        """Return the hosts of which a line may change what holds."""
        seen = state.world.seen
        if line.layer == "host" or (line.layer == "api" and line.actor.startswith("node/")):
            host = line.actor.partition("/")[2]
            if host in seen:
                self._ranks.setdefault(host, len(self._ranks))
            return (host,) if host in seen else ()
        if line.layer != "chassis":
            return ()
        if line.event == "table":
            return seen
        gpuid = line.fields.get("gpuid")
        return [host for host, devices in seen.items() if gpuid in devices]

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        for key, (since, line) in self._since.items():
            bound_s = state.bounds.lag_s + (state.bounds.allocatable_s if key[0] == "allocatable" else 0.0)
            if t - since <= bound_s:
                continue
            what, devices = self._wrong[key[1]][key]
            clock = max(state.windows.clock_from(self.number, since, device) for device in (None, *devices))
            if t - clock > bound_s:
                yield Breach((*key, str(line.number)), f"{what} for {t - since:.1f} s", line)


def _wrong_on(host: str, state: ObservedState) -> Iterator[tuple[Key, Finding]]:
    """Yield what does not hold on a host now."""
    world = state.world
    seen = world.seen[host]
    healthy = [gpuid for gpuid, device in seen.items() if device.healthy]
    for pooled in state.systems.pooled:
        shown = sum(seen[gpuid].kind == pooled.device_kind for gpuid in healthy)
        offered = world.offered.get(host, {}).get(pooled.resource, 0)
        if offered > shown:
            what = f"node {host} has {offered} {pooled.resource} allocatable, NVML shows {shown} healthy"
            yield ("allocatable", host, pooled.resource), (what, tuple(sorted(set(seen) - set(healthy))))
    for gpuid in healthy:
        where = world.devices.get(gpuid)
        if where is not None and where.host != host:
            what = f"NVML of {host} shows {gpuid}, which the chassis has on {where.host or 'no port'}"
            yield ("seen", host, gpuid), (what, (gpuid,))
