"""Running a scenario on a cluster: its steps, its workload, its metrics, and the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mews.descriptors import exhausted
from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.errors import RequirementError
from mews.harness.extras import lacking
from mews.harness.invariants import Bounds, Oracle
from mews.harness.invariants.reactions import built_in, computed_bounds, hardware_spans
from mews.harness.invariants.systems import bounds_of
from mews.harness.journal import Line
from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.actions import Step
from mews.harness.scenario.artefacts import keep
from mews.harness.scenario.chain import stop_of
from mews.harness.scenario.disruptions import Disruptions, not_done
from mews.harness.scenario.driver import Driver
from mews.harness.scenario.errors import CapabilityError, Failure, ScenarioError, StepFailedError
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.metrics import bound_broken, hardware_metrics, workload_metrics
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.performing import perform
from mews.harness.scenario.reading import evidence_text, shortened
from mews.harness.scenario.requirements import demand
from mews.harness.scenario.result import Observer, Result, StepProgress, Verdict
from mews.harness.scenario.step_context import StepContext
from mews.harness.scenario.steps import apply_objects
from mews.harness.scenario.trace import read_trace
from mews.harness.scenario.unrest import unrest
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.quantities import parse
from mews.kube.api.resources import NODES

log = logging.getLogger(__name__)

_MENDING = ("kill", "start", "restart")
"""Steps that may follow on the end of a program: they are about that."""

_WORST: tuple[Verdict, ...] = ("passed", "skipped", "failed", "error")


class _Ending(Struct):
    """The verdict as it forms: the first of the worst counts."""

    verdict: Verdict = "passed"
    reason: str = ""
    reports: list[str] = field(default_factory=list)
    failure: dict[str, Any] | None = None

    def add(self, verdict: Verdict, reason: str, report: str = "", *, failure: dict[str, Any] | None = None) -> None:
        if _WORST.index(verdict) > _WORST.index(self.verdict):
            self.verdict, self.reason, self.failure = verdict, reason, failure
        self.reports.append(report or reason)


async def run_scenario(
    scenario: Scenario,
    cluster: Cluster,
    *,
    seed: int | None = None,
    observer: Observer | None = None,
    artefacts: Path | None = None,
) -> Result:
    """Run a scenario to its end on a running cluster and judge it. Never raises for what the run does: a step that
    fails is ``failed``, a scenario that cannot be carried out ``error``, a missing feature ``skipped``.

    ``seed`` is the one that the cluster was opened with; ``artefacts`` is where a folder is written on failure.
    """
    run = _Run(scenario, cluster, observer)
    wall = time.perf_counter()
    start = asyncio.get_running_loop().time()
    metrics = await run.to_the_end()
    virtual = asyncio.get_running_loop().time() - start if cluster.time == "virtual" else None
    result = Result(
        scenario=scenario.name,
        path=str(scenario.path or ""),
        cluster=cluster.name,
        time=cluster.time,
        seed=scenario.seed if seed is None else seed,
        verdict=run.ending.verdict,
        reason=run.ending.reason,
        virtual_s=None if virtual is None else round(virtual, 6),
        wall_s=time.perf_counter() - wall,
        metrics=metrics,
        expected={str(name): bound.of for name, bound in scenario.metrics.items() if bound.of is not None},
        violations=tuple(run.violations),
        known=tuple(run.known),
        report="\n\n".join(run.ending.reports),
        failure=run.ending.failure,
        evidence=run.evidence,
        ignored=_left_out(scenario, cluster.name),
    )
    if artefacts is not None and result.verdict in ("failed", "error"):
        result = await _kept(cluster, result, artefacts)
    return result


class _Run:
    """One run; ``ending`` forms as it goes on."""

    def __init__(self, scenario: Scenario, cluster: Cluster, observer: Observer | None) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._observer = observer
        self._number = 0
        self._cleaning = False
        self._steps = all_steps(scenario)
        loop = asyncio.get_running_loop()
        self._stage = StepContext(scenario, cluster, loop.time() + scenario.timeout, first_line=len(cluster.journal))
        self._disruptions = Disruptions(self._stage, len(self._steps))
        self.ending = _Ending()
        self.evidence: dict[str, str] = {}
        self.violations: list[dict[str, Any]] = []
        self.known: list[dict[str, Any]] = []

    async def to_the_end(self) -> dict[str, Any]:
        """Return the metrics; the verdict is in ``ending``, what the oracle found in ``violations`` and ``known``."""
        metrics: dict[str, Any] = {}
        async with self._judged():
            await demand(self._scenario, self._cluster)
            bounds = bounds_for(self._scenario, self._cluster)
            by_laws = self._scenario.judged_by != "checks"
            oracle = Oracle(self._cluster, bounds=bounds, named=self._scenario.invariants, by_laws=by_laws)
            await oracle.start()
            try:
                async with self._judged():
                    await self._play()
                if self.ending.verdict in ("failed", "error"):
                    await self._do_all(self._scenario.catch, evidence=True)
                await self._do_all(self._scenario.finally_)
                async with self._judged():
                    metrics = await self._measure()
            finally:
                await self._disruptions.close()
                self.violations = [violation.as_dict() for violation in await oracle.finish()]
                self.known = [violation.as_dict() for violation in oracle.known]
                self._condemn(self.violations)
                if self._stage.driver is not None:
                    await self._stage.driver.close()
        return metrics

    @contextlib.asynccontextmanager
    async def _judged(self) -> AsyncIterator[None]:
        """Turn what goes wrong within into the verdict. The outermost loop of a run: nothing gets past it."""
        try:
            yield
        except StepFailedError as error:
            failure = error.failure
            reason, report = self._placed(failure.reason), self._placed(failure.report)
            self.ending.add("failed", reason, report, failure=self._located(failure))
        except (CapabilityError, RequirementError) as error:
            self.ending.add("skipped", str(error))
        except (ScenarioError, ApiError, UnavailableError) as error:
            self.ending.add("error", self._placed(str(error)))
        except Exception as error:
            if exhausted(error):
                raise
            lacks = lacking(error) if isinstance(error, ModuleNotFoundError) else None
            if lacks is not None:
                self.ending.add("skipped", str(lacks))
                return
            log.error("scenario %s: %s", self._scenario.name, traceback.format_exc())
            self.ending.add("error", self._placed(f"{type(error).__name__}: {error}"), traceback.format_exc())

    def _placed(self, text: str) -> str:
        if not 0 < self._number <= len(self._steps):
            return text
        step = self._steps[self._number - 1]
        name = f" ({step.name})" if step.name else ""
        return f"step {self._number} {step.action}{name}: {text}"

    def _located(self, failure: Failure) -> dict[str, Any] | None:
        """Return the failure with the step that it is of, for reports."""
        if not 0 < self._number <= len(self._steps):
            return None
        step = self._steps[self._number - 1]
        return {
            "step": self._number,
            "steps": len(self._steps),
            "do": step.action,
            "name": step.name,
            "awaited": failure.awaited,
            "seen": failure.seen,
            "waited_s": failure.waited_s,
            "deadlock": failure.deadlock,
            "hint": failure.hint,
            "line": None if failure.line is None else _numbered(failure.line),
            "chain": [_numbered(line) for line in failure.chain],
            "stop": None if (stop := stop_of(failure.chain)) is None else _numbered(stop),
        }

    async def _play(self) -> None:
        workload = self._scenario.workload
        if workload is not None:
            jobs = read_trace(workload, str(self._scenario.path or self._scenario.name))
            template = workload.pod.pooling(self._scenario.stack.pooled)
            if template.resource is None and any(job.gpus for job in jobs):
                raise ScenarioError("workload.pod.resource: must be named: the stack has no system that pools devices")
            self._stage.driver = Driver(self._cluster, workload, jobs, self._scenario.name, template=template)
        await apply_objects(self._stage, self._scenario.objects)
        self._disruptions.begin()
        for step in self._steps[: len(self._steps) - len(self._scenario.catch) - len(self._scenario.finally_)]:
            await (self._do(step) if self._scenario.judged_by == "checks" else self._try(step))
        self._number = 0
        await self._disruptions.done()
        await asyncio.sleep(self._cluster.pace.loop_s(self._scenario.tail))
        self._check_disruptions()
        self._check_quiet()
        self._check_brought("the scenario to end")

    async def _try(self, step: Step) -> None:
        """Do a step whose failing ends nothing, unless waits decide and it is one: such a one has its time from the
        last moment at which something was done beside it."""
        number = self._number
        while True:
            begun = self._disruptions.over
            try:
                await self._do(step)
                return
            except StepFailedError:
                if step.action != "wait" or self._scenario.judged_by == "laws":
                    return
                if self._disruptions.over == begun and not self._disruptions.is_pending:
                    raise
            self._number = number

    def _check_disruptions(self) -> None:
        """Raise what kept a disruption from coming off, where all checks decide; the journal shows it in any case."""
        if self._scenario.judged_by != "checks":
            return
        for place, error in not_done(self._disruptions.failed):
            if isinstance(error, StepFailedError):
                raise StepFailedError(replace(error.failure, awaited=f"{place}: {error.failure.awaited}")) from error
            raise ScenarioError(f"{place}: {error}") from error

    def _check_quiet(self) -> None:
        """Raise StepFailedError where something goes round at the end of the run."""
        quiet_s, journal = self._scenario.quiet, self._cluster.journal
        found = unrest(journal.lines(self._stage.first_line), journal.elapsed_s - quiet_s) if quiet_s else None
        if found is not None:
            line, often = found.first, f"{found.count} times {found.first.layer} {found.first.event}"
            raise StepFailedError(
                Failure("the run to come to rest", f"{often} in {quiet_s:g} s: {line.actor}", line=line)
            )

    def _check_brought(self, awaited: str) -> None:
        """Raise StepFailedError where a program of the user's has ended by itself."""
        crash = self._stage.brought.crash()
        if crash is not None:
            raise StepFailedError(Failure(awaited, "it runs no more", crash=crash.text, output=crash.output))

    async def _do_all(self, steps: Sequence[Step], *, evidence: bool = False) -> None:
        """Steps of which each gets its turn and its time, whatever happened. What they came to is ``evidence``."""
        self._number = len(self._steps) - len(self._scenario.finally_) - (len(steps) if evidence else 0)
        self._cleaning = True
        for step in steps:
            # Whatever happened, each of them gets its time.
            self._stage.deadline_s = max(
                self._stage.deadline_s, asyncio.get_running_loop().time() + self._scenario.step_timeout
            )
            async with self._judged():
                result = await self._do(step)
                if evidence and result is not None:
                    name = f"catch-{self._number}-{step.name or step.action}"
                    self.evidence[name] = evidence_text(result)
                    self.ending.reports.append(f"{self._placed('')}\n{shortened(self.evidence[name])}".strip())

    async def _do(self, step: Step) -> Any:
        self._number += 1
        self._notify(step)
        if not self._cleaning:
            self._disruptions.begun(self._number - 1, step.name)
        try:
            if step.action not in _MENDING and not self._cleaning:
                self._check_brought(f"{step.action} to begin")
            result = await perform(self._stage, step, number=self._number, actor=self._scenario.name)
        except StepFailedError as error:
            self._notify(step, verdict="failed", reason=error.failure.reason)
            raise
        self._notify(step, verdict="passed")
        return result

    def _notify(self, step: Step, *, verdict: Any = None, reason: str = "") -> None:
        if self._observer is not None:
            self._observer(
                StepProgress(
                    scenario=self._scenario.name,
                    step=self._number,
                    steps=len(self._steps),
                    do=step.action,
                    name=step.name,
                    t=self._cluster.journal.elapsed_s,
                    verdict=verdict,
                    reason=reason,
                )
            )

    async def _measure(self) -> dict[str, Any]:
        self._number = 0
        lines = self._cluster.journal.lines(self._stage.first_line)
        metrics: dict[str, Any] = {**self._cluster.metrics(), **hardware_metrics(lines)}
        for each in self._cluster.systems:
            metrics |= each.system.measuring.metrics(lines, self._cluster.pace.speed)
        if self._stage.driver is not None and self._stage.driver.started:
            nodes = (await self._cluster.kube.list(NODES)).items
            cpus = sum(float(parse((node.get("status") or {}).get("capacity", {}).get("cpu", 0))) for node in nodes)
            metrics = {**workload_metrics(self._stage.driver.times(), cpus), **metrics}
        if self.ending.verdict == "passed" and self._scenario.judged_by == "checks":
            for name, bound in self._scenario.metrics.items():
                broken = bound_broken(name, bound, metrics)
                if broken:
                    self.ending.add("failed", f"metrics: {broken}")
        return metrics

    def _condemn(self, violations: Sequence[dict[str, Any]]) -> None:
        expected = self._scenario.expects
        broken = {each["invariant"] for each in (*violations, *self.known) if "hasFailed" not in each}
        missing = {*expected} - broken if self._scenario.judged_by == "checks" else ()
        for number in sorted(missing):
            self.ending.add("failed", f"invariant {number} was expected to be broken, and was not")
        for violation in violations:
            if violation["invariant"] in expected and "hasFailed" not in violation:
                violation["expected"] = True
                continue
            self.ending.add("failed", f"invariant {violation['invariant']} ({violation['name']}): {violation['what']}")


def bounds_for(scenario: Scenario, cluster: Cluster) -> Bounds:
    """Return the invariants' bounds: as the scenario says, else as they follow from the configuration. What it says of
    a system that does not run binds nobody."""
    theirs = bounds_of(cluster.systems)
    of_checks = scenario.judged_by == "checks"  # a bound holds for what the steps do themselves
    given = {
        name: value
        for name, value in scenario.bounds.items()
        if name in (*Bounds.names(), *theirs) and (of_checks or value is None)
    }
    hardware, speed = hardware_of(scenario), cluster.pace.speed
    computed = computed_bounds(cluster.systems, hardware, speed)
    bounds = Bounds.of({**computed, **given}, theirs)
    return replace(bounds, spans=hardware_spans(hardware, speed), built_in=built_in(hardware))


def judged_start(scenario: Scenario, cluster: Cluster, result: Result) -> Result:
    """Return the result of a cluster that did not come up, with what its journal says of the laws."""
    oracle = Oracle(cluster, bounds=bounds_for(scenario, cluster), named=scenario.invariants)
    oracle.read()
    found, known = ([each.as_dict() for each in which] for which in (oracle.violations, oracle.known))
    return replace(result, violations=tuple(found), known=tuple(known))


def _left_out(scenario: Scenario, cluster: str) -> tuple[dict[str, str], ...]:
    if cluster == DEFAULT_BACKEND:
        return ()  # what the others are held against; a run in virtual time does not load their tables
    from mews.harness.scenario.accounts.clusters import left_out

    return tuple(each.as_dict() for each in left_out(scenario, cluster))


def _numbered(line: Line) -> dict[str, Any]:
    return {"line": line.number, **line.as_dict()}


def all_steps(scenario: Scenario) -> tuple[Step, ...]:
    """Return the steps as they are done: a workload that no step mentions is run after the others."""
    mentioned = any(step.workload for step in scenario.steps)
    run = (Step(workload="run"),) if scenario.workload is not None and not mentioned else ()
    return (*scenario.steps, *run, *scenario.catch, *scenario.finally_)


async def _kept(cluster: Cluster, result: Result, folder: Path) -> Result:
    """Return it with its artefacts; a full disk or a folder that is read-only changes no verdict."""
    try:
        return replace(result, artefacts=await keep(cluster, result, folder))
    except OSError as error:
        complaint = f"artefacts cannot be written: {error.filename or folder}: {error.strerror}"
        return replace(result, report=f"{result.report}\n{complaint}".strip())
