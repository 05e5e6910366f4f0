"""``mews experiment``: a system's experiment, run and written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from mews.harness import terminal
from mews.harness.commands.ending import ended_by_sigterm
from mews.harness.commands.outputs import check_outputs, write_output
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.extras import check_installed
from mews.harness.options import MOST_SEED
from mews.harness.systems import all_experiments, find_experiment
from mews.kube.system.experiment import Experiment, Tables, first_seeds
from mews.kube.system.sweeping import swept
from mews.names import must_be
from mews.own_files import make_own_folder

if TYPE_CHECKING:
    from mews.harness.experiments.kept import KeptResults


class ExperimentOutputs(Struct, frozen=True):
    """Where results go: ``out`` gets all of them; without any the report goes to standard output. ``resume``: what an
    earlier run has kept there is not run again."""

    out: Path | None = None
    json: str | None = None
    markdown: str | None = None
    plots: Path | None = None
    resume: bool = False


def list_experiments() -> int:
    """Return one line per experiment, and one for each of its axes."""
    for name, experiment in all_experiments().items():
        terminal.out(f"{name:20} {experiment.summary}\n")
        for axis in experiment.axes:
            shipped = "" if axis.shipped is None else f"; included: {axis.shipped:g}"
            terminal.out(f"{'':20}   --sweep {axis.name}=…  {axis.meaning}, {axis.least:g} to {axis.most:g}{shipped}\n")
    return 0


class ExperimentChanges(Struct, frozen=True):
    """What runs in place of the shipped experiment: ``AXIS=VALUE`` each, ``AXIS=VALUE,VALUE…`` each, and a log."""

    settings: Sequence[str] = ()
    sweeps: Sequence[str] = ()
    log: Path | None = None


_UNCHANGED = ExperimentChanges()


def run(
    name: str,
    seeds: Sequence[str],
    jobs: int,
    outputs: ExperimentOutputs,
    changes: ExperimentChanges = _UNCHANGED,
) -> int:
    """Run an experiment and write what is asked for. Numbers are written before pictures.

    Raises BadInputError, RequirementError.
    """
    from mews.harness.experiments.playing import ScenarioFailedError
    from mews.harness.experiments.runner import PartProgress, run_experiment
    from mews.harness.report.progress import WorkRate, progress_bar

    try:
        experiment = find_experiment(name)
    except LookupError as error:
        raise BadInputError(error.args[0]) from error
    if jobs < 1:
        raise BadInputError(f"--jobs {jobs}: must be at least 1")
    _check_places(outputs)
    kept = _kept(name, outputs, changes)
    experiment = _changed(experiment, changes)
    wanted = _seeds(experiment, seeds)
    if experiment.stand_in:
        terminal.err(f"{name}: {experiment.stand_in}\n")
    try:
        with progress_bar(1, threads=False) as bar, ended_by_sigterm():
            rate = WorkRate()

            def show(at: PartProgress) -> None:
                bar.reached(at.done, at.tasks)
                bar.begin(f"{name}: {at.part}{rate.text(at.part, at.done - at.kept, at.tasks - at.done)}")

            tables = run_experiment(
                experiment, wanted, processes=jobs, kept=kept, on_progress=show, on_tick=bar.refresh
            )
    except ScenarioFailedError as failed:
        terminal.err(f"experiment {name}: {failed}\n")
        return 1
    _write(experiment, tables, wanted, outputs)
    return 0


def _check_places(outputs: ExperimentOutputs) -> None:
    check_outputs({"--json": outputs.json, "--markdown": outputs.markdown})
    for option, folder in {"--out": outputs.out, "--plots": outputs.plots}.items():
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BadInputError(f"{option} {folder}: must be a folder")


def _kept(name: str, outputs: ExperimentOutputs, changes: ExperimentChanges) -> KeptResults:
    """Return the file of the results so far; without ``resume`` one that is there already is put aside.

    Raises BadInputError, RequirementError.
    """
    from mews import __version__
    from mews.harness.experiments.kept import KEPT, KeptResults, options_of

    if outputs.out is None:
        if outputs.resume:
            raise BadInputError("--resume: requires --out DIR, whose file results.jsonl records what has run")
        return KeptResults()
    options = options_of(changes.settings, changes.sweeps, changes.log)
    path = outputs.out / KEPT
    try:
        make_own_folder(outputs.out)
        if path.is_file() and not outputs.resume:
            path.replace(path.with_suffix(".before.jsonl"))
    except OSError as error:
        raise RequirementError(f"--out {outputs.out}: cannot be made: {error.strerror}") from error
    return KeptResults(path, {"experiment": name, "mews": __version__, "options": options})


def _changed(experiment: Experiment, changes: ExperimentChanges) -> Experiment:
    """Return it with the user's log, then the user's values, then as the sweep that the user asks for."""
    from mews.harness.experiments.assumptions import played_log, read_settings, read_sweeps

    if changes.log is not None:
        experiment = played_log(experiment, changes.log)
    settings, sweeps = read_settings(experiment, changes.settings), read_sweeps(experiment, changes.sweeps)
    both = next((axis for axis in settings if axis in sweeps), None)
    if both is not None:
        raise BadInputError(f"--set {both}: only one of the two: --sweep {both} gives its values")
    if settings and experiment.at is not None:
        experiment = experiment.at(settings)
    return swept(experiment, sweeps) if sweeps else experiment


def _seeds(experiment: Experiment, given: Sequence[str]) -> dict[str, range]:
    """Part -> its seeds; ``N`` (the first N) and ``A-B`` mean the first part, ``PART=N`` and ``PART=A-B`` the one of
    that name."""
    counts = {part.name: first_seeds(part.seeds) for part in experiment.parts}
    given_parts = set[str]()
    for text in given:
        part, _, number = text.rpartition("=")
        part = part or experiment.parts[0].name
        if part not in counts:
            raise BadInputError(f"--seeds {text}: {part!r}: {must_be(part, counts)}")
        if part in given_parts:
            raise BadInputError(f"--seeds {text}: the seeds of {part} are given twice")
        given_parts.add(part)
        counts[part] = _range(text, number)
    return counts


def _range(text: str, number: str) -> range:
    first, dash, last = number.partition("-")
    for each in (first, last) if dash else (first,):
        if not (each.isascii() and each.isdecimal()) or not 1 <= int(each) <= MOST_SEED:
            raise BadInputError(
                f"--seeds {text}: must be N or A-B, or PART=N or PART=A-B, of numbers from 1 to {MOST_SEED}"
            )
    if not dash:
        return first_seeds(int(first))
    if int(last) < int(first):
        raise BadInputError(f"--seeds {text}: the first must not be above the last")
    return range(int(first), int(last) + 1)


def _write(experiment: Experiment, tables: Tables, seeds: Mapping[str, range], outputs: ExperimentOutputs) -> None:
    from mews.harness.experiments.tables import document, json_text
    from mews.kube.system.comparing import report as report_of

    report = report_of(experiment, tables, seeds)
    if outputs.json is not None:
        write_output("--json", outputs.json, json_text(document(experiment, tables, seeds)))
    if outputs.markdown is not None:
        write_output("--markdown", outputs.markdown, report)
    if outputs.out is not None:
        _write_folder(experiment, tables, seeds, report, outputs.out)
    if outputs == ExperimentOutputs():
        terminal.out(report)
    if experiment.figures is not None and (outputs.plots is not None or outputs.out is not None):
        _write_figures(experiment, tables, report, outputs)


def _write_folder(
    experiment: Experiment, tables: Tables, seeds: Mapping[str, range], report: str, folder: Path
) -> None:
    from mews.harness.experiments.tables import csv_text, document, html_page, json_text, result

    try:
        make_own_folder(folder)
    except OSError as error:
        raise RequirementError(f"--out {folder}: cannot be made: {error.strerror}") from error
    texts = {
        "result.json": json_text(result(experiment, tables)),
        "tables.json": json_text(document(experiment, tables, seeds)),
        "report.md": report,
        "index.html": html_page(experiment, tables, report, {}),
        **{f"{name}.csv": csv_text(rows) for name, rows in tables.items()},
        **{name: make() for name, make in experiment.files.items()},
    }
    for name, text in texts.items():
        write_output("--out", folder / name, text)


def _write_figures(experiment: Experiment, tables: Tables, report: str, outputs: ExperimentOutputs) -> None:
    """Draw what is asked for; the page is written again with the figures in it.

    Raises RequirementError, behind the numbers, where what draws is not installed.
    """
    from mews.harness.experiments.tables import html_page

    try:
        check_installed("plots")
    except RequirementError as error:
        raise RequirementError(f"numbers are written, figures are not: {error}") from error
    if outputs.plots is not None:
        _draw(experiment, tables, outputs.plots)
    if outputs.out is not None:
        drawn = _draw(experiment, tables, outputs.out)
        write_output("--out", outputs.out / "index.html", html_page(experiment, tables, report, _images(drawn)))


def _images(drawn: Sequence[Path]) -> dict[str, bytes]:
    """Return the figures that a page can hold: vector graphics."""
    return {path.name: path.read_bytes() for path in drawn if path.suffix == ".svg"}


def _draw(experiment: Experiment, tables: Tables, folder: Path) -> list[Path]:
    if experiment.figures is None:
        return []
    figures = experiment.figures(tables)
    from mews.harness.experiments.drawing import draw

    return draw(figures, folder)
