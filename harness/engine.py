"""Runs scenarios one after the other, each on a cluster of its own: what the command line and pytest share."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mews.descriptors import exhausted, exhausted_line
from mews.dialects import DEFAULT
from mews.harness.backends import backend_of
from mews.harness.clock import run_virtual
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.extras import lacking
from mews.harness.options import RunOptions
from mews.harness.ports.cluster import Cluster, ComponentsCrashedError
from mews.harness.report.run import Run
from mews.harness.scenario.result import Observer, Result, Verdict
from mews.harness.systems import with_steps
from mews.registry import looking_in

if TYPE_CHECKING:
    from mews.harness.clusters.session import ClusterSession
    from mews.harness.journal import Line
    from mews.harness.scenario.model import Scenario

T = TypeVar("T")
log = logging.getLogger(__name__)


def _ignore(_: object) -> None:
    """Nobody observes."""


class Engine(Struct):
    """``run`` gives a Run for every scenario, whatever happens in it; ``artefacts`` is where failures leave theirs.

    Synchronous, and usable where an event loop runs already: then the run gets a thread of its own.
    """

    options: RunOptions
    artefacts: Path | None = None
    observe: Observer = field(default=_ignore)
    hold: Callable[[Cluster], Coroutine[Any, Any, None]] | None = None
    session: ClusterSession | None = None
    """What the scenarios share; without it each starts its own."""

    def run(self, scenario: Scenario, seed: int | None = None) -> Run:
        """Open a cluster, run, close it. The outermost loop of a run: what breaks in it is the verdict ``error``.

        Raises RequirementError for a cluster that cannot be had, BadInputError for hardware that cannot be read.
        """
        from mews.harness.scenario.errors import ScenarioError

        backend = backend_of(self.options.cluster)
        backend.check_available()
        if self.session is None and backend.needs_session:
            from mews.harness.clusters.session import ClusterSession

            with ClusterSession(keep=self.options.keep) as session:
                return replace(self, session=session).run(scenario, seed)
        seed = scenario.seed if seed is None else seed
        began_s = time.monotonic()
        opened: list[Cluster] = []

        async def main() -> Run:
            return await self._run(scenario, seed, opened)

        try:
            halts = self.options.halt is not None
            return in_own_loop(main, virtual=self.options.time == "virtual", order=scenario.order, halts=halts)
        except ScenarioError as error:
            raise BadInputError(str(error)) from error
        except (BadInputError, RequirementError):
            raise
        except ComponentsCrashedError as error:
            first, *_ = text = str(error).splitlines()
            wall_s = time.monotonic() - began_s
            run = self.broken(scenario, seed, first, report="\n".join(text), wall_s=wall_s, verdict="failed")
            return run if error.cluster is None else _as_far_as(run, scenario, error.cluster)
        except Exception as error:
            lacks = lacking(error) if isinstance(error, ModuleNotFoundError) else None
            if lacks is not None:
                raise lacks from error
            if exhausted(error):
                raise BadInputError(exhausted_line(f"scenario {scenario.name}")) from error
            log.error("scenario %s, seed %s: %s", scenario.name, seed, traceback.format_exc())
            report = "".join(traceback.format_exception(error))
            wall_s = time.monotonic() - began_s
            run = self.broken(scenario, seed, f"{type(error).__name__}: {error}", report=report, wall_s=wall_s)
            return _as_far_as(_after_last(run, opened[0]), scenario, opened[0]) if opened else _not_opened(run)

    def attempt(self, scenario: Scenario, seed: int) -> Run:
        """Return the same as one of several: what this machine lacks for it skips it, and what is found wrong with its
        files only now breaks it; neither keeps the others from running."""
        try:
            return self.run(scenario, seed)
        except RequirementError as error:
            return self.lacking(scenario, seed, str(error))
        except BadInputError as error:
            return replace(self.broken(scenario, seed, str(error)), bad_input=True)

    async def _run(self, scenario: Scenario, seed: int, opened: list[Cluster]) -> Run:
        with looking_in(scenario.folder):
            return await self._run_there(scenario, seed, opened)

    async def _run_there(self, scenario: Scenario, seed: int, opened: list[Cluster]) -> Run:
        from mews.harness.clusters import open_cluster
        from mews.harness.scenario.requirements import foreseen
        from mews.harness.scenario.runner import run_scenario

        options = self.options
        dialect = options.dialect or scenario.stack.dialect or DEFAULT
        way = {"cluster": options.cluster, "time": options.time, "dialect": dialect}
        lacking = foreseen(scenario, **way, speed=options.speed)
        if lacking is not None:
            return Run(self._result(scenario, seed, "skipped", lacking))
        cluster = await open_cluster(scenario, options, seed=seed, session=self.session)
        opened.append(cluster)
        try:
            result = await run_scenario(scenario, cluster, seed=seed, observer=self.observe, artefacts=self.artefacts)
            lines = with_steps(cluster.journal.lines(), cluster.systems)
            if self.hold is not None:
                await self.hold(cluster)
        finally:
            await cluster.close()
        run = Run(result, lines)
        if result.artefacts is not None:
            from mews.harness.report.html import write_report

            # A full disk changes no verdict; the runner has said what it could not write.
            with contextlib.suppress(OSError):
                write_report(run, result.artefacts)
        return run

    def lacking(self, scenario: Scenario, seed: int, reason: str) -> Run:
        """Return the run that is skipped for what this machine lacks."""
        return Run(self._result(scenario, seed, "skipped", reason), lacks=reason)

    def broken(
        self,
        scenario: Scenario,
        seed: int,
        reason: str,
        *,
        report: str = "",
        wall_s: float = 0.0,
        verdict: Verdict = "error",
    ) -> Run:
        """Return the run that came to nothing, for that reason."""
        return Run(replace(self._result(scenario, seed, verdict, reason), wall_s=wall_s, report=report))

    def _result(self, scenario: Scenario, seed: int, verdict: Verdict, reason: str) -> Result:
        return Result(
            scenario=scenario.name,
            path=str(scenario.path or ""),
            cluster=self.options.cluster,
            time=self.options.time,
            seed=seed,
            verdict=verdict,
            reason=reason,
        )


def _after_last(run: Run, cluster: Cluster) -> Run:
    """Return the run with the line after which it broke: of one whose clock stands, the last thing that happened."""
    lines = cluster.journal.lines()
    if not lines:
        return run
    last = {"line": lines[-1].number, **lines[-1].as_dict()}
    reason = f"{run.result.reason} (after line {last['line']}: {last['actor']} {last['event']})"
    return replace(run, result=replace(run.result, reason=reason, failure={"line": last}))


def _not_opened(run: Run) -> Run:
    """Return the run whose cluster could not even be made, with the one line that says so."""
    from mews.harness.journal import Line

    fields = {"step": 0, "do": "start", "reason": run.result.reason}
    line = Line(0, 0.0, "step", run.result.scenario, "failed", fields)
    failure = {"line": {"line": line.number, **line.as_dict()}}
    return replace(run, result=replace(run.result, failure=failure), lines=[line])


def _as_far_as(run: Run, scenario: Scenario, cluster: Cluster) -> Run:
    """Return a run that broke off, or whose cluster did not come up, with the journal until then and what the laws say
    of it."""
    from mews.harness.scenario.runner import judged_start

    result, lines = judged_start(scenario, cluster, run.result), cluster.journal.lines()
    if result.failure is None:
        result = replace(result, failure=_not_ready(lines))
    return replace(run, result=result, lines=with_steps(lines, cluster.systems))


def _not_ready(lines: Sequence[Line]) -> dict[str, Any] | None:
    """Return the last that was heard of the first node that is not ready."""
    from mews.harness.scenario.chain import chain_of, stop_of

    ready = {line.actor: line for line in lines if line.event == "condition" and line.fields["type"] == "Ready"}
    nodes = [actor for actor, line in ready.items() if line.fields["status"] != "True"]
    chain = chain_of(lines, nodes[:1])
    stop = stop_of(chain)
    if stop is None:
        return None
    numbered = [{"line": line.number, **line.as_dict()} for line in chain]
    return {"chain": numbered, "stop": next(line for line in numbered if line["line"] == stop.number)}


def in_own_loop(main: Callable[[], Coroutine[Any, Any, T]], *, virtual: bool, order: int = 0, halts: bool = False) -> T:
    """Run a coroutine to its end on a fresh loop, in a fresh thread if this one has a running loop. ``order`` and
    ``halts`` are those of ``run_virtual``."""
    run: Callable[[Callable[[], Coroutine[Any, Any, T]]], T] = (
        partial(run_virtual, order=order, halts=halts) if virtual else _run_wall
    )
    if not _loop_runs():
        return run(main)
    answers: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(run(main))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            errors.append(error)

    thread = threading.Thread(target=work, name="mews-run")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def _run_wall(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return it as ``asyncio.run``; SIGTERM ends it as Ctrl-C does, so that nothing is left running."""

    async def ended_by_signal() -> T:
        task = asyncio.current_task()
        if task is not None and threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await main()

    try:
        return asyncio.run(ended_by_signal())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
