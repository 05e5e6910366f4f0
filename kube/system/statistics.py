"""How sure a mean over seeds is. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean, stdev

_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10,
        2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05)  # fmt: skip
"""Student's t for 95 % on both sides, from one degree of freedom on."""
_NORMAL95 = 1.96
_DRAWS = 10_000


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean; nan for fewer than two values."""
    if len(values) < 2:
        return math.nan
    freedom = len(values) - 1
    t = _T95[freedom - 1] if freedom <= len(_T95) else _NORMAL95 + 2.4 / freedom
    return t * stdev(values) / math.sqrt(len(values))


def sign_test(differences: Sequence[float], *, seed: int = 1) -> float:
    """Return how probable a mean difference at least as large is where there is none: in so many of all ways to turn
    the pairs round, drawn by chance (at least one in 10,001)."""
    rng = random.Random(seed)
    there = abs(fmean(differences)) - 1e-9
    drawn = sum(abs(fmean(rng.choice((value, -value)) for value in differences)) >= there for _ in range(_DRAWS))
    return (drawn + 1) / (_DRAWS + 1)


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean, and between which values it lies with 95 %; nan for fewer than two values."""
    mean, half = fmean(values), half_width(values)
    return mean, mean - half, mean + half
