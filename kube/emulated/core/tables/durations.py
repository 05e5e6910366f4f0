"""Ages as kubectl shows them (k8s.io/apimachinery/pkg/util/duration)."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import seconds

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


# Complex: one rung for each unit, as upstream's HumanDuration.
def human(span_s: float) -> str:  # noqa: C901
    """``119s``, ``2m``, ``9m3s``, ``47h``, ``2d1h``, ``3y``."""
    # The ladder of duration.HumanDuration (apimachinery), rung by rung: the rungs differ in the unit and in whether a
    # second unit is shown, so a table would need as many columns as there are cases.
    total = int(span_s)
    if total < -1:
        return "<invalid>"
    if total < 0:
        return "0s"
    if total < 2 * _MINUTE:
        return f"{total}s"
    if total < 10 * _MINUTE:
        return _pair(total, _MINUTE, "m", 1, "s")
    if total < 3 * _HOUR:
        return f"{total // _MINUTE}m"
    if total < 8 * _HOUR:
        return _pair(total, _HOUR, "h", _MINUTE, "m")
    if total < 2 * _DAY:
        return f"{total // _HOUR}h"
    if total < 8 * _DAY:
        return _pair(total, _DAY, "d", _HOUR, "h")
    if total < 2 * _YEAR:
        return f"{total // _DAY}d"
    if total < 8 * _YEAR:
        return _pair(total, _YEAR, "y", _DAY, "d")
    return f"{total // _YEAR}y"


def _pair(total: int, unit: int, name: str, smaller: int, smaller_name: str) -> str:
    rest = total % unit // smaller
    return f"{total // unit}{name}{rest}{smaller_name}" if rest else f"{total // unit}{name}"


def age(stamp: Any, now_s: float) -> str:
    """Return how long ago a timestamp was, ``<unknown>`` without one."""
    if not stamp:
        return UNKNOWN
    try:
        return human(now_s - seconds(str(stamp)))
    except ValueError:
        return UNKNOWN
