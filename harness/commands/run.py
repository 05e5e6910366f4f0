"""``mews run``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct
from msgspec.structs import replace

from mews.harness import terminal
from mews.harness.backends import backend_of
from mews.harness.catalogue.files import existing
from mews.harness.commands import collecting
from mews.harness.commands.ending import ended_by_sigterm
from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.outputs import STDOUT, check_inputs_kept, check_outputs, write_output
from mews.harness.commands.replay_line import replay_line
from mews.harness.commands.serving import warn_insecure, what_is_open
from mews.harness.engine import Engine
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.kubeconfig_file import check_kubeconfig
from mews.harness.options import MOST_RUNS, RunOptions, check_available
from mews.harness.ports.cluster import Cluster
from mews.harness.report.progress import ProgressBar, progress_bar
from mews.harness.report.run import SKIPPED, Run, exit_code_of
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenarios

if TYPE_CHECKING:
    from mews.harness.commands.halting import BreakPoint
    from mews.harness.scenario.model import Scenario
    from mews.harness.sweeps import KeptRuns


ARTEFACTS = Path("mews-artefacts")
"""Where failed runs leave theirs."""


class GivenSweep(Struct, frozen=True):
    """``--results``, ``--resume`` and ``--shard`` as they are given."""

    results: str | None = None
    resume: bool = False
    shard: str | None = None


class RunOutputs(Struct, frozen=True):
    """Where reports go; one may be ``-``, standard output."""

    json: str | None = None
    junit: Path | None = None
    html: Path | None = None
    journal: Path | None = None
    sweep: GivenSweep = GivenSweep()

    def by_option(self) -> Mapping[str, str | Path | None]:
        """Return them as they are given."""
        files: dict[str, str | Path | None] = {"--json": self.json, "--junit": self.junit, "--html": self.html}
        return {**files, "--journal": self.journal, "--results": self.sweep.results}


class WantedRuns(Struct, frozen=True):
    """Which runs: ``seeds`` None for each scenario's own, ``overrides`` as for ``--set``, ``jobs`` of them at once,
    ``select`` the scenarios with these labels alone; ``strict``: none may be skipped; ``break_at``: where the one run
    stops."""

    seeds: Sequence[int] | None = None
    overrides: Sequence[str] = ()
    jobs: int = 1
    select: str | None = None
    strict: bool = False
    allow_outside: bool = False
    break_at: str | None = None


# Complex: the order of the checks decides which error is shown.
def run(  # noqa: C901
    paths: Sequence[Path],
    options: RunOptions,
    outputs: RunOutputs,
    wanted: WantedRuns,
) -> int:
    """Check all files, run every scenario with every seed, write the reports; the exit code.

    What one scenario lacks skips that one. Raises BadInputError, RequirementError, KeyboardInterrupt; reports have what
    ran until then.
    """
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise BadInputError(f"--kubeconfig {options.kubeconfig}: no such file")
    if options.kubeconfig is not None:
        check_kubeconfig(options.kubeconfig, options.context)
    keep_quiet()
    overrides = _overrides(wanted.overrides, options)
    if wanted.seeds is not None and any(each.partition("=")[0] == "seed" for each in wanted.overrides):
        raise BadInputError("--seed and --set seed: only one of the two")
    scenarios = load(paths, overrides, allow_outside=wanted.allow_outside)
    if wanted.select is not None:
        scenarios = selected(scenarios, wanted.select)
    whole = [(scenario, seed) for scenario in scenarios for seed in wanted.seeds or (scenario.seed,)]
    if len(whole) > MOST_RUNS:
        raise BadInputError(
            f"these are {len(whole)} runs; at most {MOST_RUNS} are allowed: name fewer seeds or scenarios"
        )
    shown = check_outputs(outputs.by_option())
    read = [path for each in scenarios for path in (each.path, *each.included) if path is not None]
    check_inputs_kept(outputs.by_option(), read)
    kept = _kept(outputs, whole, options, wanted.overrides)
    numbers = [number for number in range(len(whole)) if kept is None or kept.lacks(number)]
    plan = [whole[number] for number in numbers]
    if str(outputs.journal) == STDOUT and len(plan) > 1:
        raise BadInputError(f"--journal {STDOUT}: can show only one run, not {len(plan)}; name a file")
    halting = None if wanted.break_at is None else _break_point(wanted.break_at, plan, options, wanted.jobs)
    options = options if halting is None else halting.options
    missing = _missing(options.cluster)
    warn_insecure(what_is_open(backend_of(options.cluster)), options.serving)
    files = _Files(outputs)
    runs: list[Run] = []
    try:
        for run in _run_all(
            plan,
            options,
            files,
            jobs=wanted.jobs,
            stream=None if missing else _report_stream(outputs, shown),  # its one line is on standard error
            missing=missing,
        ):
            runs.append(run if kept is None else kept.keep(numbers[len(runs)], run))
    except (BadInputError, RequirementError, KeyboardInterrupt):
        if runs:
            with contextlib.suppress(RequirementError):  # what keeps the others from running weighs more
                files.reports(runs)
        raise
    runs = runs if kept is None else kept.all_runs(dict(zip(numbers, runs, strict=True)))
    files.reports(runs)
    first = next((run for run in runs if not run.good and not run.bad_input), None)
    if first is not None:
        terminal.err(f"{replay_line(first, options, wanted.overrides)}\n")
    missed = "" if halting is None else halting.missed()
    if missed:
        terminal.err(f"{missed}\n")
    # One scenario alone was asked for by its name; among several, one that cannot be had here is no reason to fail.
    code = _exit_code(runs, strict=wanted.strict, asked_for=bool(missing) or len(scenarios) == 1)
    return 1 if missed and code == 0 else code


def _break_point(text: str, plan: Sequence[tuple[Scenario, int]], options: RunOptions, jobs: int) -> BreakPoint:
    """Return where the run stops. Raises BadInputError, RequirementError."""
    from mews.harness.commands.halting import break_point  # most runs stop nowhere

    return break_point(text, plan, options, jobs)


def _missing(cluster: str) -> str:
    """Return what this machine lacks for the cluster, "" for nothing."""
    try:
        check_available(cluster)
    except RequirementError as error:
        return str(error)
    return ""


def _exit_code(runs: Sequence[Run], *, strict: bool, asked_for: bool) -> int:
    """Return the exit code; that nothing was run is shown where nobody can miss it. ``asked_for``: what is lacking is
    what the command line itself names.

    Raises BadInputError, RequirementError.
    """
    wrong = list(dict.fromkeys(run.result.reason for run in runs if run.bad_input))
    if wrong:
        raise BadInputError("\n".join(wrong))
    code = exit_code_of(runs, strict=strict)
    lacking = list(dict.fromkeys(run.lacks for run in runs if run.lacks))
    if lacking and asked_for and code != 1:
        raise RequirementError("\n".join(lacking))
    skipped = sum(run.result.verdict == SKIPPED for run in runs)
    if runs and skipped == len(runs):
        reasons = list(dict.fromkeys(run.result.reason for run in runs))
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        terminal.err(f"WARNING: nothing was run: all {skipped} were skipped: {reasons[0]}{more}\n")
    elif code == 3:
        terminal.err(f"--strict: {skipped} of {len(runs)} were skipped\n")
    return code


def _kept(
    outputs: RunOutputs,
    plan: Sequence[tuple[Scenario, int]],
    options: RunOptions,
    overrides: Sequence[str],
) -> KeptRuns | None:
    """Return the sweep's results, None where it is none. Raises BadInputError."""
    given = outputs.sweep
    if given == GivenSweep():
        return None
    from mews.harness.sweeps import KeptRuns, sweep_options

    chosen = sweep_options(given.results, given.resume, given.shard, outputs.json)
    return KeptRuns.of(chosen, plan, options, overrides)


def load(paths: Sequence[Path], overrides: Sequence[str] = (), *, allow_outside: bool = False) -> list[Scenario]:
    """Return the scenarios of files, folders and names of shipped ones; ``allow_outside`` as for ``load_scenario``.

    Raises BadInputError, one line per bad file.
    """
    try:
        files = [existing("scenario", path) for path in paths]
        return load_scenarios(files, overrides, allow_outside=allow_outside)
    except ScenarioError as error:
        raise BadInputError(str(error)) from error


def selected(scenarios: Sequence[Scenario], selector: str) -> list[Scenario]:
    """Return those with the labels that a Kubernetes label selector asks for.

    Raises BadInputError for a text that is none, and where no scenario is left.
    """
    from mews.kube.api.selectors import label_selector

    if not selector.strip():
        raise BadInputError("--select: must be labels, such as suite=smoke,speed!=slow")
    try:
        chosen = label_selector(selector)
    except ValueError as error:
        raise BadInputError(f"--select {selector}: {error}; must be labels, such as suite=smoke,speed!=slow") from error
    found = [scenario for scenario in scenarios if chosen(scenario.metadata.labels)]
    if not found:
        there = sorted({f"{key}={value}" for each in scenarios for key, value in each.metadata.labels.items()})
        raise BadInputError(
            f"--select {selector}: none of {len(scenarios)} scenarios has such metadata.labels; "
            f"there are {', '.join(there[:20]) + (' …' if len(there) > 20 else '') or '(none)'}"
        )
    return found


def _overrides(overrides: Sequence[str], options: RunOptions) -> list[str]:
    """Return all that is set, ``--timeout`` included.

    Raises BadInputError where one value is given twice: the other one would be without effect.
    """
    keys = [override.partition("=")[0] for override in overrides]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise BadInputError(f"--set {twice}: is set {keys.count(twice)} times; once is enough")
    for option, key, given in (
        ("--timeout", "timeout", options.timeout_s),
        ("--dialect", "stack.dialect", options.dialect),
    ):
        if given is not None and key in keys:
            raise BadInputError(f"{option} and --set {key}: only one of the two")
    return [*overrides, *([f"timeout={options.timeout_s:g}"] if options.timeout_s is not None else [])]


def _report_stream(outputs: RunOutputs, shown: bool) -> TextIO | None:
    """Return where people read: not where a report goes; nowhere beside JSON, which says as much."""
    return None if STDOUT in (outputs.json, outputs.sweep.results) else sys.stderr if shown else sys.stdout


def _run_all(
    plan: Sequence[tuple[Scenario, int]],
    options: RunOptions,
    files: _Files,
    *,
    jobs: int,
    stream: TextIO | None,
    missing: str,
) -> Iterator[Run]:
    """Yield the runs, one after the other, as they are reported; all skipped for what is ``missing``."""
    from mews.harness.report.text import TextReport

    report = None if stream is None else TextReport(stream, quiet=is_quiet())
    if not plan:
        return
    jobs, runs = min(jobs, len(plan)), list[Run]()
    with progress_bar(len(plan), threads=jobs == 1 and options.halt is None, quiet=is_quiet()) as bar:
        ended: Iterator[Run]
        if missing:
            ended = (Engine(options).lacking(scenario, seed, missing) for scenario, seed in plan)
        else:
            ended = _one_by_one(plan, options, bar) if jobs == 1 else _in_workers(plan, options, bar, jobs)
        for run in ended:
            kept = files.journal(run, alone=len(plan) == 1)
            runs.append(kept)
            if kept.lacks and len(plan) == 1:
                report = None  # what one scenario alone lacks is one line on standard error
            if report is not None:
                report.ended(kept)
            yield kept
    if report is not None:
        report.finish(runs)


def _one_by_one(plan: Sequence[tuple[Scenario, int]], options: RunOptions, bar: ProgressBar) -> Iterator[Run]:
    from mews.harness.clusters.session import ClusterSession

    if options.time == "virtual":
        _import_runs()
    collecting.imported()
    with ClusterSession(keep=options.keep, notify=bar.print) as session:
        emulated = backend_of(options.cluster).emulates_nodes
        hold = _hold if options.keep and options.time == "wall" and emulated else None
        engine = Engine(options, artefacts=ARTEFACTS, observe=bar.step, hold=hold, session=session)
        for scenario, seed in plan:
            bar.begin(f"{scenario.name} (seed {seed})")
            run = engine.attempt(scenario, seed)
            bar.end()
            yield run


def _in_workers(
    plan: Sequence[tuple[Scenario, int]], options: RunOptions, bar: ProgressBar, jobs: int
) -> Iterator[Run]:
    """Yield them in virtual time only, so there is no session to share."""
    from mews.harness.worker_pool import WorkerPool

    _import_runs()
    engine = Engine(options, artefacts=ARTEFACTS)
    pool = WorkerPool(
        lambda number: engine.attempt(*plan[number]),
        jobs=jobs,
        lost=lambda number, reason: engine.broken(*plan[number], reason),
        on_result=lambda _: bar.end(),
        on_tick=bar.refresh,
    )
    bar.begin(f"{jobs} at once")
    with ended_by_sigterm():
        yield from pool.run(len(plan))


def _import_runs() -> None:
    """What all runs in virtual time need and would import one after the other."""
    import mews.harness.clusters.embedded.cluster
    import mews.harness.clusters.embedded.in_process
    import mews.harness.clusters.embedded.opening
    import mews.harness.scenario.runner  # noqa: F401


class _Files:
    """Writes reports; what cannot be written is told when all that can be written is."""

    def __init__(self, outputs: RunOutputs) -> None:
        self._outputs = outputs
        self._errors: list[str] = []
        self._journals: set[Path] = set()

    def journal(self, run: Run, *, alone: bool) -> Run:
        """Write the journal; with several runs each has a file of its own beside the one that was named."""
        file = self._outputs.journal
        if file is None:
            return run
        result = run.result
        name = f"{file.stem}-{_safe(result.scenario)}-{result.seed}"
        path = file if alone else self._free(file, name)
        self._write("--journal", path, "".join(line.as_json() + "\n" for line in run.lines))
        return replace(run, result=replace(result, journal=str(path)))

    def _free(self, file: Path, name: str) -> Path:
        """Return a file of that name beside the other; two scenarios of one name get one each."""
        names = (name, *(f"{name}-{number}" for number in range(2, len(self._journals) + 2)))
        path = next(p for p in (file.with_name(one + file.suffix) for one in names) if p not in self._journals)
        self._journals.add(path)
        return path

    def reports(self, runs: Sequence[Run]) -> None:
        """Write all that were asked for.

        Raises RequirementError.
        """
        outputs = self._outputs
        if outputs.json is not None:
            text = json.dumps([run.result.as_dict() for run in runs], indent=2) + "\n"
            self._write("--json", outputs.json, text)
        if outputs.junit is not None:
            from mews.harness.report.junit import junit_xml

            self._write("--junit", outputs.junit, junit_xml(runs))
        if outputs.html is not None:
            from mews.harness.report.html import html_page

            self._write("--html", outputs.html, html_page(runs))
        if self._errors:
            raise RequirementError("\n".join(self._errors))

    def _write(self, option: str, where: str | Path, text: str) -> None:
        try:
            write_output(option, where, text)
        except RequirementError as error:
            self._errors.append(str(error))


def _safe(name: str) -> str:
    """Return a part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", name)


async def _hold(cluster: Cluster) -> None:
    """``--keep``: leave the cluster running until the user ends it."""
    ready = getattr(cluster, "ready", None)
    where = f"; kubectl --kubeconfig {ready()['kubeconfig']} get pods" if ready is not None else ""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    terminal.err(f"kept until you press Ctrl-C{where}\n")
    try:
        await ended.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
