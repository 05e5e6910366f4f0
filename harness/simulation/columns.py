"""The columns of the traces that can be played, and what a row of them is as a job. Pure.

``mews`` is our own CSV: that of ``workload.trace`` (``harness.scenario.trace``), with fractions of devices beside.
``pai2020`` is ``pai_task_table`` of Alibaba's cluster-trace-gpu-v2020 as published, whose columns and units are those
of its README and of its ``.header`` files: ``plan_cpu`` and ``plan_gpu`` in percent of a core and of a GPU,
``plan_mem`` in GB, times in seconds. Its files have no header row. ``helios`` has a file of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct, field

from mews.kube.api.quantities import parse
from mews.kube.system.simulation import WHOLE, SimulatedJob

PAI_TASKS = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
"""``pai_task_table.header``, in its order."""
PAI_JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
"""``pai_job_table.header``: who asked for what is not in it, only when a job was submitted."""

_MOST = 1e12
_SHAPES = 4096


class CellError(ValueError):
    """What is wrong with one cell: its column, what is there, what is allowed."""


class TraceJobType(Struct, frozen=True):
    """What a job of a type asks for where its row does not say."""

    devices: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    duration_s: float | None = None


class Defaults(Struct, frozen=True):
    """What rows leave out: what types ask, how long jobs run, and what each device adds to that."""

    types: Mapping[str, TraceJobType] = field(default_factory=dict)
    duration_s: float = 300.0
    per_device_s: float = 0.0


class TraceFormat(Struct, frozen=True):
    """One kind of trace. ``columns`` are all that are known; of each group of ``wanted`` one must be there, and no two.
    ``published``: the columns of a file without a header row, None where there must be one. ``arrival`` is the column
    by which rows are sorted, and ``moment(column, cell)`` reads it; ``from_first``: the first job arrives at 0.
    ``reader(places, defaults)`` reads a row's cells: None for one that was no job to be run."""

    name: str
    columns: tuple[str, ...]
    wanted: tuple[tuple[str, ...], ...]
    arrival: tuple[str, ...]
    reader: Callable[[Mapping[str, int], Defaults], Callable[[Sequence[str]], SimulatedJob | None]]
    published: tuple[str, ...] | None = None
    moment: Callable[[str, str], float] = lambda column, text: number(column, text)
    from_first: bool = False


def number(column: str, text: str, allowed: str = "a number of at least 0") -> float:
    """Return a cell that must be a number.

    Raises CellError.
    """
    try:
        value = float(text) if text.isascii() and "_" not in text else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < _MOST:
        raise CellError(f"{column}: {text!r}: must be {allowed}")
    return value


def whole_devices(share: int) -> int:
    """Return how many whole devices hold so many hundredths of one."""
    return -(-share // WHOLE)


# ------------------------------------------------------------------------------------------------------------ our own

_ARRIVAL = ("arrival_s", "submit_offset_s")
_DURATION = ("duration_s", "run_s")
_MEASURED = ("workload", "setting", "rank", "wait_s", "jct_s", "node")
"""Columns of recorded results, such as the testbed's: they select rows, and nothing else is read of them."""


def _mews(places: Mapping[str, int], defaults: Defaults) -> Callable[[Sequence[str]], SimulatedJob | None]:
    job = places["job"]
    arrival = next(name for name in _ARRIVAL if name in places)
    duration = next((name for name in _DURATION if name in places), "")
    at = {name: places.get(name, -1) for name in ("type", "gpus", "cpus", "memory_mib", "instances", duration)}
    arrives = places[arrival]

    def read(cells: Sequence[str]) -> SimulatedJob | None:
        def cell(name: str) -> str:
            place = at[name]
            return cells[place] if place >= 0 else ""

        if not cells[job]:
            raise CellError("job: empty: must be a name")
        kind = TraceJobType()
        if at["type"] >= 0 and defaults.types and (named := cell("type")):
            found = defaults.types.get(named)
            if found is None:
                raise CellError(f"type: {named!r}: must be one of {', '.join(sorted(defaults.types))}")
            kind = found
        share = _share(cell("gpus")) if cell("gpus") else kind.devices * WHOLE
        devices = whole_devices(share)
        lasts = defaults.duration_s if kind.duration_s is None else kind.duration_s
        lasts += devices * defaults.per_device_s
        return SimulatedJob(
            name=cells[job],
            arrival_s=number(arrival, cells[arrives]),
            duration_s=number(duration, cell(duration)) if duration and cell(duration) else lasts,
            devices=devices,
            share=share,
            cpu_milli=_cpu_milli(cell("cpus")) if cell("cpus") else kind.cpu_milli,
            memory_mib=int(number("memory_mib", cell("memory_mib"))) if cell("memory_mib") else kind.memory_mib,
            instances=instance_count(cell("instances")) if cell("instances") else 1,
        )

    return read


def _share(text: str) -> int:
    value = number("gpus", text) * WHOLE
    share = round(value)
    if abs(share - value) > 1e-6:
        raise CellError(f"gpus: {text!r}: must be a number of GPUs, in hundredths of one at the finest")
    return share


def _cpu_milli(text: str) -> int:
    try:
        return round(float(text) * 1000) if text.replace(".", "", 1).isdecimal() else int(parse(text) * 1000)
    except ValueError:
        raise CellError(f"cpus: {text!r}: must be a number of CPUs, for example 40 or 500m") from None


def instance_count(text: str, column: str = "instances") -> int:
    """Return a cell that must be a number of instances.

    Raises CellError.
    """
    value = number(column, text, "a whole number of at least 1")
    if value != int(value) or value < 1:
        raise CellError(f"{column}: {text!r}: must be a whole number of at least 1")
    return int(value)


# ------------------------------------------------------------------------------------------------------------ PAI 2020


def _pai(places: Mapping[str, int], defaults: Defaults) -> Callable[[Sequence[str]], SimulatedJob | None]:
    job, start, end = places["job_name"], places["start_time"], places["end_time"]
    cpu, gpu, instances = places["plan_cpu"], places["plan_gpu"], places["inst_num"]
    task, memory = places.get("task_name", -1), places.get("plan_mem", -1)
    # A trace has few shapes of jobs beside its rows: each is read once.
    shape_of = lru_cache(maxsize=_SHAPES)(_pai_shape)

    def read(cells: Sequence[str]) -> SimulatedJob | None:
        if not cells[start] or not cells[end]:
            return None  # it never ran, or had not ended when the trace was taken
        begins = number("start_time", cells[start])
        ends = number("end_time", cells[end])
        if ends < begins:
            raise CellError(f"end_time: {cells[end]!r}: must not be before start_time, {cells[start]}")
        name = cells[job] if task < 0 else f"{cells[job]}/{cells[task]}"
        shape = shape_of(cells[gpu], cells[cpu], cells[memory] if memory >= 0 else "", cells[instances])
        return SimulatedJob(name, begins, ends - begins, *shape)

    return read


def _pai_shape(gpu: str, cpu: str, memory: str, instances: str) -> tuple[int, int, int, int, int]:
    """Devices, share, CPU, memory and instances, as a job has them."""
    share = round(number("plan_gpu", gpu)) if gpu else 0
    return (
        whole_devices(share),
        share,
        round(number("plan_cpu", cpu) * 10) if cpu else 0,
        round(number("plan_mem", memory) * 1024) if memory else 0,
        instance_count(instances, "inst_num") if instances else 1,
    )


MEWS = TraceFormat(
    "mews",
    (*("job", "type", "gpus", "cpus", "memory_mib", "instances"), *_ARRIVAL, *_DURATION, *_MEASURED),
    (("job",), _ARRIVAL, ("gpus", "type")),
    _ARRIVAL,
    _mews,
)
PAI2020 = TraceFormat(
    "pai2020",
    PAI_TASKS,
    tuple((name,) for name in ("job_name", "inst_num", "start_time", "end_time", "plan_cpu", "plan_gpu")),
    ("start_time",),
    _pai,
    published=PAI_TASKS,
    from_first=True,
)


def instances_of(job: SimulatedJob) -> Iterator[SimulatedJob]:
    """Yield a job of several instances as one job each: what runs on one node at a time."""
    if job.instances == 1:
        yield job
        return
    for index in range(job.instances):
        yield SimulatedJob(
            f"{job.name}/{index}",
            job.arrival_s,
            job.duration_s,
            job.devices,
            job.share,
            job.cpu_milli,
            job.memory_mib,
        )
