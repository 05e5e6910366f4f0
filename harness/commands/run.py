"""``mews run``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from mews.harness.backends import backend_of
from mews.harness.commands.logs import keep_quiet
from mews.harness.commands.outputs import STDOUT, check_outputs, write_output
from mews.harness.commands.serving import warn_insecure, what_is_open
from mews.harness.engine import Engine
from mews.harness.errors import BadInput, Lacks
from mews.harness.options import RunOptions, check_available
from mews.harness.ports.cluster import Cluster
from mews.harness.report.progress import ProgressBar, progress_bar
from mews.harness.report.run import Run, exit_code_of
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import file_of, load_scenarios

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario


ARTEFACTS = Path("mews-artefacts")
"""Where failed runs leave theirs."""


@dataclass(frozen=True, slots=True)
class RunOutputs:
    """Where reports go; one may be ``-``, standard output."""

    json: str | None = None
    junit: Path | None = None
    html: Path | None = None
    journal: Path | None = None

    def by_option(self) -> Mapping[str, str | Path | None]:
        """As they are given."""
        return {"--json": self.json, "--junit": self.junit, "--html": self.html, "--journal": self.journal}


def run(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    seeds: Sequence[int] | None,
    overrides: Sequence[str],
    outputs: RunOutputs,
    jobs: int = 1,
    allow_outside: bool = False,
) -> int:
    """Check all files, run every scenario with every seed, ``jobs`` at once, write the reports; the exit code.

    Raises BadInput, Lacks, KeyboardInterrupt; reports tell of what ran until then.
    """
    if options.kubeconfig is not None and not options.kubeconfig.is_file():
        raise BadInput(f"--kubeconfig {options.kubeconfig}: no such file")
    keep_quiet()
    scenarios = load(paths, _overrides(overrides, options), allow_outside=allow_outside)
    plan = [(scenario, seed) for scenario in scenarios for seed in seeds or (scenario.seed,)]
    shown = check_outputs(outputs.by_option())
    if str(outputs.journal) == STDOUT and len(plan) > 1:
        raise BadInput(f"--journal {STDOUT}: shows one run, these are {len(plan)}; name a file")
    check_available(options.cluster)
    warn_insecure(what_is_open(backend_of(options.cluster)), options.serving)
    files = _Files(outputs)
    runs: list[Run] = []
    try:
        _run_all(plan, options, files, runs, jobs=jobs, stream=_report_stream(outputs, shown))
    except (BadInput, Lacks, KeyboardInterrupt):
        if runs:
            with contextlib.suppress(Lacks):  # what keeps the others from running weighs more
                files.reports(runs)
        raise
    files.reports(runs)
    return exit_code_of(runs)


def load(paths: Sequence[Path], overrides: Sequence[str] = (), *, allow_outside: bool = False) -> list[Scenario]:
    """The scenarios of files, folders and names of shipped ones; ``allow_outside`` as for ``load_scenario``.

    Raises BadInput, one line per bad file.
    """
    try:
        files = [file_of("scenario", path) for path in paths]
        return load_scenarios(files, overrides, allow_outside=allow_outside)
    except ScenarioError as error:
        raise BadInput(str(error)) from error


def _overrides(overrides: Sequence[str], options: RunOptions) -> list[str]:
    return [*overrides, *([f"timeout={options.timeout_s:g}"] if options.timeout_s is not None else [])]


def _report_stream(outputs: RunOutputs, shown: bool) -> TextIO | None:
    """Where people read: not where a report goes; nowhere beside JSON, which says as much."""
    return None if outputs.json == STDOUT else sys.stderr if shown else sys.stdout


def _run_all(
    plan: Sequence[tuple[Scenario, int]],
    options: RunOptions,
    files: _Files,
    runs: list[Run],
    *,
    jobs: int,
    stream: TextIO | None,
) -> None:
    """``runs`` gets one after the other."""
    from mews.harness.report.text import TextReport

    report = None if stream is None else TextReport(stream)
    jobs = min(jobs, len(plan))
    with progress_bar(len(plan), threads=jobs == 1) as bar:
        ended = _one_by_one(plan, options, bar) if jobs == 1 else _in_workers(plan, options, bar, jobs)
        for run in ended:
            kept = files.journal(run, alone=len(plan) == 1)
            runs.append(kept)
            if report is not None:
                report.ended(kept)
    if report is not None:
        report.finish(runs)


def _one_by_one(plan: Sequence[tuple[Scenario, int]], options: RunOptions, bar: ProgressBar) -> Iterator[Run]:
    from mews.harness.clusters.session import ClusterSession

    with ClusterSession(keep=options.keep, notify=bar.print) as session:
        emulated = backend_of(options.cluster).emulates_nodes
        hold = _hold if options.keep and options.time == "wall" and emulated else None
        engine = Engine(options, artefacts=ARTEFACTS, observe=bar.step, hold=hold, session=session)
        for scenario, seed in plan:
            bar.begin(f"{scenario.name} (seed {seed})")
            run = engine.run(scenario, seed)
            bar.end()
            yield run


def _in_workers(
    plan: Sequence[tuple[Scenario, int]], options: RunOptions, bar: ProgressBar, jobs: int
) -> Iterator[Run]:
    """In virtual time only, so there is no session to share."""
    import mews.harness.clusters.embedded.opening
    import mews.harness.scenario.runner  # noqa: F401
    from mews.harness.worker_pool import WorkerPool

    engine = Engine(options, artefacts=ARTEFACTS)
    pool = WorkerPool(
        lambda number: engine.run(*plan[number]),
        jobs=jobs,
        lost=lambda number, reason: engine.broken(*plan[number], reason),
        on_result=lambda _: bar.end(),
        on_tick=bar.refresh,
    )
    bar.begin(f"{jobs} at once")
    with _ended_by_sigterm():
        yield from pool.run(len(plan))


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within, SIGTERM is Ctrl-C, so that workers end and reports are written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Files:
    """Writes reports; what cannot be written is told when all that can be written is."""

    def __init__(self, outputs: RunOutputs) -> None:
        self._outputs = outputs
        self._errors: list[str] = []

    def journal(self, run: Run, *, alone: bool) -> Run:
        """Write the journal; with several runs each has a file of its own beside the one that was named."""
        file = self._outputs.journal
        if file is None:
            return run
        result = run.result
        name = f"{file.stem}-{_safe(result.scenario)}-{result.seed}{file.suffix}"
        path = file if alone else file.with_name(name)
        self._write("--journal", path, "".join(line.as_json() + "\n" for line in run.lines))
        return replace(run, result=replace(result, journal=str(path)))

    def reports(self, runs: Sequence[Run]) -> None:
        """Write all that were asked for.

        Raises Lacks.
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
            raise Lacks("\n".join(self._errors))

    def _write(self, option: str, where: str | Path, text: str) -> None:
        try:
            write_output(option, where, text)
        except Lacks as error:
            self._errors.append(str(error))


def _safe(name: str) -> str:
    """A part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", name)


async def _hold(cluster: Cluster) -> None:
    """``--keep``: leave the cluster running until the user ends it."""
    ready = getattr(cluster, "ready", None)
    where = f"; kubectl --kubeconfig {ready()['kubeconfig']} get pods" if ready is not None else ""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    sys.stderr.write(f"kept until you press Ctrl-C{where}\n")
    try:
        await ended.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
