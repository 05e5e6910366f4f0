"""Where boards' telemetry is kept, so that energy and temperature go on when the chassis' process is started again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class TelemetryStore(Protocol):
    """One chassis' boards by device, as ``GpuTelemetry.state`` has them."""

    def load(self) -> Mapping[str, tuple[Mapping[str, Any], float]]:
        """Device -> what was saved last, and how many emulated seconds ago."""
        ...

    def save(self, device: str, state: Mapping[str, Any]) -> None:
        """Keep a board's state of now."""
        ...

    def remove(self, device: str) -> None:
        """Forget a board."""
        ...


class ForgetfulStore:
    """Keeps nothing: the boards live as long as their values."""

    def load(self) -> Mapping[str, tuple[Mapping[str, Any], float]]:
        """Nothing."""
        return {}

    def save(self, device: str, state: Mapping[str, Any]) -> None:
        """Let it go."""

    def remove(self, device: str) -> None:
        """There is nothing to forget."""
