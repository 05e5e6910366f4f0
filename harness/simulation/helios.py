"""The job log of SenseTime's Helios, as its public release has it: a ``cluster_log.csv`` for each cluster. Pure.

Columns and units are those of the release's README (S-Lab-System-Group/HeliosData): ``gpu_num`` and ``cpu_num`` are of
the whole job, on ``node_num`` nodes; times are local, ``2020-06-09 18:41:01``; ``duration`` is end minus start and
``queue`` start minus submission, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from mews.harness.simulation.columns import CellError, Defaults, TraceFormat, instance_count, number
from mews.kube.system.simulation import WHOLE, SimulatedJob

HELIOS_COLUMNS = (
    "job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "start_time", "end_time",
    "duration", "queue",
)  # fmt: skip
"""``cluster_log.csv``, in its order."""
_READ = ("job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "duration")
_LENGTH = len("2020-06-09 18:41:01")
_MOST_DEVICES = 100_000


def moment(column: str, text: str) -> float:
    """Return a cell that must be a moment: seconds since 1970, its time taken as UTC.

    Raises CellError.
    """
    # fromisoformat also reads other forms, such as weeks: the places of the marks leave one of them.
    if len(text) == _LENGTH and (text[4], text[7], text[10]) == ("-", "-", " "):
        try:
            return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
        except ValueError:
            pass
    raise CellError(f"{column}: {text!r}: must be a date and a time, such as 2020-06-09 18:41:01")


def _reader(places: Mapping[str, int], defaults: Defaults) -> Callable[[Sequence[str]], SimulatedJob | None]:
    name, submitted, lasts = places["job_id"], places["submit_time"], places["duration"]
    gpus, cpus, nodes = places["gpu_num"], places["cpu_num"], places["node_num"]
    others = [(column, places[column]) for column in ("start_time", "end_time") if column in places]

    def read(cells: Sequence[str]) -> SimulatedJob | None:
        if not cells[name]:
            raise CellError("job_id: empty: must be a name")
        for column, place in others:
            if cells[place]:
                moment(column, cells[place])
        if not cells[lasts]:
            return None  # it had not ended when the log was taken
        count = instance_count(cells[nodes], "node_num")
        # What a node gets of a job on several: its part, a whole device at least.
        devices = -(-_devices(cells[gpus]) // count)
        return SimulatedJob(
            cells[name],
            moment("submit_time", cells[submitted]),
            number("duration", cells[lasts]),
            devices,
            devices * WHOLE,
            round(number("cpu_num", cells[cpus]) * 1000 / count),
            instances=count,
        )

    return read


def _devices(text: str) -> int:
    allowed = f"a whole number from 0 to {_MOST_DEVICES}"
    value = number("gpu_num", text, allowed)
    if value != int(value) or value > _MOST_DEVICES:
        raise CellError(f"gpu_num: {text!r}: must be {allowed}")
    return int(value)


HELIOS = TraceFormat(
    "helios",
    HELIOS_COLUMNS,
    tuple((column,) for column in _READ),
    ("submit_time",),
    _reader,
    moment=moment,
    from_first=True,
)
"""A row for each job that was submitted, with or without GPUs."""
