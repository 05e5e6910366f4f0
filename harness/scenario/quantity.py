"""Spans of time and shares as scenarios write them."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SPAN = re.compile(r"^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|)$")


def seconds_of(value: Any) -> float:
    """Return seconds of ``30``, ``30s``, ``1.5m``, ``2h`` or ``250ms``.

    Raises ValueError saying what is allowed.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    match = _SPAN.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a span of time: seconds, or text such as 30s, 5m, 2h, 250ms")
    return float(match[1]) * _UNITS[match[2]]


def share_of(value: Any) -> float:
    """Return a share: ``10%`` is 0.1, a number is itself.

    Raises ValueError saying what is allowed.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    match = re.match(r"^(\d+(?:\.\d+)?)\s*%$", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a share: a number such as 0.1, or text such as 10%")
    return float(match[1]) / 100


Seconds = Annotated[
    float,
    BeforeValidator(seconds_of),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _SPAN.pattern}]},
        mode="validation",
    ),
]


def _above_zero(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("must be above 0")
    return seconds


TimeLimit = Annotated[Seconds, AfterValidator(_above_zero)]
"""A span in which something must come to its end."""

Share = Annotated[
    float,
    BeforeValidator(share_of),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^\d+(\.\d+)?\s*%$"}]},
        mode="validation",
    ),
]
