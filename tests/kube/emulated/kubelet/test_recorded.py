"""What upstream's own functions make of a thousand situations (``recorded/*.csv``, written by
``tests/upstream/test_kubelet.py``), and ours of the same."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mews.harness.clock import run_virtual
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError
from mews.kube.emulated.kubelet.devices.choice import Need, begin, complete
from mews.kube.emulated.kubelet.devices.errors import DeviceAllocationError
from mews.kube.emulated.kubelet.podstate import PodState, phase_of
from mews.kube.emulated.kubelet.probe import Health
from tests.kube.emulated.kubelet.bench import pod
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, Stand, a_pod, container, sidecar

RECORDED = Path(__file__).parent / "recorded"


def rows(name: str) -> Iterator[dict[str, str]]:
    with (RECORDED / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


# Phases: getPhase of pkg/kubelet/kubelet_pods.go.


def instance(name: str, state: str) -> tuple[ContainerInstance, ...]:
    code = None if state in "rn" else int(state)
    return (ContainerInstance(name, "id", 0, 1.0, None if code is None else 2.0, code),)


def state_of(row: dict[str, str]) -> PodState:
    inits, mains = row["inits"], row["mains"]
    made, instances = list[dict[str, Any]](), dict[str, tuple[ContainerInstance, ...]]()
    health = dict[str, Health]()
    for at in range(0, len(inits), 2):
        name = f"i{at}"
        made.append({"name": name, **({"restartPolicy": "Always"} if inits[at] == "s" else {})})
        if inits[at + 1] != "-":
            instances[name] = instance(name, inits[at + 1])
        if inits[at + 1] == "n":
            health[name] = Health(False, False)
    for number, each in enumerate(mains):
        if each != "-":
            instances[f"m{number}"] = instance(f"m{number}", each)
    containers = [{"name": f"m{number}", "image": "busybox"} for number in range(len(mains))]
    body = pod("a", policy=row["policy"], containers=containers, inits=made)
    return PodState(body, ip="10.0.0.1", up=True, instances=instances, health=health, ended=row["ended"] == "true")


def test_a_pod_has_the_phase_that_upstream_gives_it() -> None:
    situations = list(rows("phases.csv"))
    assert len(situations) > 700
    wrong = [(*row.values(), phase_of(state_of(row))) for row in situations if phase_of(state_of(row)) != row["phase"]]
    assert wrong == []


# Choices: devicesToAllocate of pkg/kubelet/cm/devicemanager/manager.go.


def outcome_of(row: dict[str, str]) -> str:
    need = Need(
        pod_uid="uid",
        container="main",
        resource="example.com/res",
        required=int(row["required"]),
        held=tuple(row["held"]) or None,
        reusable=tuple(row["reusable"]),
        healthy=None if row["healthy"] == "?" else tuple(row["healthy"]),
        allocated=tuple(row["allocated"]),
    )
    rng = random.Random(1)
    try:
        choice = begin(need, rng)
    except DeviceAllocationError as error:
        return str(error)
    if choice is None:
        return ""
    if choice.missing:
        rest = sorted(set(choice.available) - set(choice.chosen), reverse=row["prefers"] == "last")
        preferred = (*sorted(choice.chosen), *rest)[: choice.required] if row["prefers"] else ()
        choice = complete(choice, preferred, rng)
    return "".join(sorted(choice.chosen))


def test_a_container_gets_the_devices_that_upstream_gives_it() -> None:
    situations = list(rows("choices.csv"))
    assert len(situations) > 800
    wrong = []
    for row in situations:
        outcome, expected = outcome_of(row), row["outcome"]
        left_to_chance = expected.startswith("any ")
        if (f"any {len(outcome)}" if left_to_chance else outcome) != expected:
            wrong.append((*row.values(), outcome))
    assert wrong == []


# Admissions: Allocate of the same file, for one container after the other.


async def given_to(shape: str, devices: int) -> str:
    """Containers: "i" a plain init container, "s" a sidecar, "m" a main one, each with how many devices it asks for."""
    stand = await Stand().start()
    stand.node = {"example.com/res": str(devices)}
    plugin = FakePlugin("abcdef"[:devices])
    await stand.plug(plugin)
    inits, mains = list[dict[str, Any]](), list[dict[str, Any]]()
    for at in range(0, len(shape), 2):
        name, count = f"c{at // 2}", int(shape[at + 1])
        made = sidecar(name, count) if shape[at] == "s" else container(name, count)
        (mains if shape[at] == "m" else inits).append(made)
    body = a_pod("pod", *mains, inits=inits)
    stand.pods["pod"] = body
    try:
        await stand.manager.admit(body)
    except AdmissionRejectedError as refused:
        return refused.message.removeprefix("Pod was rejected: Allocate failed due to ").removesuffix(
            ", which is unexpected"
        )
    table = stand.manager._ledger.holdings
    held = [table.of_resource("uid-pod", str(each["name"]), "example.com/res") for each in (*inits, *mains)]
    return " ".join("".join(sorted(each.ids)) if each else "" for each in held)


def test_containers_get_and_take_over_the_devices_that_upstream_gives_them() -> None:
    situations = list(rows("admissions.csv"))
    assert len(situations) > 500

    async def main() -> list[tuple[str, ...]]:
        found = [(*row.values(), await given_to(row["containers"], int(row["devices"]))) for row in situations]
        return [each for each in found if each[-1] != each[-2]]

    assert run_virtual(main) == []
