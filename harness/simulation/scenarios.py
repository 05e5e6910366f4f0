"""A scenario's workload as a trace: its hardware, types, gate and testbed, and the policy of its pods' scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mews.harness.catalogue.files import file_of
from mews.harness.errors import BadInputError
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.harness.scenario.accounts.account import UnplayedKey
from mews.harness.scenario.accounts.keys import given_keys
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import load_scenarios
from mews.harness.scenario.model import Scenario, Workload
from mews.harness.scenario.stack import INSTANT
from mews.harness.simulation.account import account_of
from mews.harness.simulation.columns import MEWS, Defaults, TraceJobType
from mews.harness.simulation.engine import SubmissionGate
from mews.harness.simulation.policies import BASELINES, DEFAULT
from mews.harness.simulation.run import KUBELET, SimulationPlan
from mews.kube.api.quantities import parse
from mews.kube.scheduling.podinfo import amount
from mews.kube.system.simulation import TracePolicy

_MIB = 1024 * 1024


class ScenarioTrace(Struct, frozen=True):
    """``policy`` places the jobs of the scenario; ``ignored`` are its keys that a trace leaves out."""

    plan: SimulationPlan
    policy: str
    ignored: tuple[UnplayedKey, ...] = ()


def trace_of_scenario(path: Path, chosen: str | None = None) -> ScenarioTrace:
    """Return the scenario as a trace. ``chosen`` is ``--policy``, where it is given.

    Raises BadInputError, a line for each key that would change what is played and that no trace has.
    """
    try:
        (scenario,) = load_scenarios([file_of("scenario", path)])
        workload = scenario.workload
        if workload is None or workload.trace is None:
            raise BadInputError(f"{path}: workload.trace: missing: there are no jobs to play")
        found = _placing(scenario)
        if found is None and chosen is None:
            raise BadInputError(f"{path}: {_nobody(scenario)}")
        system, policy = found or (None, None)
        others = [name for name in (chosen or "").split(",") if policy is None or name.strip() != policy.name]
        own = policy is not None and (chosen is None or len(others) < len(chosen.split(",")))
        account = account_of(scenario, policy, system, None if own else chosen)
        wrong = account.refused(scenario)
        if wrong:
            raise BadInputError(
                "\n".join(f"{path}: {each.key}: mews simulate does not play it: {each.why}" for each in wrong)
            )
        options = {} if policy is None or not own else _options(path, scenario, system, policy)
        plan = replace(_plan(scenario, workload), options=options)
    except ScenarioError as error:
        raise BadInputError(str(error)) from error
    left = list(account.ignored(scenario))
    if own and chosen is not None and others:
        left += _without(scenario, system, ", ".join(others))
    return ScenarioTrace(plan, chosen or (policy.name if policy else DEFAULT), tuple(left))


def _without(scenario: Scenario, system: str | None, others: str) -> list[UnplayedKey]:
    """Return what of the stack one of several policies honours, and the others do not."""
    theirs = [key for key in given_keys(scenario) if key.place[:2] == ("stack", system)]
    return [UnplayedKey(".".join(key.place), f"--policy {others} is played without it") for key in theirs]


def _plan(scenario: Scenario, workload: Workload) -> SimulationPlan:
    return SimulationPlan(
        trace=Path(str(workload.trace)),
        form=MEWS,
        hardware=hardware_of(scenario),
        defaults=_defaults(workload),
        select={name: str(value) for name, value in workload.select.items()},
        order="fcfs" if workload.gate.pending else "any",
        retry="kube",
        costs=KUBELET if scenario.stack.profile in (None, INSTANT) else str(scenario.stack.profile),
        gate=SubmissionGate(workload.gate.every) if workload.gate.pending else None,
        seed=scenario.seed,
        ready_first=True,
    )


def _placing(scenario: Scenario) -> tuple[str | None, TracePolicy] | None:
    """Return the policy that places the jobs, with the system whose scheduler their pods name; None where there is
    none."""
    assert scenario.workload is not None
    wanted = scenario.workload.pod.pooling(scenario.stack.pooled).scheduler_name
    if wanted == DEFAULT_SCHEDULER:
        return None, BASELINES[DEFAULT]
    for each in scenario.stack.configured(facility_of(hardware_of(scenario))):
        answers = [made.scheduler(each.configuration) for _, made in each.components() if made.scheduler is not None]
        if wanted in answers:
            return next(((each.system.name, policy) for policy in each.system.studies.trace_policies()), None)
    return None


def _nobody(scenario: Scenario) -> str:
    assert scenario.workload is not None
    name = scenario.workload.pod.pooling(scenario.stack.pooled).scheduler_name
    return f"workload.pod.schedulerName: {name!r}: no system of the stack plays traces as that scheduler; give --policy"


def _options(path: Path, scenario: Scenario, system: str | None, policy: TracePolicy) -> Mapping[str, str]:
    """Return the policy's options as the scenario's stack has them."""
    if system is None:
        return {}
    try:
        return policy.of_stack(scenario.stack.systems[system])
    except ValueError as error:
        raise BadInputError(f"{path}: stack.{system}: {error}") from None


def _defaults(workload: Workload) -> Defaults:
    types = {
        name: TraceJobType(
            devices=kind.gpus,
            cpu_milli=int(parse(kind.cpus) * 1000),
            memory_mib=-(-amount("memory", kind.memory) // _MIB) if kind.memory else 0,
            duration_s=kind.duration,
        )
        for name, kind in workload.types.items()
    }
    return Defaults(types, workload.duration, workload.duration_per_gpu)
