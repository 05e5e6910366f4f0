"""Dates at the beginning of log lines: RFC 3339, klog's and journald's; the latter two lack a year and a zone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

_ISO = re.compile(r"^\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s?(Z|UTC|[+-]\d\d:?\d\d)?\]?[\s:,|]*")
_KLOG = re.compile(r"^[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d\.\d+)\s+")
_JOURNAL = re.compile(r"^([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d:\d\d:\d\d)(\.\d+)? ")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_QUARTER_S = 900.0
"""Zones differ by quarters of an hour."""


def dated(line: str, year: int) -> tuple[float | None, str]:
    """Unix seconds and the rest of the line; None for a line without a date. What names no zone is taken as UTC."""
    if found := _ISO.match(line):
        zone = found[2]
        offset = "+00:00" if zone in (None, "Z", "UTC") else zone
        return _unix(f"{found[1].replace(',', '.').replace(' ', 'T')}{offset}"), line[found.end() :]
    if found := _KLOG.match(line):
        return _unix(f"{year}-{found[1]}-{found[2]}T{found[3]}+00:00"), line[found.end() :]
    if (found := _JOURNAL.match(line)) and found[1] in _MONTHS:
        month = _MONTHS.index(found[1]) + 1
        return _unix(f"{year}-{month:02}-{int(found[2]):02}T{found[3]}{found[4] or ''}+00:00"), line[found.end() :]
    return None, line


def zone_offset(times: Iterable[float], began: float, ended: float) -> float | None:
    """Return how much to add to times of an unknown zone so that they meet the span: whole quarters of an hour. 0.0
    where they do already; None where no zone of the earth explains the distance."""
    ordered = sorted(times)
    if not ordered or (ordered[0] <= ended and ordered[-1] >= began):
        return 0.0
    distance = ended - ordered[-1]
    offset = round(distance / _QUARTER_S) * _QUARTER_S
    return offset if abs(offset) <= 14 * 3600 else None


def year_of(unix_s: float) -> int:
    """Return the year of a moment, in UTC."""
    return datetime.fromtimestamp(unix_s, UTC).year


def _unix(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
