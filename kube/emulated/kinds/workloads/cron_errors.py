"""What is wrong with CronJobs (pkg/apis/batch/validation) and their schedules (github.com/robfig/cron)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.spec_errors import at_least_zero
from mews.kube.emulated.kinds.workloads.job_errors import job_template_errors

_CONCURRENCY = ("Allow", "Forbid", "Replace")
_LONGEST_NAME = 52
_NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_DURATION = re.compile(r"[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+|[-+]?0")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES: tuple[tuple[str, ...], ...] = ((), (), (), _MONTHS, _DAYS)
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


class ScheduleError(ValueError):
    """What cannot be read of a schedule."""


def cron_job_errors(cron_job: Object) -> list[FieldError]:
    """Return what is wrong with a CronJob."""
    found, name = list(_spec_errors(cron_job["spec"], None)), cron_job["metadata"].get("name", "")
    if len(name) > _LONGEST_NAME:
        found.append(refusals.bad("metadata.name", name, f"must be no more than {_LONGEST_NAME} characters"))
    return found


def cron_job_change_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Return what is wrong with a CronJob that is updated; an old name may stay too long."""
    return [] if subresource else list(_spec_errors(new["spec"], old["spec"]))


def _spec_errors(spec: Mapping[str, Any], before: Mapping[str, Any] | None) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    if not schedule:
        yield refusals.required("spec.schedule")
    else:
        yield from _schedule_errors(schedule, zone, zone_in_it="TZ" in (before or {}).get("schedule", ""))
    yield from at_least_zero("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if zone is not None and (before is None or before.get("timeZone") != zone):
        yield from _zone_errors(zone)
    policy = spec.get("concurrencyPolicy", "")
    if not policy:
        yield refusals.required("spec.concurrencyPolicy")
    else:
        yield from common.option("spec.concurrencyPolicy", policy, _CONCURRENCY)
    yield from job_template_errors(spec.get("jobTemplate") or {}, "spec.jobTemplate")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from at_least_zero(f"spec.{name}", spec.get(name))


def _schedule_errors(schedule: str, zone: str | None, *, zone_in_it: bool) -> Iterator[FieldError]:
    try:
        _check(schedule)
    except ScheduleError as error:
        yield refusals.bad("spec.schedule", schedule, str(error))
    if "TZ" not in schedule:
        return
    if zone_in_it and zone is not None:
        text = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield refusals.bad("spec.schedule", schedule, text)
    elif not zone_in_it:
        text = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield refusals.bad("spec.schedule", schedule, text)


def _zone_errors(zone: str) -> Iterator[FieldError]:
    if not zone:
        yield refusals.bad("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            yield refusals.bad("spec.timeZone", zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield refusals.bad("spec.timeZone", zone, text)
        if zone == "Local":
            return
    if not _is_zone(zone):
        yield refusals.bad("spec.timeZone", zone, f"unknown time zone {zone}")


def _is_zone(zone: str) -> bool:
    try:
        return bool(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False


def _check(schedule: str) -> None:
    """Raises ``ScheduleError`` with the first thing that cannot be read."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        head, _, schedule = schedule.partition(" ")
        zone = head.partition("=")[2]
        if zone not in ("", "Local") and not _is_zone(zone):
            raise ScheduleError(f"provided bad location {zone}: unknown time zone {zone}")
        schedule = schedule.strip()
    if schedule.startswith("@"):
        _check_named(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly {len(_BOUNDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds, names in zip(fields, _BOUNDS, _NAMES, strict=True):
        for part in filter(None, field.split(",")):
            _check_range(part, bounds, names)


def _check_named(schedule: str) -> None:
    if schedule.startswith(_EVERY):
        duration = schedule.removeprefix(_EVERY)
        if not _DURATION.fullmatch(duration):
            text = f'time: invalid duration "{duration}"'
            raise ScheduleError(f"failed to parse duration {schedule}: {text}")
    elif schedule not in _NAMED:
        raise ScheduleError(f"unrecognized descriptor: {schedule}")


def _check_range(part: str, bounds: tuple[int, int], names: tuple[str, ...]) -> None:
    span, *steps = part.split("/")
    first, *last = span.split("-")
    low, high = bounds
    if first not in ("*", "?"):
        low = high = _number(first, bounds, names)
        if len(last) == 1:
            high = _number(last[0], bounds, names)
        elif last:
            raise ScheduleError(f"too many hyphens: {part}")
    step = 1
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {part}")
    if steps:
        step = _whole(steps[0])
        high = high if last else bounds[1]
    if low < bounds[0]:
        raise ScheduleError(f"beginning of range ({low}) below minimum ({bounds[0]}): {part}")
    if high > bounds[1]:
        raise ScheduleError(f"end of range ({high}) above maximum ({bounds[1]}): {part}")
    if low > high:
        raise ScheduleError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {part}")


def _number(text: str, bounds: tuple[int, int], names: tuple[str, ...]) -> int:
    return names.index(text.lower()) + bounds[0] if text.lower() in names else _whole(text)


def _whole(text: str) -> int:
    if not re.fullmatch("[-+]?[0-9]+", text):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if int(text) < 0:
        raise ScheduleError(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)
