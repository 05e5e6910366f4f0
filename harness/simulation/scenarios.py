"""A scenario's workload as a trace: its hardware, types, gate and testbed, and the policy of its pods' scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from mews.harness.errors import BadInput
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import file_of, load_scenarios
from mews.harness.scenario.model import Scenario, Workload
from mews.harness.scenario.stack import INSTANT
from mews.harness.simulation.columns import MEWS, Defaults, TraceJobType
from mews.harness.simulation.engine import SubmissionGate
from mews.harness.simulation.policies import DEFAULT
from mews.harness.simulation.run import KUBELET, SimulationPlan
from mews.kube.api.quantities import parse
from mews.kube.scheduling.podinfo import amount
from mews.systems import registry

_MIB = 1024 * 1024


def plan_of_scenario(path: Path) -> tuple[SimulationPlan, str | None]:
    """The plan, and the policy that places its pods: None where no system of its stack plays traces.

    Raises BadInput.
    """
    try:
        (scenario,) = load_scenarios([file_of("scenario", path)])
        workload = scenario.workload
        if workload is None or workload.trace is None:
            raise BadInput(f"{path}: workload.trace: missing: there are no jobs to play")
        plan = SimulationPlan(
            trace=Path(workload.trace),
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
        policy, options = _policy(path, scenario)
    except ScenarioError as error:
        raise BadInput(str(error)) from error
    return replace(plan, options=options), policy


def _policy(path: Path, scenario: Scenario) -> tuple[str | None, Mapping[str, str]]:
    """The policy, and its options as the scenario's stack has them."""
    workload = scenario.workload
    assert workload is not None
    if workload.pod.scheduler_name == "default-scheduler":
        return DEFAULT, {}
    for name, options in scenario.stack.systems.items():
        for policy in registry.system(name).trace_policies():
            try:
                return policy.name, policy.of_stack(options)
            except ValueError as error:
                raise BadInput(f"{path}: stack.{name}: {error}") from None
    return None, {}


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
