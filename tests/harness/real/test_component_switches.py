"""Components of a real cluster, killed and started by their keepers or by whoever administers the cluster."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from mews.harness.clusters.real.component_switches import ComponentSwitches
from mews.harness.clusters.real.supervisor import KILL, START
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.scenario.errors import CapabilityError

PODS = {"chassis": "chassis-1", "scheduler": "scheduler-1", "theirs": "theirs-1", "brought": "brought-1"}


class Recorded:
    """Keepers, administrator, chassis and nodes: notes what each is asked."""

    def __init__(self):
        self.asked = []
        self.fails = False
        self.pods = PODS

    def software(self):
        return [name for name in PODS if name != "chassis"]

    def is_kept(self, name):
        return name != "theirs"

    async def signal(self, component, command):
        self.asked.append((component, tuple(command)))
        if self.fails:
            raise RequirementError("not reached")

    async def kill(self, component):
        self.asked.append((component, "killed by the administrator"))

    async def start(self, component):
        self.asked.append((component, "started by the administrator"))

    def killed(self):
        self.asked.append("the chassis are gone")

    async def started(self):
        self.asked.append("the chassis are back")

    async def knows_pods(self, host):
        self.asked.append(f"{host} knows its pods")


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def journal():
    return Journal(lambda: 0.0)


@pytest.fixture
def switches(recorded, journal):
    return made(recorded, journal, ["A"])


def made(recorded, journal, chassis):
    stack = SimpleNamespace(documents={"brought": ()}, programs={"theirs": SimpleNamespace(image="theirs:1")})
    return ComponentSwitches(
        recorded,
        recorded,
        chassis=recorded,
        chassis_names=chassis,
        hosts=["host-1"],
        stack=stack,
        nodes=recorded,
        journal=journal,
    )


def told(journal):
    return [(line.actor, line.event) for line in journal.lines()]


def test_a_component_in_a_pod_is_killed_and_started_by_its_keeper_once(switches, recorded, journal):
    async def run():
        for _ in range(2):
            await switches.kill("scheduler")
        for _ in range(2):
            await switches.start("scheduler")

    asyncio.run(run())
    assert recorded.asked == [("scheduler", tuple(KILL)), ("scheduler", tuple(START))]
    assert told(journal) == [("scheduler", "killed"), ("scheduler", "started")]


def test_a_kubelet_is_the_administrators_and_is_back_once_it_knows_its_pods(switches, recorded):
    async def run():
        await switches.kill("kubelet/host-1")
        await switches.start("kubelet/host-1")

    asyncio.run(run())
    assert recorded.asked == [
        ("kubelet/host-1", "killed by the administrator"),
        ("kubelet/host-1", "started by the administrator"),
        "host-1 knows its pods",
    ]


def test_the_process_of_the_chassis_is_killed_where_it_serves_one(switches, recorded, journal):
    asyncio.run(switches.kill("chassis/A"))
    assert recorded.asked == ["the chassis are gone", ("chassis", tuple(KILL))]
    with pytest.raises(CapabilityError, match="one process serves all chassis here"):
        asyncio.run(made(recorded, journal, ["A", "B"]).kill("chassis/A"))


@pytest.mark.parametrize(
    ("component", "error", "text"),
    [
        ("theirs", CapabilityError, "in theirs:1 Mews' keeper is not process 1"),
        ("brought", CapabilityError, "a manifest brings it"),
        ("nobody", ValueError, "component 'nobody': must be one of kubelet/host-1"),
    ],
)
def test_what_cannot_be_killed_is_refused_with_the_reason(switches, recorded, component, error, text):
    with pytest.raises(error, match=text):
        asyncio.run(switches.kill(component))
    assert recorded.asked == []


def test_a_kill_that_was_cut_short_is_the_same_kill(switches, recorded):
    async def run():
        switches.cut("scheduler")
        await switches.kill("scheduler")

    asyncio.run(run())
    assert recorded.asked == [("scheduler", tuple(KILL))]


def test_with_the_cluster_everything_that_is_down_comes_back_as_far_as_it_can(switches, recorded):
    async def run():
        await switches.kill("scheduler")
        await switches.kill("kubelet/host-1")
        recorded.fails = True
        await switches.close()

    asyncio.run(run())
    assert recorded.asked[2:] == [
        ("kubelet/host-1", "started by the administrator"),
        "host-1 knows its pods",
        ("scheduler", tuple(START)),
    ]
