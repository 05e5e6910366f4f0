"""One line wrong in a component of KubeComp, and the law of its protocol that names the first wrong line."""

import asyncio

import pytest

from mews.kube.scheduling.framework import SUCCESS
from mews.kube.system.host_steps import HostSteps
from mews.systems.kubecomp import policy, rules
from mews.systems.kubecomp.annotations import PodAnnotations
from mews.systems.kubecomp.handover import Handover
from mews.systems.kubecomp.journal import MoveJournal
from mews.systems.kubecomp.mover import Mover
from mews.systems.kubecomp.node_devices import NodeDevices
from mews.systems.kubecomp.plugin import FalconResources
from mews.systems.kubecomp.pool_worker import PoolWorker
from mews.systems.kubecomp.withdrawal import Withdrawals
from tests.harness.invariants.law_runs import named, played
from tests.oracle.scenes import create, delete, edit, fault, kill, scene


def has_consent(consent, request, *, now_s, max_age_s):
    return consent is not None and consent.request == request


def is_held(report, gpuid, *, now_s, timing, request=None):
    return gpuid in report.held


def is_elsewhere(gpu, target, holdings):
    return gpu.node != target


async def nothing(*args, **kwargs):
    return None


async def marks_each(self, state, pod, node):
    await self._notes.mark(pod, uses=True)
    return SUCCESS


async def idle(*args):
    await asyncio.Event().wait()


def hears_of_nothing(self, news):
    self._withdrawals.answered.beat()


async def refuses(*args):
    return True


ONE = [create(5, "a", 5, "host-1")]
TWO = [create(5, "a", 6, "host-1")]
SLOW_AWAY = fault(1, kind="slow-operation", operation="detach", extra_s=20.0, count=1)
SLOW = fault(1, kind="slow-operation", operation="attach", extra_s=20.0, count=1)
USERS = [create(5 + n / 10, f"user-{n}", 1, f"host-{2 + n // 3}") for n in range(6)]

FAULTS = [
    pytest.param([(rules, "in_use", is_held)], ONE, 30, "detach-begun", "asked", id="no consent is waited for"),
    pytest.param(
        [(policy, "consent_is_fresh", has_consent)],
        [SLOW, *TWO, kill(6, "device-manager/host-2", 90)],
        30,
        "detach-begun",
        "consented",
        id="an old consent counts",
    ),
    pytest.param([(HostSteps, "take_out", nothing)], ONE, 31, "detach-begun", "consented", id="nothing is taken out"),
    pytest.param(
        [(policy, "is_movable", is_elsewhere)],
        [*USERS, create(90, "b", 6, "host-1")],
        32,
        "asked",
        "allocated",
        id="what pods hold is asked for",
    ),
    pytest.param(
        [(Withdrawals, "ask_back", nothing)],
        [*ONE, delete(40, "a"), create(60, "b", 6, "host-3")],
        34,
        "asked",
        None,
        id="nothing is asked back",
    ),
    pytest.param(
        [(Withdrawals, "ask_back", nothing)],
        [*ONE, delete(40, "a"), create(60, "b", 12, "host-3")],
        33,
        "asked",
        "asked",
        id="a device is asked for twice",
    ),
    pytest.param(
        [(Withdrawals, "is_in_use", refuses), (Handover, "_give_back", nothing)],
        [*ONE, delete(30, "a")],
        34,
        "asked-back",
        None,
        id="nothing is given back",
    ),
    pytest.param(
        [(policy, "permit_bound_s", lambda shortfall: 60.0)],
        [kill(2, "reconfig-manager", 400), *TWO],
        35,
        "event",
        "annotations",
        id="Permit's bound does not grow",
    ),
    pytest.param(
        [(PodAnnotations, "clear", nothing)],
        [kill(2, "reconfig-manager", 400), *TWO],
        35,
        "annotations",
        None,
        id="what Permit wrote is left",
    ),
    pytest.param(
        [(rules, "remaining_demand", lambda view, pod, attached: pod.req)],
        ONE,
        36,
        "detach-begun",
        "attached",
        id="more is moved than is lacking",
    ),
    pytest.param(
        [(Withdrawals, "_answer", lambda self, gpu, request: False)], ONE, 87, "asked-back", "asked", id="no patience"
    ),
    pytest.param(
        [(PoolWorker, "on_change", hears_of_nothing)],
        [create(2, "a", 5, "host-1")],
        88,
        "asked",
        "event",
        id="who waits is seen by chance",
    ),
    pytest.param(
        [(NodeDevices, "is_withdrawing", False)], ONE, 88, "draining", "devices", id="a node looks once a second"
    ),
    pytest.param([(PodAnnotations, "clear", nothing)], ONE, 79, "event", "bound", id="what a bound pod wanted is left"),
    pytest.param(
        [(FalconResources, "pre_bind", marks_each)],
        [create(5, "a", 1)],
        79,
        "annotations",
        "created",
        id="pods are marked",
    ),
    pytest.param([(Mover, "_attach", idle)], ONE, 88, "consented", "detached", id="a device is left without a port"),
    pytest.param([(Mover, "_detach", idle)], ONE, 88, "consented", "move-begun", id="a move is written, and not done"),
    pytest.param([(MoveJournal, "begin", nothing)], ONE, 37, "detach-begun", "asked", id="no move is written down"),
]


@pytest.mark.parametrize(("wrong", "actions", "number", "first", "after"), FAULTS)
def test_one_wrong_line_is_named_by_the_law_that_it_breaks(monkeypatch, wrong, actions, number, first, after):
    for patch in wrong:
        monkeypatch.setattr(*patch)
    outcome = scene(actions, tail_s=400.0)
    found = [each for each in outcome.violations if each.invariant == number]
    assert found, [str(each) for each in outcome.violations]
    assert (found[0].first.event, found[0].after and found[0].after.event) == (first, after)
    assert found[0].after is None or found[0].after.number < found[0].first.number


def test_who_waits_and_is_not_told_is_named_with_the_line_that_came_instead(monkeypatch):
    monkeypatch.setattr(PodAnnotations, "_emit", nothing)
    [found] = [each for each in scene(ONE, tail_s=400.0).violations if each.invariant == 98]
    assert found.first.event == "annotations"
    assert found.first.t < found.overdue.t < found.first.t + 60.0
    assert f"it was due before line {found.overdue.number}: " in str(found)


def test_the_published_system_clears_nothing(monkeypatch):
    monkeypatch.setattr(FalconResources, "_clears", True)
    says, first, after = named(played("testbed/w3-pool"), 79)
    assert says.endswith("wants nothing any more, and stale-demand leaves what is wanted")
    assert (first, after) == ("annotations", "annotations")


@pytest.mark.parametrize(
    "actions",
    [ONE, TWO, [SLOW_AWAY, *ONE, edit(25.15, "000600", "1")], [SLOW, *TWO, kill(6, "device-manager/host-2", 90)]],
)
def test_the_right_components_break_none_of_them(actions):
    outcome = scene(actions, tail_s=400.0)
    assert [str(each) for each in outcome.violations if each.invariant >= 30] == []
