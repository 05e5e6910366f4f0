"""Plays the scenarios that an experiment of a system asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from mews.harness.catalogue.files import shipped
from mews.harness.engine import Engine
from mews.harness.experiments.accounting import accounted
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.trace import TraceJob, read_trace
from mews.kube.system.experiment import PlayedScenario, ScenarioTask


class ScenarioFailedError(Exception):
    """A scenario of an experiment did not pass; one line."""


def play(keep: Callable[[ScenarioTask, PlayedScenario], Any], task: ScenarioTask, *, may_fail: bool = False) -> Any:
    """Return what ``keep`` keeps of the scenario's run.

    Raises ScenarioFailedError unless it passes, or may fail.
    """
    scenario = scenario_of(task)
    run, cpu = _run(scenario, task)
    result = run.result
    if result.verdict != "passed" and not may_fail:
        raise ScenarioFailedError(f"scenario {scenario.name}, seed {task.seed}: {result.verdict}: {result.reason}")
    jobs = [_job(job) for job in read_trace(scenario.workload, scenario.name)] if scenario.workload else []
    return keep(
        task, PlayedScenario(result.verdict, result.reason, result.metrics, result.expected, jobs, run.lines, cpu)
    )


def _run(scenario: Scenario, task: ScenarioTask) -> tuple[Run, Mapping[str, Sequence[float]]]:
    if task.speed is not None:
        return Engine(RunOptions(time="wall", speed=task.speed)).run(scenario, task.seed), {}
    if task.cpu_every_s is None:
        return Engine(RunOptions()).run(scenario, task.seed), {}
    with accounted(task.cpu_every_s) as account:
        run = Engine(RunOptions(time="wall")).run(scenario, task.seed)
    return run, dict(account.shares)


def _job(job: TraceJob) -> dict[str, Any]:
    return {**asdict(job), "cpus": job.cpu_cores}


def scenario_of(task: ScenarioTask) -> Scenario:
    """Return the scenario of a task, with its overrides.

    Raises ScenarioError.
    """
    if not isinstance(task.scenario, str):
        return parse_scenario(json.dumps(task.scenario), Path("experiment.yaml"), task.overrides)
    path = shipped("scenario", task.scenario)
    if path is None:
        raise ScenarioError(f"{task.scenario}: no included scenario has that name")
    return load_scenario(path, task.overrides)
