"""How long an operation takes: a distribution as data, drawn from an injected stream.

In files a latency is a number (seconds, always the same) or one of ``{fixed: s}``, ``{uniform: [low, high]}``,
``{normal: {mean, sd, min, max}}``, ``{gamma: {shift, shape, scale, max}}``; all in seconds.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct


class Latency(Protocol):
    """A distribution of durations."""

    @property
    def shortest_s(self) -> float:
        """No draw is shorter."""
        ...

    @property
    def longest_s(self) -> float:
        """No draw is longer."""
        ...

    def draw(self, rng: random.Random) -> float:
        """Draw one duration, in seconds."""
        ...


class Fixed(Struct, frozen=True):
    """A duration that is the same every time."""

    seconds: float

    @property
    def shortest_s(self) -> float:
        """No draw is shorter."""
        return self.seconds

    @property
    def longest_s(self) -> float:
        """No draw is longer."""
        return self.seconds

    def draw(self, rng: random.Random) -> float:
        """Draw one duration, in seconds."""
        return self.seconds


class Uniform(Struct, frozen=True):
    """A duration that is equally likely anywhere between two bounds."""

    low: float
    high: float

    @property
    def shortest_s(self) -> float:
        """No draw is shorter."""
        return self.low

    @property
    def longest_s(self) -> float:
        """No draw is longer."""
        return self.high

    def draw(self, rng: random.Random) -> float:
        """Draw one duration, in seconds."""
        return rng.uniform(self.low, self.high)


class Normal(Struct, frozen=True):
    """A bell, clipped at its bounds."""

    mean: float
    sd: float
    min: float
    max: float

    @property
    def shortest_s(self) -> float:
        """No draw is shorter."""
        return self.min

    @property
    def longest_s(self) -> float:
        """No draw is longer."""
        return self.max

    def draw(self, rng: random.Random) -> float:
        """Draw one duration, in seconds."""
        return min(max(rng.normalvariate(self.mean, self.sd), self.min), self.max)


class Gamma(Struct, frozen=True):
    """At least ``shift``, with a tail to the right, clipped at ``max``."""

    shift: float
    shape: float
    scale: float
    max: float

    @property
    def shortest_s(self) -> float:
        """No draw is shorter."""
        return min(self.shift, self.max)

    @property
    def longest_s(self) -> float:
        """No draw is longer."""
        return self.max

    def draw(self, rng: random.Random) -> float:
        """Draw one duration, in seconds."""
        return min(self.shift + rng.gammavariate(self.shape, self.scale), self.max)


SHAPES: dict[str, type[Normal] | type[Gamma]] = {"normal": Normal, "gamma": Gamma}
ALLOWED = (
    "seconds >= 0, {fixed: s}, {uniform: [low, high]}, {normal: {mean, sd, min, max}} "
    "or {gamma: {shift, shape, scale, max}}"
)


def parse_latency(value: Any) -> Latency:
    """Return the distribution that a file's value describes.

    Raises ValueError naming what is allowed.
    """
    if _seconds(value):
        return Fixed(float(value))
    if isinstance(value, Mapping) and len(value) == 1:
        (shape, arguments), *_ = value.items()
        if shape == "fixed" and _seconds(arguments):
            return Fixed(float(arguments))
        if shape == "uniform" and isinstance(arguments, list | tuple) and len(arguments) == 2:
            low, high = arguments
            if _seconds(low) and _seconds(high) and low <= high:
                return Uniform(float(low), float(high))
        if shape in SHAPES and isinstance(arguments, Mapping):
            made = SHAPES[shape]
            names = made.__struct_fields__
            if sorted(arguments) == sorted(names) and all(_seconds(arguments[name]) for name in names):
                return made(*(float(arguments[name]) for name in names))
    raise ValueError(f"latency {value!r}: must be {ALLOWED}")


def _seconds(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 <= value < 1e9
