"""Measures that are made when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.kube.system.system_parts import ExposedMeasures

_MOST_WAITING = 1_000


class LateMeasures:
    """Keeps what is measured until it is first read, or there is much of it: prometheus_client takes half a second to
    import, a quarter of what ``mews up`` needs until it is ready."""

    def __init__(self, make: Callable[[], ExposedMeasures]) -> None:
        self._make = make
        self._made: ExposedMeasures | None = None
        self._waiting: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text form."""
        return self._real().exposition()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)

        def measure(*args: Any, **named: Any) -> None:
            if self._made is not None:
                getattr(self._made, name)(*args, **named)
                return
            self._waiting.append((name, args, named))
            if len(self._waiting) >= _MOST_WAITING:
                self._real()

        return measure

    def _real(self) -> ExposedMeasures:
        if self._made is None:
            self._made = self._make()
            for name, args, named in self._waiting:
                getattr(self._made, name)(*args, **named)
            self._waiting.clear()
        return self._made
