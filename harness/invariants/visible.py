"""Invariant 4: node allocatable <= healthy devices that NVML shows <= the chassis' table, each within its bound."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant

Key = tuple[str, ...]


class Visible(Invariant[ObservedState]):
    """A host's allocatable may exceed what it sees for ``allocatable_s``; what it sees may outlast the chassis' table
    for ``lag_s``. Judged for hosts that tell what they see."""

    number = 4
    name = "allocatable <= healthy devices that NVML shows <= chassis table"

    def __init__(self) -> None:
        self._since: dict[Key, tuple[float, Line]] = {}

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        if line.layer in ("host", "chassis") or (line.layer == "api" and line.actor.startswith("node/")):
            wrong = dict(self._wrong(state))
            self._since = {key: self._since.get(key, (line.t, line)) for key in wrong}
        return iter(())

    def on_time(self, t: float, state: ObservedState) -> Iterator[Breach]:
        """Judge the clocks."""
        if not self._since:
            return
        wrong = dict(self._wrong(state))
        for key, (since, line) in self._since.items():
            bound_s = state.bounds.lag_s + (state.bounds.allocatable_s if key[0] == "allocatable" else 0.0)
            if t - since <= bound_s or key not in wrong:
                continue
            what, devices = wrong[key]
            clock = max(state.windows.clock_from(self.number, since, device) for device in (None, *devices))
            if t - clock > bound_s:
                yield Breach((*key, str(line.number)), f"{what} for {t - since:.1f} s", line)

    def _wrong(self, state: ObservedState) -> Iterator[tuple[Key, tuple[str, tuple[str, ...]]]]:
        """What does not hold now, and the devices whose faults may be the cause."""
        world = state.world
        for host, seen in world.seen.items():
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
