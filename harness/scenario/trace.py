"""A workload's jobs, from the scenario or a CSV trace. Pure but for reading the file."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.model import Job, JobType, Workload
from mews.kube.api.quantities import parse
from mews.names import must_be

_ARRIVAL = ("arrival_s", "submit_offset_s")
_DURATION = ("duration_s", "run_s")


class TraceJob(Struct, frozen=True):
    """One job with everything settled; ``arrival_s`` counts from the workload's start."""

    job: str
    type: str
    gpus: int
    cpus: str
    arrival_s: float
    duration_s: float
    memory: str | None = None

    @property
    def pod(self) -> str:
        """The name of its pod: the job's, as far as a pod may be called so (RFC 1123)."""
        return _pod_name(self.job)

    @property
    def cpu_cores(self) -> float:
        """Its CPUs as a number."""
        return float(parse(self.cpus))


@lru_cache(maxsize=4096)
def _pod_name(job: str) -> str:
    name = re.sub(r"[^a-z0-9.-]+", "-", job.lower())
    return re.sub(r"^[^a-z0-9]+|[^a-z0-9]+$", "", name[:253]) or "job"


def read_trace(workload: Workload, where: str) -> tuple[TraceJob, ...]:
    """Return the workload's jobs by arrival (ties in the order of the file); ``where`` is named in errors.

    Raises ScenarioError.
    """
    jobs = _from_csv(workload) if workload.trace is not None else _from_scenario(workload, where)
    return tuple(sorted(jobs, key=lambda job: job.arrival_s))


def _from_scenario(workload: Workload, where: str) -> list[TraceJob]:
    jobs = [_job(job, workload, where) for job in workload.jobs or ()]
    _refuse_duplicates(jobs, [f"{where}: workload.jobs.{index}" for index in range(len(jobs))], "")
    return jobs


def _job(job: Job, workload: Workload, where: str) -> TraceJob:
    kind = _type(job.type, workload.types, f"{where}: workload.jobs: job {job.job!r}")
    duration = next(d for d in (job.duration, kind.duration, workload.duration) if d is not None)
    gpus = kind.gpus if job.gpus is None else job.gpus
    if job.duration is None:
        duration += gpus * workload.duration_per_gpu
    return TraceJob(
        job=job.job,
        type=job.type or "",
        gpus=gpus,
        cpus=str(kind.cpus if job.cpus is None else job.cpus),
        arrival_s=job.arrival,
        duration_s=duration,
        memory=kind.memory,
    )


def _type(name: str | None, types: Mapping[str, JobType], where: str) -> JobType:
    if name and types and name not in types:
        raise ScenarioError(f"{where}: type {name!r}: {must_be(name, sorted(types))}")
    return types.get(name or "", JobType())


def _from_csv(workload: Workload) -> list[TraceJob]:
    path = Path(workload.trace or "")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            columns = [name.strip() for name in reader.fieldnames or ()]
            rows = [{str(k).strip(): (v or "").strip() for k, v in row.items()} for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScenarioError(f"{path}: cannot be read as CSV: {error}") from None
    _check_columns(path, columns, workload)
    wanted = {name: str(value) for name, value in workload.select.items()}
    numbered = [(n, row) for n, row in enumerate(rows, start=2) if all(row[k] == v for k, v in wanted.items())]
    if not numbered:
        chosen = f" with {wanted}" if wanted else ""
        raise ScenarioError(f"{path}: no job{chosen}: check workload.select against the columns {', '.join(columns)}")
    jobs = [_row(path, number, row, workload) for number, row in numbered]
    _refuse_duplicates(jobs, [f"{path}:{number}" for number, _ in numbered], ", ".join(columns))
    return jobs


def _check_columns(path: Path, columns: list[str], workload: Workload) -> None:
    missing = [name for name in ("job",) if name not in columns]
    if not any(name in columns for name in _ARRIVAL):
        missing.append("arrival_s (or submit_offset_s)")
    if "gpus" not in columns and not workload.types:
        missing.append("gpus (or workload.types for the column type)")
    if missing:
        raise ScenarioError(f"{path}:1: columns {', '.join(columns) or 'none'}: missing {', '.join(missing)}")
    for name in workload.select:
        if name not in columns:
            raise ScenarioError(f"{path}:1: workload.select.{name}: no such column; columns: {', '.join(columns)}")


def _row(path: Path, number: int, row: Mapping[str, str], workload: Workload) -> TraceJob:
    where = f"{path}:{number}"
    kind = _type(row.get("type"), {} if row.get("gpus") else workload.types, where)
    kind = kind if kind != JobType() else workload.types.get(row.get("type", ""), kind)
    fallback = kind.duration if kind.duration is not None else workload.duration
    duration = _number(where, row, _DURATION)
    arrival = _number(where, row, _ARRIVAL)
    if arrival is None:
        raise ScenarioError(f"{where}: arrival_s: empty: must be seconds from the start")
    if not row["job"]:
        raise ScenarioError(f"{where}: job: empty: must be a name")
    gpus = _number(where, row, ("gpus",))
    if gpus is not None and gpus != int(gpus):
        raise ScenarioError(f"{where}: gpus: {row['gpus']!r}: must be a whole number")
    asked = kind.gpus if gpus is None else int(gpus)
    return TraceJob(
        job=row["job"],
        type=row.get("type", ""),
        gpus=asked,
        cpus=_cpus(where, row) or str(kind.cpus),
        arrival_s=arrival,
        duration_s=fallback + asked * workload.duration_per_gpu if duration is None else duration,
        memory=kind.memory,
    )


def _cpus(where: str, row: Mapping[str, str]) -> str:
    text = row.get("cpus", "")
    try:
        if text:
            parse(text)
    except ValueError:
        raise ScenarioError(f"{where}: cpus: {text!r}: must be a number of CPUs, for example 40 or 500m") from None
    return text


def _number(where: str, row: Mapping[str, str], names: tuple[str, ...]) -> float | None:
    for name in names:
        if row.get(name):
            try:
                value = float(row[name]) if row[name].isascii() and "_" not in row[name] else -1.0
            except ValueError:
                value = -1.0
            if not 0 <= value < 1e12:
                raise ScenarioError(f"{where}: {name}: {row[name]!r}: must be a number of at least 0")
            return value
    return None


def _refuse_duplicates(jobs: list[TraceJob], places: list[str], columns: str) -> None:
    seen: dict[str, str] = {}
    for job, place in zip(jobs, places, strict=True):
        if job.pod in seen:
            hint = f": narrow the rows with workload.select (columns: {columns})" if columns else ": names must differ"
            raise ScenarioError(f"{place}: job {job.job!r} was there already ({seen[job.pod]}){hint}")
        seen[job.pod] = place
