"""Where boards' telemetry is kept, so that energy and temperature go on when the chassis' process is started again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class TelemetryStore(Protocol):
    """One chassis' boards by device, as ``GpuTelemetry.state`` has them."""

    def load(self) -> Mapping[str, tuple[Mapping[str, Any], float]]:
        """Device -> what was saved last, and how many emulated seconds ago."""
        ...

    def save(self, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep boards' states of now, at once: a write to a disk costs the same for one and for a thousand."""
        ...

    def remove(self, device: str) -> None:
        """Forget a board."""
        ...
