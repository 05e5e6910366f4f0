"""Counts of what changed in a host's state, by which readers know that what they remember is old."""

from __future__ import annotations


class StateVersions:
    """``all`` counts every change that a reader can see."""

    def __init__(self) -> None:
        self.all = 0
        self._uses = 0

    @property
    def hardware(self) -> int:
        """``all`` without who has devices open: another one once sysfs or the driver's files may have changed."""
        return self.all - self._uses

    def changed(self) -> None:
        """Note that something changed."""
        self.all += 1

    def use_changed(self) -> None:
        """Note that somebody opened or closed devices, and nothing else changed."""
        self.all += 1
        self._uses += 1
