"""A thread that lets things happen although nobody looks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from mews.emulator.clock import EmulatedClock


class SettlingThread:
    """Calls ``settle`` each time that something is due on the clock; ``next_due`` tells when, None for nothing."""

    def __init__(
        self, clock: EmulatedClock, *, next_due: Callable[[], float | None], settle: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._next_due = next_due
        self._settle = settle
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end, which comes once the clock is stopped."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._clock.wait_until(self._next_due):
            self._settle()


def earliest(dues: Iterable[float | None]) -> float | None:
    """Return the first of the times at which something is due; None where nothing is."""
    return min((due for due in dues if due is not None), default=None)
