"""An experiment of a system's paper, as data and pure functions: a harness runs its tasks and writes its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct, field

from mews.kube.system.journal import Line

Row = Mapping[str, Any]
"""One line of a table: JSON-serialisable values by column."""

Tables = Mapping[str, Sequence[Row]]
"""The rows of every part, by its name."""


def first_seeds(count: int) -> range:
    """Return the seeds 1 to that number."""
    return range(1, count + 1)


class ExperimentPart(Struct, frozen=True):
    """One table of an experiment. ``tasks(seeds)`` says what is to be run for these seeds (by default the first
    ``seeds``): JSON-serialisable values and functions, which run in processes of their own. ``run(task)`` is pure: the
    same result for the same task, as JSON, since it may be kept in a file. ``rows(seeds, results)`` gets the results in
    the order of the tasks."""

    name: str
    summary: str
    seeds: int
    tasks: Callable[[range], Sequence[Any]]
    run: Callable[[Any], Any]
    rows: Callable[[range, Sequence[Any]], Sequence[Row]]


class ScenarioTask(Struct, frozen=True, omit_defaults=True):
    """A scenario that the harness is to play once, in virtual time. ``scenario`` is the name of one that is shipped
    (``testbed/w1-pool``) or a whole one as its file has it; ``overrides`` are values by their dotted path; ``about``
    tells ``keep`` and ``rows`` which of the part's tasks this is. ``cpu_every_s``: it is played in wall-clock time
    instead, and the CPU time of each component measured in intervals of so many seconds. ``speed``: it is played in
    wall-clock time at that speed, as a program of somebody else needs.

    Kept results name a task by its values, and a field that has its default is none of them: one more field does not
    make older results those of another task."""

    scenario: str | Mapping[str, Any]
    seed: int
    overrides: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    cpu_every_s: float | None = None
    speed: float | None = None


class PlayedScenario(Struct, frozen=True):
    """What a scenario came to: its verdict with the reason, the metrics of ``mews run --json``, the values that they
    are held against (measured ones), its workload's jobs (``job, type, gpus, cpus, arrival_s, duration_s`` each), its
    journal, and of each component the share of one CPU that it took in each interval, where that was measured."""

    verdict: str
    reason: str
    metrics: Mapping[str, Any]
    expected: Mapping[str, float]
    jobs: Sequence[Row]
    lines: Sequence[Line]
    cpu: Mapping[str, Sequence[float]] = field(default_factory=dict)


class ScenarioPart(Struct, frozen=True):
    """One table of an experiment that needs the components themselves: as ``ExperimentPart``, but the harness plays
    each task, and ``keep(task, played)`` says what of it is sent on to ``rows``; it is pure. A scenario that does not
    pass ends the experiment unless ``may_fail``."""

    name: str
    summary: str
    seeds: int
    tasks: Callable[[range], Sequence[ScenarioTask]]
    keep: Callable[[ScenarioTask, PlayedScenario], Any]
    rows: Callable[[range, Sequence[Any]], Sequence[Row]]
    may_fail: bool = False


class TimedPart(Struct, frozen=True):
    """One table of an experiment on how long decisions take to compute. ``prepare(task)`` gives what is to be timed,
    which may be called any number of times; ``rows`` gets the CPU seconds of one call for each task."""

    name: str
    summary: str
    seeds: int
    tasks: Callable[[range], Sequence[Any]]
    prepare: Callable[[Any], Callable[[], object]]
    rows: Callable[[range, Sequence[float]], Sequence[Row]]


Part = ExperimentPart | ScenarioPart | TimedPart


class Series(Struct, frozen=True):
    """One line, the bars of one colour, or points: a height per place. ``spread``: half of each one's interval;
    ``at``: where on the x axis points and lines are (default: 0, 1, 2, …)."""

    label: str
    values: tuple[float, ...]
    spread: tuple[float, ...] = ()
    at: tuple[float, ...] = ()


class Panel(Struct, frozen=True):
    """One plot of a figure. ``places`` names the bars' groups; ``band``: between which heights the paper's value lies;
    ``logarithmic``: its x axis is."""

    title: str
    series: tuple[Series, ...]
    places: tuple[str, ...] = ()
    x_label: str = ""
    band: tuple[float, float] | None = None
    logarithmic: bool = False


class Figure(Struct, frozen=True):
    """Panels side by side, written to ``NAME.svg``. ``same_scale``: their heights can be compared, and where their x
    axes have one label, their widths too; False where panels show different quantities. ``steps`` are lines that stay
    level until the next point, as distributions are drawn."""

    name: str
    kind: Literal["bars", "lines", "steps", "points"]
    y_label: str
    panels: tuple[Panel, ...]
    same_scale: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """A number beside the paper's. ``paper`` is what the paper says, ``measured`` what was measured elsewhere (None:
    nothing); ``low`` and ``high`` say between which values a rerun may fall."""

    name: str
    ours: float | None
    paper: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None


class Axis(Struct, frozen=True):
    """A number that a paper leaves out, and that an experiment assumes: its ``shipped`` value, None for what a log says
    of it. ``values`` are those of the shipped curve; any from ``least`` to ``most`` may be asked for. ``meaning`` has
    the unit; ``logarithmic``: values are drawn by their ratios."""

    name: str
    meaning: str
    shipped: float | None
    values: tuple[float, ...]
    least: float
    most: float
    logarithmic: bool = False


class RecordedJobs(Struct, frozen=True):
    """The jobs of a log in order of arrival, in columns: when each arrived, from the first on, and how long it ran, in
    seconds; its GPUs and CPUs on each node. A job on several nodes is as many here. ``left_out``: how many had not
    ended when the log was taken."""

    name: str
    arrival_s: Sequence[float]
    duration_s: Sequence[float]
    gpus: Sequence[int]
    cpus: Sequence[float]
    left_out: int = 0


class LogUse(Struct, frozen=True):
    """The log that a paper ran, where an experiment can run it: in which format, from which moment to before which, in
    seconds since 1970, and that span in words. ``play`` is the experiment on its jobs; it raises ValueError for a log
    without any that it can run."""

    format: str
    from_s: float
    until_s: float
    in_words: str
    play: Callable[[RecordedJobs], Experiment]


class Experiment(Struct, frozen=True):
    """``mews experiment NAME``. ``title`` and ``notes`` stand above its comparisons in the report
    (``comparing.report``): ``{PART}`` in a note is that part's number of seeds, and ``found`` gives notes on what came
    out, from the tables and the seeds by part. ``own_report`` takes the place of all that. ``about`` holds what a
    reader of the results must know beside the rows; ``figures`` and ``comparisons`` are drawn and listed from them.

    ``axes`` are what the paper leaves out: ``at(values)`` is the same experiment with other values of them, without
    curves, and ``curve`` gives the numbers that a sweep follows (``sweeping``), whose unit is ``curve_label``. ``log``:
    it can run the paper's own log; ``stand_in`` says in a line what runs in its place. ``files`` are written into the
    folder of the results: name -> text."""

    name: str
    summary: str
    parts: tuple[Part, ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    found: Callable[[Tables, Mapping[str, int]], Sequence[str]] = lambda tables, seeds: ()
    own_report: Callable[[Tables, Mapping[str, int]], str] | None = None
    figures: Callable[[Tables], Sequence[Figure]] | None = None
    comparisons: Callable[[Tables], Sequence[Comparison]] = lambda tables: ()
    about: Mapping[str, Any] | None = None
    axes: tuple[Axis, ...] = ()
    at: Callable[[Mapping[str, float]], Experiment] | None = None
    curve: Callable[[Tables], Sequence[Comparison]] = lambda tables: ()
    curve_label: str = ""
    log: LogUse | None = None
    stand_in: str = ""
    files: Mapping[str, Callable[[], str]] = field(default_factory=dict)
