"""A layer that does not come up, or late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mews.emulator.hardware.host_profiles import ARROWS
from mews.emulator.host.faults.bench import HostHandle
from mews.emulator.host.function import Function

Arrow = Literal["link", "function", "driver", "node", "nvml"]


@dataclass(frozen=True, slots=True)
class LayerCut:
    """The arrow into layer ``arrow`` is cut until the fault is cleared; then what waited goes on."""

    arrow: Arrow

    kind: ClassVar[str] = "layer-cut"
    on: ClassVar[tuple[str, ...]] = ARROWS
    count: ClassVar[int | None] = None
    may_break: ClassVar[tuple[int, ...]] = (4, 8)
    grace_s: ClassVar[float] = float("inf")

    def cuts(self, function: Function, arrow: str) -> bool:
        """Return its own arrow."""
        return arrow == self.arrow

    def undo(self, bench: HostHandle) -> None:
        """Everything tries again."""
        bench.retry()


@dataclass(frozen=True, slots=True)
class LayerSlow:
    """Layer ``arrow`` takes ``delay_s`` longer to come up."""

    arrow: Arrow
    delay_s: float

    kind: ClassVar[str] = "layer-slow"
    on: ClassVar[tuple[str, ...]] = ARROWS
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (4, 8)

    @property
    def grace_s(self) -> float:
        """As long as the layer takes longer."""
        return self.delay_s

    def slows(self, function: Function, arrow: str) -> float:
        """Return it on its own arrow."""
        return self.delay_s if arrow == self.arrow else 0.0


@dataclass(frozen=True, slots=True)
class DriverFails:
    """The driver's probe fails, ``count`` times; a write to ``bind``, a rescan after a remove, or clearing the fault
    tries again."""

    kind: ClassVar[str] = "driver-fails"
    on: ClassVar[tuple[str, ...]] = ("driver",)
    count: ClassVar[int | None] = 1
    may_break: ClassVar[tuple[int, ...]] = (8,)
    grace_s: ClassVar[float] = float("inf")

    def cuts(self, function: Function, arrow: str) -> bool:
        """Return every bind."""
        return arrow == "driver"

    def undo(self, bench: HostHandle) -> None:
        """Everything tries again."""
        bench.retry()
