"""What every invariant looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.fault_windows import FaultWindows
from mews.harness.invariants.observed_hardware import ObservedHardware
from mews.kube.system.invariant import Holds, Invariant, ObservedHolding
from mews.kube.system.system import Pooled


class JudgedSystems(Struct, frozen=True):
    """What the systems of a run declare to its judge: what they pool, to which schedulerNames they answer, which of
    their pods hold which devices, which announced devices are parts of which others (``parts_known``: why containers
    may be told of others, by design), why their pods may have devices that kubelets give to others
    (``outside_known``), and their own laws."""

    pooled: tuple[Pooled, ...] = ()
    schedulers: tuple[str, ...] = ()
    holds: tuple[Holds, ...] = ()
    part_of: tuple[Callable[[str], str], ...] = ()
    parts_known: str = ""
    outside_known: str = ""
    stands_for: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    other_units: Mapping[str, str] = field(default_factory=dict)
    invariants: tuple[Invariant[Any], ...] = ()


class ObservedState(Struct, frozen=True):
    """The world after the line at hand: a ``RunState``, and what only the harness's own laws look at."""

    bounds: Bounds = field(default_factory=Bounds)
    systems: JudgedSystems = field(default_factory=JudgedSystems)
    world: ObservedHardware = field(default_factory=ObservedHardware)
    windows: FaultWindows = field(default_factory=FaultWindows)

    def bound_s(self, name: str) -> float | None:
        """Return that bound of this run; None: no limit."""
        return self.bounds.named(name)

    def live_holdings(self) -> Sequence[ObservedHolding]:
        """Return what the containers of live pods hold."""
        return tuple(self.world.all_holdings())

    def excused(self, invariant: int, t: float, device: str | None = None) -> bool:
        """Return whether a breach seen at that time may be a fault's doing."""
        return self.windows.excused(invariant, t, device)

    def clock_from(self, invariant: int, since: float, device: str | None = None) -> float:
        """Return when the clock of a bound starts that would start at ``since``."""
        return self.windows.clock_from(invariant, since, device)
