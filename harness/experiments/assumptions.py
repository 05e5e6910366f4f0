"""What a user puts in the place of an experiment's assumptions: values of its axes, and the paper's own log."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from pathlib import Path

from mews.harness.errors import BadInputError
from mews.harness.report.progress import progress_bar
from mews.harness.simulation.columns import Defaults
from mews.harness.simulation.formats import FORMATS
from mews.harness.simulation.trace_file import TraceFile, TraceSpan
from mews.kube.system.experiment import Axis, Experiment, RecordedJobs
from mews.names import must_be

_TICK = 50_000
"""Jobs between two looks at the bar."""


def read_settings(experiment: Experiment, given: Sequence[str]) -> dict[str, float]:
    """``AXIS=VALUE`` each, by the axis.

    Raises BadInputError.
    """
    found: dict[str, float] = {}
    for text in given:
        axis, value = _split(experiment, "--set", text, found)
        found[axis.name] = _value(axis, "--set", text, value)
    return found


def read_sweeps(experiment: Experiment, given: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """``AXIS=VALUE,VALUE…`` each, by the axis, in ascending order.

    Raises BadInputError.
    """
    found: dict[str, tuple[float, ...]] = {}
    for text in given:
        axis, values = _split(experiment, "--sweep", text, found)
        found[axis.name] = tuple(sorted({_value(axis, "--sweep", text, value) for value in values.split(",")}))
    return found


def _split(experiment: Experiment, option: str, text: str, found: object) -> tuple[Axis, str]:
    axes = {axis.name: axis for axis in experiment.axes}
    name, equals, value = text.partition("=")
    if not axes:
        raise BadInputError(f"{option} {text}: {experiment.name} has no axis")
    if name not in axes:
        raise BadInputError(f"{option} {text}: {name!r}: {must_be(name, axes)}")
    if not equals or not value:
        raise BadInputError(f"{option} {text}: must be {name}=VALUE{',…' if option == '--sweep' else ''}")
    if isinstance(found, dict) and name in found:
        raise BadInputError(f"{option} {text}: {name} is given twice")
    return axes[name], value


def _value(axis: Axis, option: str, text: str, value: str) -> float:
    try:
        number = float(value) if value.isascii() and "_" not in value else math.nan
    except ValueError:
        number = math.nan
    if not axis.least <= number <= axis.most:
        raise BadInputError(f"{option} {text}: {value!r}: must be a number from {axis.least:g} to {axis.most:g}")
    return number


def played_log(experiment: Experiment, path: Path) -> Experiment:
    """Return the experiment on the jobs of a log.

    Raises BadInputError.
    """
    use = experiment.log
    if use is None:
        raise BadInputError(f"--trace {path}: {experiment.name} plays no job log")
    if not path.is_file():
        raise BadInputError(f"--trace {path}: {'is a folder' if path.is_dir() else 'no such file'}")
    span = TraceSpan(use.from_s, use.until_s, use.in_words)
    log = TraceFile(path, FORMATS[use.format], Defaults(), within=span)
    try:
        return use.play(_recorded(log))
    except ValueError as error:
        raise BadInputError(f"{path}: {error}") from error


def _recorded(log: TraceFile) -> RecordedJobs:
    """Read row by row into columns: 28 bytes a job."""
    with progress_bar(100) as bar:
        bar.begin(f"{log.path.name}: reading, percent")
        rows = log.scan(on_progress=bar.reached).rows
    arrivals, lengths, gpus, cpus = array("d"), array("d"), array("l"), array("d")
    with progress_bar(rows) as bar:
        bar.begin(f"{log.path.name}: jobs")
        for job in log.jobs():
            arrivals.append(job.arrival_s)
            lengths.append(job.duration_s)
            gpus.append(job.devices)
            cpus.append(job.cpu_milli / 1000)
            if not len(gpus) % _TICK:
                bar.reached(log.given)
    return RecordedJobs(log.path.name, arrivals, lengths, gpus, cpus, log.left_out)
