"""Bringing scores into 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping

MAX_SCORE = 100
"""Scores are 0 to this after normalisation."""


def spread_out(scores: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Return them in proportion to the largest (upstream helper.DefaultNormalizeScore); reversed, the largest gets
    0."""
    largest = max(scores.values(), default=0)
    if largest == 0:
        return dict.fromkeys(scores, MAX_SCORE if reverse else 0)
    parts = {node: MAX_SCORE * score // largest for node, score in scores.items()}
    return {node: MAX_SCORE - part for node, part in parts.items()} if reverse else parts


def stretched(scores: Mapping[str, int]) -> dict[str, int]:
    """The smallest becomes 0, the largest 100; all 0 when they are equal."""
    low, high = min(scores.values(), default=0), max(scores.values(), default=0)
    if low == high:
        return dict.fromkeys(scores, 0)
    return {node: MAX_SCORE * (score - low) // (high - low) for node, score in scores.items()}
