"""What is done to a run beside its scenario, drawn by seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mews.emulator.hardware.inventory import Hardware
from mews.harness.fuzz.faults import KINDS, draw_fault
from tests.oracle.worlds import workload

LATEST_S = 60.0
"""How long after a step began a fault may come."""


@dataclass(frozen=True, slots=True)
class Action:
    """``do`` is fault, host-fault, edit, kill, create, delete, apply, remove or clear; it comes ``after_s`` after step
    ``step`` began, or the run's end if that is first."""

    step: int
    after_s: float
    do: str
    on: str = ""
    given: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"step {self.step} + {self.after_s:g} s: {self.do} {self.on} {dict(self.given)}"


def moment(rng: random.Random, steps: int, latest_s: float = LATEST_S) -> tuple[int, float]:
    """A step and a time after its beginning; most are short, so that what follows from a step is met."""
    later_s = rng.choice((0.0, 0.0, rng.uniform(0, 3), rng.uniform(0, latest_s)))
    return rng.randrange(max(steps, 1)), round(later_s, 3)


def a_fault(kind: str, hardware: Hardware, rng: random.Random, when: tuple[int, float]) -> Action:
    """A fault of that kind, with parameters drawn."""
    drawn = draw_fault(kind, hardware, rng)
    return Action(*when, "host-fault" if drawn.is_host else "fault", drawn.on, drawn.spec)


def a_schedule(
    hardware: Hardware, components: Sequence[str], rng: random.Random, length_s: float, system: str = "kubecomp"
) -> list[Action]:
    """Everything that may befall a cluster, in one step of that length."""
    names = [f"pod-{number}" for number in range(rng.randint(3, 8))]
    if system == "kubecomp":
        made = [_a_pod(name, hardware, rng, length_s) for name in names]
    else:
        made = [Action(0, _when(rng, length_s), "apply", name, workload(system, name, rng)) for name in names]
    kinds = dict(zip(names, (action.given.get("kind", "") for action in made), strict=True))
    births_s = [action.after_s for action in made]
    born_s = dict(zip(names, births_s, strict=True))
    for _ in range(rng.randint(2, 6)):
        near_s = max(0.0, rng.choice(births_s) + rng.uniform(-5.0, 15.0))
        at_s = rng.choice((near_s, _when(rng, length_s)))
        made.append(a_fault(rng.choice(KINDS), hardware, rng, (0, round(at_s, 3))))
    for _ in range(rng.randint(0, 3)):
        chassis = rng.choice([one for one in hardware.chassis if one.devices])
        port = rng.choice([None, *(port for port, host in chassis.ports.items() if host)])
        edit = {"device": rng.choice(chassis.devices).id, "port": port}
        made.append(Action(0, _when(rng, length_s), "edit", chassis.name, edit))
    for _ in range(rng.randint(0, 3)):
        down_s = rng.choice((0.0, 5.0, 45.0, 120.0))
        made.append(Action(0, _when(rng, length_s), "kill", rng.choice(components), {"down_s": down_s}))
    for name in rng.sample(names, rng.randint(0, len(names))):
        given = {"kind": kinds[name]} if kinds[name] else {}
        made.append(Action(0, _when(rng, length_s, born_s[name]), "remove" if given else "delete", name, given))
    if rng.random() < 0.3:
        made.append(Action(0, _when(rng, length_s), "clear"))
    return sorted(made, key=lambda action: action.after_s)


def _when(rng: random.Random, length_s: float, since_s: float = 5.0) -> float:
    return round(rng.uniform(since_s, max(length_s, since_s + 1)), 3)


def _a_pod(name: str, hardware: Hardware, rng: random.Random, length_s: float) -> Action:
    gpus = rng.choice((1, 2, 3, 5, 5, 6))
    given = {"gpus": gpus, "duration_s": rng.choice((20, 90, 300, 100000)), "node": ""}
    if rng.random() < 0.3:
        given["node"] = rng.choice([host.name for host in hardware.hosts])
    return Action(0, _when(rng, length_s), "create", name, given)
