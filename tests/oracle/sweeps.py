"""The worlds: each fault alone, pairs of faults, and schedules of everything, each given by its number alone."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mews.scenarios
from mews.harness.catalogue.files import shipped
from mews.harness.fuzz.faults import KINDS, admits
from mews.harness.options import RunOptions
from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.loader import find_scenarios, load_scenario, parse_scenario
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.requirements import foreseen
from tests.oracle.actions import Action, a_fault, a_schedule, moment
from tests.oracle.play import Outcome, Tamper, play
from tests.oracle.worlds import scenario_text

FOLDER = Path(mews.scenarios.__file__).parent
LONG = ("testbed/",)
"""Replays of hours; the pairs and schedules leave them out, each fault alone meets them too."""
LENGTHS_S = (60.0, 120.0, 300.0)
"""Of a schedule."""
TAILS_S = (60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 400.0, 1500.0)
"""How long a world goes on after its steps."""
HARDWARE = ("demo", "two-pools", "testbed", "unattached", "multi-chassis")
STACKS = ("{}", "{kubecomp: {config: {partial: true}}}", "{kubecomp: {config: {policy: best-fit}}}")


@dataclass(frozen=True, slots=True)
class Case:
    """One world, as it is named on the command line: ``single:FAULT:SCENARIO:SEED``, ``pair:SEED``, ``schedule:SEED``
    (of KubeComp), ``schedule:SYSTEM:SEED``."""

    sort: str
    seed: int
    fault: str = ""
    scenario: str = ""
    system: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.sort, self.system, self.fault, self.scenario, str(self.seed))))


def case_of(text: str) -> Case:
    """The case of that name."""
    sort, *middle, seed = text.split(":")
    if sort == "schedule" and middle:
        return schedule(middle[0], int(seed))
    return Case(sort, int(seed), *middle)


def schedule(system: str, seed: int) -> Case:
    """Everything that may befall a cluster of that system (``worlds.SYSTEMS``)."""
    return Case("schedule", seed, system="" if system == "kubecomp" else system)


@cache
def scenarios() -> tuple[str, ...]:
    """The shipped scenarios that run in virtual time and have chassis."""
    found = []
    for path in find_scenarios([FOLDER]):
        name = str(path.relative_to(FOLDER))
        scenario = _load(name)
        dialect = scenario.stack.dialect or "h3api"
        lacking = foreseen(scenario, cluster=RunOptions().cluster, time="virtual", dialect=dialect)
        if lacking is None and hardware_of(scenario).chassis:
            found.append(name)
    return tuple(found)


@cache
def _load(name: str) -> Scenario:
    return load_scenario(FOLDER / name)


def singles(seeds: Sequence[int], *, long: bool = True) -> Iterator[Case]:
    """Each fault alone in every shipped scenario whose hardware admits it."""
    for name in scenarios():
        hardware = hardware_of(_load(name))
        if long or not name.startswith(LONG):
            for kind in KINDS:
                if admits(kind, hardware):
                    yield from (Case("single", seed, kind, name) for seed in seeds)


def run(case: Case, tamper: Tamper | None = None, *, tail_at_most_s: float = math.inf) -> Outcome:
    """Play that world. Some go on until the longest clocks have run out, unless that is cut short."""
    rng = random.Random(f"{case}")
    tail_s = min(rng.choice(TAILS_S), tail_at_most_s)
    draw: Callable[[Cluster], Sequence[Action]]
    if case.sort == "schedule":
        length_s = rng.choice(LENGTHS_S)
        scenario = _of_system(case.system, rng, length_s) if case.system else _empty(rng, length_s)
        hardware = hardware_of(scenario)

        def draw(cluster: Cluster) -> Sequence[Action]:
            components = sorted(cluster.components())
            return a_schedule(hardware, components, rng, length_s, case.system or "kubecomp")

        return play(scenario, case.seed, draw, tail_s=tail_s, tamper=tamper)
    name = case.scenario or rng.choice([name for name in scenarios() if not name.startswith(LONG)])
    scenario = _load(name)
    hardware = hardware_of(scenario)
    kinds = [case.fault] if case.fault else rng.sample([kind for kind in KINDS if admits(kind, hardware)], 2)

    def draw(cluster: Cluster) -> Sequence[Action]:
        return [a_fault(kind, hardware, rng, moment(rng, len(scenario.steps))) for kind in kinds]

    return play(scenario, case.seed, draw, tail_s=tail_s, tamper=tamper)


def _of_system(system: str, rng: random.Random, length_s: float) -> Scenario:
    return parse_scenario(scenario_text(system, rng, length_s), FOLDER / "schedule.yaml")


def _empty(rng: random.Random, length_s: float) -> Scenario:
    name = rng.choice(HARDWARE)
    path = shipped("hardware", name)
    if path is None:
        raise ScenarioError(f"{name}: no such hardware")
    profile = ", profile: falcon-4005" if name == "demo" and rng.random() < 0.5 else ""
    text = (
        "apiVersion: mews/v1\nkind: Scenario\nmetadata: {name: schedule}\n"
        f"hardware: {{file: {name}{profile}}}\nstack: {rng.choice(STACKS)}\nsteps: [{{sleep: {length_s:g}}}]\n"
    )
    return parse_scenario(text, path.parent / "schedule.yaml")
