"""Traces played by KubeComp: what each fault of the published implementation changes, one at a time."""

import random
from types import SimpleNamespace

import pytest

from mews.kube.system.simulation import SimulatedCluster, SimulatedDevice, SimulatedJob, SimulatedNode
from mews.systems.kubecomp.faults import ALL_FAULTS
from mews.systems.kubecomp.options import KubeCompOptions
from mews.systems.kubecomp.simulation import NOT_IN_TRACES, SHOWN, TRACE_POLICIES

READ_S, OPERATION_S, SEEN_S = 3.0, 5.0, 2.0
"""How long a reading takes, an operation, and a node until it hands a device out."""


class Chassis:
    """A chassis whose operations take their time; those in ``failing`` (operation, device) answer and do nothing."""

    def __init__(self, places, failing, operation_s):
        self.places, self.failing, self.calls = dict(places), set(failing), []
        self.operation_s = operation_s

    def read(self, pool, now_s):
        return now_s + READ_S

    read_one = read

    def _operate(self, name, gpuid, node, now_s):
        self.calls.append((name, gpuid))
        if (name, gpuid) not in self.failing:
            self.places[gpuid] = node
        return now_s + self.operation_s

    def detach(self, gpuid, now_s):
        return self._operate("detach", gpuid, None, now_s)

    def attach(self, gpuid, node, now_s):
        return self._operate("attach", gpuid, node, now_s)

    def can_reach(self, gpuid, node):
        return True

    def node_of(self, gpuid, now_s):
        return self.places[gpuid]

    def usable_s(self, node, gpuid, moved_s):
        return moved_s + SEEN_S


def job(devices, name="job"):
    return SimulatedJob(name, 0.0, 300.0, devices, devices * 100, 1000)


def world(*faults, failing=(), operation_s=OPERATION_S, seed=1, **more):
    """Two nodes with two devices each, and the faults that are on."""
    places = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
    chassis = Chassis(places, failing, operation_s)
    nodes = tuple(
        SimulatedNode(node, "p", 64_000, 65_536, tuple(SimulatedDevice(f"{node}{n}", "", 1) for n in (0, 1)))
        for node in "ab"
    )
    options = ({"mode": "public", "faults": ",".join(faults)} if faults else {}) | more
    made = TRACE_POLICIES[0].placer(SimulatedCluster(nodes, {}, chassis), random.Random(seed), options)
    return SimpleNamespace(placer=made, chassis=chassis)


def run(placer, until_s):
    """Let time pass; (when, spot) of what was settled."""
    settled = []
    while (next_s := placer.next_s()) is not None and next_s <= until_s:
        settled += [(next_s, spot) for spot in placer.advance(next_s)]
    return settled


def moments(placer, until_s):
    """Let time pass, from one moment at which something happens to the next."""
    while (next_s := placer.next_s()) is not None and next_s <= until_s:
        placer.advance(next_s)
        yield next_s


def ready_s(settled):
    (at_s,) = (at_s for at_s, spot in settled if spot.ready)
    return at_s


def test_the_corrected_one_waits_until_a_reading_shows_the_device_on_its_node():
    it = world()
    spot = it.placer.place(job(3), 0.0)
    assert not spot.ready
    # Reading of the pool; detach and its reading; attach, and the node sees it.
    assert ready_s(run(it.placer, 100)) == READ_S + OPERATION_S + READ_S + OPERATION_S + SEEN_S
    assert (it.placer.moved, it.placer.reconfigurations, it.placer.holds_cycle) == (1, 1, False)


def test_a_job_holds_whichever_devices_are_free_as_a_kubelet_gives_them():
    held = set()
    for seed in range(20):
        it = world(seed=seed)
        held.add(it.placer.place(job(1), 0.0).token.gpuids)
    assert len(held) > 1, "now the one, now the other"


def test_reply_believed_saves_the_readings_and_believes_what_did_not_happen():
    it = world("reply-believed")
    it.placer.place(job(3), 0.0)
    assert ready_s(run(it.placer, 100)) == READ_S + 2 * OPERATION_S + SEEN_S
    failing = [("attach", "b0")]
    for faults, tries in (((), 4), (("reply-believed",), 1)):
        it = world(*faults, failing=failing)
        it.placer.place(job(3), 0.0)
        run(it.placer, 100)
        assert it.chassis.calls[: tries + 1].count(("attach", "b0")) == tries


def test_no_retry_leaves_a_device_that_was_not_attached_on_no_port():
    it = world("no-retry", failing=[("attach", "b0")])
    it.placer.place(job(3), 0.0)
    run(it.placer, 40)
    assert it.chassis.calls[:2] == [("detach", "b0"), ("attach", "b0")]
    assert it.chassis.places["b0"] is None


@pytest.mark.parametrize(("permit", "bound_s"), [({"permit": "15+5n"}, 20.0), ({}, 40.0)])
def test_short_permit_gives_up_after_its_bound(permit, bound_s):
    it = world("short-permit", operation_s=45.0, **permit)
    spot = it.placer.place(job(3), 0.0)
    assert it.placer.gives_up
    assert run(it.placer, 45) == [(bound_s, spot)]
    assert (spot.ready, spot.retry_s) == (False, None)


def test_a_bound_of_permit_is_refused_where_permit_has_none_of_these():
    with pytest.raises(ValueError, match="permit: 15\\+5n: requires mode=public with the fault short-permit"):
        world("blocking-permit", permit="15+5n")
    with pytest.raises(ValueError, match="permit: '5n': must be one of 10\\+30n, 15\\+5n"):
        world("short-permit", permit="5n")


def test_short_permit_wakes_jobs_by_any_change_of_a_node():
    for faults in ((), ("short-permit",)):
        it = world(*faults)
        it.placer.place(job(3), 0.0)
        woken = [at_s for at_s in moments(it.placer, 100) if it.placer.woke]
        assert woken == ([READ_S + OPERATION_S + READ_S + OPERATION_S + SEEN_S] if faults else [])


def test_blocking_permit_holds_everybody_up_and_sees_the_devices_that_come():
    it = world("blocking-permit", operation_s=5.25)
    it.placer.place(job(3), 0.0)
    assert it.placer.holds_cycle
    # There after 18.5 seconds, seen by the next look.
    assert ready_s(run(it.placer, 1000)) == 19.0
    assert not it.placer.holds_cycle


@pytest.mark.parametrize(("faults", "ended"), [((), (1.0, True)), (("blocking-permit",), (120.0, False))])
def test_blocking_permit_does_not_see_what_a_job_frees(faults, ended):
    it = world(*faults)
    first, second, third = (it.placer.place(job(n), 0.0) for n in (2, 1, 1))
    it.placer.release(job(2), first, 0.0)
    kept = {spot.node: spot for spot in (second, it.placer.place(job(1), 0.0))}
    it.placer.release(job(1), third, 0.0)
    assert len(kept) == 2, "one device is held on each node"
    waits = it.placer.place(job(2), 0.0)
    run(it.placer, 0.5)
    it.placer.release(job(1), kept[waits.node], 1.0)
    (found,) = ((max(at_s, 1.0), spot.ready) for at_s, spot in run(it.placer, 1000) if spot is waits)
    assert found == ended, "Reconfig-Mgr sees it, and moves nothing"


@pytest.mark.parametrize(("faults", "moved"), [(("short-permit",), 1), (("short-permit", "stale-demand"), 2)])
def test_stale_demand_moves_what_the_event_of_each_attempt_says(faults, moved):
    it = world(*faults, operation_s=15.0, permit="15+5n")
    it.placer.place(one := job(3), 0.0)
    run(it.placer, 20)
    assert not it.placer.place(one, 20.0).ready, "the device is on its way"
    run(it.placer, 500)
    assert it.placer.moved == moved


@pytest.mark.parametrize(("faults", "fits"), [((), True), (("advertised-is-all",), False)])
def test_advertised_is_all_counts_a_device_on_its_way_as_gone(faults, fits):
    it = world(*faults)
    it.placer.place(job(3), 0.0)
    run(it.placer, READ_S + OPERATION_S + READ_S)
    assert (it.placer.place(job(1), 12.0) is not None) is fits


@pytest.mark.parametrize(
    ("faults", "taken"), [((), "a1"), (("exec-holders",), "a1"), (("exec-holders", "unasked-move"), "a0")]
)
def test_exec_holders_takes_a_job_that_does_not_run_yet_for_one_that_holds_nothing(faults, taken):
    it = world(*faults)
    assert it.placer.place(job(1), 0.0).node == "a"  # it holds a0, and is not shown Running
    assert it.placer.place(job(3, "other"), 1.0).node == "b"
    run(it.placer, 200)
    assert ("detach", taken) in it.chassis.calls


def test_pending_spin_serves_nobody_until_all_bound_jobs_run():
    it = world("pending-spin")
    it.placer.place(job(1), 0.0).shown_s = 10.0
    it.placer.place(job(3, "other"), 0.0)
    assert ready_s(run(it.placer, 100)) == pytest.approx(10.0 + READ_S + 2 * OPERATION_S + READ_S + SEEN_S)


@pytest.mark.parametrize(("faults", "idle"), [((), 1), (("unasked-move",), 2)])
def test_an_unasked_move_takes_a_device_that_its_node_still_hands_out(faults, idle):
    it = world(*faults)
    it.placer.place(job(3), 0.0)
    run(it.placer, READ_S)
    other = it.placer.place(job(1, "other"), READ_S)
    assert (other.node, other.idle) == ("b", idle)


# What a scenario says of them --------------------------------------------------------------------------------------


def of_stack(**options):
    return TRACE_POLICIES[0].of_stack(KubeCompOptions.model_validate(options))


def test_a_scenarios_options_are_those_of_its_trace():
    assert of_stack() == {}
    assert of_stack(scheduler={"policy": "best-fit"}, config={"scoring": "alone", "partial": True}) == {
        "policy": "best-fit",
        "scoring": "alone",
        "partial": "true",
    }
    assert of_stack(mode="public") == {"mode": "public"}
    without = of_stack(mode="public", faults={"no-retry": False, "no-journal": False})
    assert without["faults"].split(",") == [name for name in SHOWN if name != "no-retry"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"config": {"device_poll_s": 5}}, "device_poll_s: a trace is played with the default periods"),
        (
            {"mode": "public", "faults": {name: name in NOT_IN_TRACES for name in ALL_FAULTS}},
            "faults: no-journal, unknown-id, first-container: no trace can show any of these",
        ),
    ],
)
def test_what_no_trace_is_played_by_is_refused(options, complaint):
    with pytest.raises(ValueError, match="^" + complaint):
        of_stack(**options)


@pytest.mark.parametrize("name", NOT_IN_TRACES)
def test_a_named_fault_that_no_trace_can_show_is_refused_with_the_reason(name):
    given = of_stack(mode="public", faults=["no-retry", name])
    with pytest.raises(ValueError, match=f"^faults: {name}: {NOT_IN_TRACES[name]}; must be of blocking-permit, "):
        TRACE_POLICIES[0].placer(SimulatedCluster(()), random.Random(1), given)


def test_a_job_that_has_run_leaves_no_tries_to_the_next_one():
    it = world("blocking-permit", operation_s=200.0)
    it.placer.place(one := job(3), 0.0)
    ((_, first),) = run(it.placer, 1000)
    it.placer.release(one, it.placer.place(one, 1000.0), 2000.0)
    one.devices = 4  # as another job that got the same place in memory
    it.placer.place(one, 2000.0)
    ((_, second),) = run(it.placer, 4000)
    assert (first.retry_s, second.retry_s) == (10.0, 10.0)
