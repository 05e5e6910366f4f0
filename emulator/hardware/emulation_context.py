"""What one run of the emulator goes by, made once where it is started."""

from __future__ import annotations

import random

from msgspec import Struct


class EmulationContext(Struct, frozen=True):
    """The seed of all chance and, in wall-clock time, emulated seconds per real second."""

    seed: int | str = 0
    speed: float = 1.0

    def rng(self, actor: str) -> random.Random:
        """Return an actor's own stream of chance."""
        return random.Random(f"{self.seed}/{actor}")


BY_DEFAULT = EmulationContext()
"""Seed 0, in real time."""
