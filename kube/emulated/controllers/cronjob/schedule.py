"""Schedules as cron writes them (github.com/robfig/cron, as upstream reads them). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

_NAMED: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_HORIZON = timedelta(days=5 * 366)


class Schedule(Struct, frozen=True):
    """Minutes, hours, days, months and weekdays (0: Sunday) at which it is time."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    zone: tzinfo

    def after(self, unix_s: float) -> float | None:
        """Return the first time after that one in unix seconds; None when there is none within five years."""
        start = datetime.fromtimestamp(unix_s, self.zone).replace(second=0, microsecond=0)
        moment, end = start + timedelta(minutes=1), start + _HORIZON
        while moment < end:
            if moment.month not in self.months or not self._is_day(moment):
                moment = (moment + timedelta(days=1)).replace(hour=0, minute=0)
            elif moment.hour not in self.hours:
                moment = (moment + timedelta(hours=1)).replace(minute=0)
            elif moment.minute not in self.minutes:
                moment += timedelta(minutes=1)
            else:
                return moment.timestamp()
        return None

    def _is_day(self, moment: datetime) -> bool:
        """Day of the month and of the week: both, where one of them is any; else either."""
        by_day, by_week = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return (by_day and by_week) if self.any_day or self.any_weekday else (by_day or by_week)

    def last(self, since: float, now: float) -> float | None:
        """Return the last time after ``since`` that is not after ``now``; None when there is none."""
        found, moment = None, self.after(since)
        while moment is not None and moment <= now:
            found = moment
            moment = self.after(moment)
        return found


def parse(text: str, zone: str | None = None) -> Schedule:
    """Five fields, or a name such as ``@hourly``; ``zone``: of the IANA database, UTC without one.

    Raises ValueError for what cannot be read.
    """
    fields = _NAMED.get(text.strip(), text).split()
    if len(fields) != len(_BOUNDS):
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    names: tuple[tuple[str, ...], ...] = ((), (), (), _MONTHS, _DAYS)
    values = [_field(field, bounds, known) for field, bounds, known in zip(fields, _BOUNDS, names, strict=True)]
    minutes, hours, days, months, weekdays = values
    return Schedule(minutes, hours, days, months, weekdays, _is_any(fields[2]), _is_any(fields[4]), _zone(zone))


def _is_any(field: str) -> bool:
    """Return whether a field leaves the choice to the others; every second day does not."""
    return any(part.removesuffix("/1") in ("*", "?") for part in field.split(","))


def _zone(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name}") from None


def _field(text: str, bounds: tuple[int, int], names: tuple[str, ...]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        low = bounds[0] if first in ("*", "?") else _number(first, bounds, names)
        open_end = first in ("*", "?") or (step and not last)
        high = bounds[1] if open_end else _number(last or first, bounds, names)
        pace = int(step) if step.isdecimal() else 1 if not step else 0
        if low < bounds[0] or high > bounds[1] or low > high or pace == 0:
            raise ValueError(f"{part}: must be within {bounds[0]} to {bounds[1]}")
        found |= set(range(low, high + 1, pace))
    return frozenset(found)


def _number(text: str, bounds: tuple[int, int], names: tuple[str, ...]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + bounds[0]
    if not text.isdecimal():
        raise ValueError(f"failed to parse int from {text}")
    return int(text)
