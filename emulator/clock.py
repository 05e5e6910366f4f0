"""The emulator's own clock in wall time: the only place of ``mews.emulator`` that reads a clock or sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path


class EmulatedClock:
    """Emulated seconds since it was made, passing ``speed`` times as fast as real ones. Thread-safe."""

    def __init__(self, speed: float = 1.0) -> None:
        self._changed = threading.Condition()
        self._speed = _checked(speed)
        self._real_s = time.monotonic()
        self._emulated_s = 0.0
        self._stopped = False

    def now(self) -> float:
        """Emulated seconds; never go back."""
        with self._changed:
            return self._now()

    def _now(self) -> float:
        return self._emulated_s + (time.monotonic() - self._real_s) * self._speed

    @property
    def speed(self) -> float:
        """Emulated seconds per real second."""
        return self._speed

    @speed.setter
    def speed(self, speed: float) -> None:
        with self._changed:
            checked = _checked(speed)
            self._emulated_s, self._real_s = self._now(), time.monotonic()
            self._speed = checked
            self._changed.notify_all()

    def anchor(self) -> tuple[float, float, float]:
        """(real seconds of CLOCK_MONOTONIC, emulated seconds then, speed since)."""
        with self._changed:
            return self._real_s, self._emulated_s, self._speed

    def wait_until(self, due_s: Callable[[], float | None]) -> bool:
        """Sleep until the emulated time that ``due_s`` tells (None: for ever), asked anew after each ``stir``.

        False if the clock was stopped instead.
        """
        with self._changed:
            while not self._stopped:
                due = due_s()
                left_s = None if due is None else (due - self._now()) / self._speed
                if left_s is not None and left_s <= 0:
                    return True
                self._changed.wait(left_s if left_s is None else min(left_s, threading.TIMEOUT_MAX))
            return False

    def pause(self, real_s: float) -> bool:
        """Sleep until something stirs, at most that many real seconds. False once the clock was stopped."""
        with self._changed:
            if not self._stopped:
                self._changed.wait(real_s)
            return not self._stopped

    def real_s(self) -> float:
        """Real seconds since some point of the past."""
        return time.monotonic()

    def stir(self) -> None:
        """Due times may have changed: whoever waits asks for its own again."""
        with self._changed:
            self._changed.notify_all()

    def stop(self) -> None:
        """End all waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class StoppedClock(EmulatedClock):
    """One that shows the same emulated second for ever: what is due later never comes."""

    def __init__(self, at_s: float) -> None:
        super().__init__()
        self._emulated_s = at_s

    def _now(self) -> float:
        return self._emulated_s

    def wait_until(self, due_s: Callable[[], float | None]) -> bool:
        """Return whether that time has come; it does not wait for it."""
        due = due_s()
        return due is not None and due <= self.now()


def _checked(speed: float) -> float:
    if not 0 < speed <= 1e6:
        raise ValueError(f"speed {speed}: must be above 0 and at most 1000000")
    return float(speed)


def unix_s() -> float:
    """Real seconds since 1970."""
    return time.time()


def boot_id() -> str:
    """Names this machine's run: within it CLOCK_MONOTONIC means the same to all processes."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def monotonic_ns() -> int:
    """CLOCK_MONOTONIC of this machine, the same in all its processes."""
    return time.monotonic_ns()
