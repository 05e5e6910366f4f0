"""What a step came to that was done in a live session."""

from __future__ import annotations

from msgspec import Struct


class StepAnswer(Struct, frozen=True):
    """``reason``: why it failed, "" where it did not. ``text``: what a step that reads has read, for people."""

    reason: str = ""
    text: str = ""

    @property
    def verdict(self) -> str:
        """passed or failed."""
        return "failed" if self.reason else "passed"
