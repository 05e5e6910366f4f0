"""The laws of pods and kubelets: streams that they must report and streams that they must not, one law at a time."""

from __future__ import annotations

import pytest

from mews.harness.invariants.allocations import CALL_S, Allocations
from mews.harness.invariants.judge import LAWS
from mews.harness.invariants.kubelet_spans import KubeletSpans
from mews.harness.invariants.offered import Offered
from mews.harness.invariants.pod_lives import REMEMBERED, PodLives
from mews.harness.invariants.terminations import Terminations
from tests.harness.invariants.law_runs import Said, breaches, numbers
from tests.harness.invariants.stream import Stream

GPU = "falcon.com/gpu"


def api(t: float, event: str, uid: str = "a", **fields: object) -> Said:
    return (t, f"pod/default/{uid}", event, {"uid": uid, **fields})


def kubelet(t: float, event: str, uid: str = "a", host: str = "h1", **fields: object) -> Said:
    who = {"pod": f"default/{uid}", "uid": uid} if uid else {}
    return (t, f"kubelet/{host}", event, {**who, **fields})


def created(t: float = 0.0, uid: str = "a", gpus: int = 0) -> Said:
    return api(t, "created", uid, node="", phase="Pending", requests={GPU: gpus} if gpus else {})


def bound(t: float = 0.0, uid: str = "a", node: str = "h1") -> Said:
    return api(t, "bound", uid, node=node)


def started(t: float, uid: str = "a", host: str = "h1") -> Said:
    return kubelet(t, "container-started", uid, host, container="main", env={})


def phase(t: float, now: str) -> Said:
    return api(t, "phase", phase=now, reason="")


def component(t: float, event: str, actor: str = "kubelet/h1") -> Said:
    return (t, actor, event, {})


def ready(t: float, status: str, node: str = "h1") -> Said:
    return (t, f"node/{node}", "condition", {"type": "Ready", "status": status, "reason": ""})


def power(t: float, *, on: bool) -> Said:
    return (t, "chassis/A", "host-power", {"host": "h1", "on": on})


def listed(t: float, *healthy: str, unhealthy: tuple[str, ...] = ()) -> Said:
    return kubelet(t, "devices", "", resource=GPU, healthy=list(healthy), unhealthy=list(unhealthy))


def allocated(t: float, uid: str, *devices: str) -> Said:
    return kubelet(t, "allocated", uid, container="main", resource=GPU, devices=list(devices))


def checkpoint(t: float, *uids: str) -> Said:
    return kubelet(t, "checkpoint", "", entries=[[uid, "main", GPU, ["0"]] for uid in uids])


# 13: a pod lives once and forward


def life(*said: Said) -> list[tuple[int | None, int | None]]:
    return numbers(breaches(PodLives(), [created(), bound(), *said]))


def test_a_pod_that_lives_and_ends_breaks_nothing() -> None:
    whole = [started(1), phase(2, "Running"), phase(3, "Succeeded"), kubelet(3, "pod-ended"), api(4, "deleted")]
    assert life(*whole) == []
    assert life(phase(1, "Failed"), kubelet(1, "rejected", reason="", message="")) == []


def test_a_pod_that_is_bound_twice_is_reported_with_both_bindings() -> None:
    assert life(bound(5, node="h2")) == [(2, 1)]


@pytest.mark.parametrize(("before", "now"), [("Running", "Pending"), ("Succeeded", "Running"), ("Failed", "Succeeded")])
def test_a_phase_that_goes_back_is_reported_with_the_one_before(before: str, now: str) -> None:
    assert life(phase(1, before), phase(2, now)) == [(3, 2)]


def test_a_container_that_starts_on_another_node_is_reported() -> None:
    assert life(started(1, host="h2")) == [(2, 1)]


@pytest.mark.parametrize("over", [kubelet(1, "pod-ended"), kubelet(1, "rejected"), phase(1, "Failed")])
def test_a_container_that_starts_once_its_pod_is_over_is_reported(over: Said) -> None:
    assert life(over, started(1)) == [(3, 2)]


@pytest.mark.parametrize("event", ["deleting", "deleted"])
def test_a_start_under_way_may_end_after_the_deletion_and_a_later_one_may_not(event: str) -> None:
    assert life(api(1, event), started(2.9)) == []
    assert life(api(1, event), started(3.1)) == [(3, 2)]


def test_of_the_pods_that_are_gone_the_oldest_are_forgotten() -> None:
    law = PodLives()
    others = [each for n in range(REMEMBERED) for each in (created(2, f"p{n}"), api(2, "deleted", f"p{n}"))]
    assert breaches(law, [created(), bound(), api(1, "deleted"), *others, started(9)]) == []


# 14: nothing stays Terminating


def waits(*said: Said, until: float, grace_s: float = 30.0, finalizers: tuple[str, ...] = ()) -> list[object]:
    deleting = api(10, "deleting", grace_s=grace_s, finalizers=list(finalizers))
    there = [(0.0, "node/h1", "created", {}), ready(0.0, "True")]
    found = breaches(Terminations(), [*there, created(), bound(), deleting, *said], until=until, terminating_s=60.0)
    return [*{breach.first.number for breach in found if breach.first is not None}]


def test_a_pod_that_is_terminating_beyond_its_grace_and_the_bound_is_reported_once_it_is() -> None:
    assert waits(until=100.0) == []
    assert waits(until=100.1) == [4]
    assert waits(until=100.1, grace_s=31.0) == []
    assert waits(api(50, "deleted"), until=500.0) == []


@pytest.mark.parametrize(
    ("goes", "comes"),
    [
        (component(20, "killed"), component(200, "started")),
        (ready(20, "Unknown"), ready(200, "True")),
        (power(20, on=False), power(200, on=True)),
    ],
)
def test_the_clock_stands_while_its_node_is_away_and_starts_anew(goes: Said, comes: Said) -> None:
    assert waits(goes, until=900.0) == []
    assert waits(goes, comes, until=290.0) == []
    assert waits(goes, comes, until=290.1) == [4]


def test_a_pod_with_finalizers_waits_for_others_and_its_clock_starts_when_the_last_is_gone() -> None:
    assert waits(until=900.0, finalizers=("x/y",)) == []
    assert waits(api(200, "finalizers", finalizers=[]), until=290.1, finalizers=("x/y",)) == [4]


# 15: devices are announced, then allocated, then used, and free once their pod has ended


def given(*said: Said) -> list[tuple[int | None, int | None]]:
    return numbers(breaches(Allocations(), [listed(0, "0", "1", "2"), created(1, gpus=2), bound(1), *said]))


def test_a_pod_that_is_given_what_it_asks_for_breaks_nothing() -> None:
    assert given(allocated(1, "a", "0", "1"), started(2)) == []


def test_a_start_without_the_devices_that_the_pod_asks_for_is_reported_after_the_binding() -> None:
    assert given(started(2)) == [(3, 2)]
    assert given(allocated(1, "a", "0"), started(2)) == [(4, 2)]


def test_what_is_given_before_the_watch_shows_the_pod_counts() -> None:
    early = [listed(0, "0", "1"), allocated(1, "a", "0", "1"), created(1, gpus=2), bound(1), started(2)]
    assert breaches(Allocations(), early) == []
    early[1] = allocated(1, "a", "0")
    assert numbers(breaches(Allocations(), early)) == [(4, 3)]


def test_a_resource_that_no_plugin_had_announced_by_then_is_no_device() -> None:
    assert breaches(Allocations(), [created(1, gpus=2), bound(1), listed(1, "0"), started(2)]) == []


def test_a_device_that_was_not_healthy_in_the_last_list_is_reported_with_that_list() -> None:
    assert given(listed(1, "0", unhealthy=("1",)), allocated(1 + CALL_S + 0.1, "a", "0", "1")) == [(4, 3)]
    before = [listed(0, "0", "1"), created(1, gpus=2), listed(1, "0", unhealthy=("1",)), bound(1)]
    assert numbers(breaches(Allocations(), [*before, allocated(1, "a", "0", "1")])) == [(4, 2)]


def test_a_list_that_comes_while_the_plugin_is_called_does_not_change_the_choice() -> None:
    assert given(listed(1, "0", unhealthy=("1",)), allocated(1 + CALL_S, "a", "0", "1")) == []
    assert given(listed(1, "0"), listed(1, "0"), allocated(1, "a", "0", "1")) == [(5, 4)]


def test_a_kubelet_that_is_killed_may_have_an_answer_on_its_way() -> None:
    assert given(component(1, "killed"), allocated(1, "a", "0", "1")) == []


def test_a_pod_keeps_what_it_has_though_it_breaks() -> None:
    assert given(allocated(1, "a", "0", "1"), listed(2, "0", unhealthy=("1",)), allocated(3, "a", "0", "1")) == []


def test_a_kubelet_that_begins_anew_gives_nothing_before_a_list() -> None:
    assert given(component(1, "killed"), component(1, "started"), allocated(1, "a", "0", "1")) == [(5, None)]
    again = [component(1, "started"), listed(1, "0", "1"), allocated(1, "a", "0", "1")]
    assert given(*again) == []


ENDED = [allocated(1, "a", "0", "1"), started(1), kubelet(2, "pod-ended")]
NEXT = [created(3, "b", 1), bound(3, "b"), allocated(3, "b", "2")]


def test_what_an_ended_pod_held_is_off_the_checkpoint_after_the_next_admission() -> None:
    assert given(*ENDED, *NEXT, checkpoint(3, "b")) == []
    assert given(*ENDED, checkpoint(2, "a"), *NEXT, checkpoint(3, "b")) == []  # found out lazily
    assert given(*ENDED, *NEXT, checkpoint(3, "a", "b")) == [(9, 5)]


def test_a_pod_that_ended_while_another_was_let_in_may_be_on_that_checkpoint() -> None:
    early = [created(1, "b", 1), bound(1, "b")]
    assert given(*early, *ENDED, allocated(3, "b", "2"), checkpoint(3, "a", "b")) == []


# 16: a node does not offer what is broken


def offers(amount: int, t: float = 0.0) -> Said:
    return (t, "node/h1", "allocatable", {"resource": GPU, "old": "0", "new": str(amount)})


def offered(*said: Said, until: float) -> list[tuple[int | None, int | None]]:
    return numbers(breaches(Offered(), [listed(0, "0", "1"), offers(2), *said], until=until, offered_s=25.0))[:1]


def test_a_node_that_offers_a_broken_device_beyond_the_bound_is_reported_with_the_list() -> None:
    broken = listed(10, "0", unhealthy=("1",))
    assert offered(broken, until=35.0) == []
    assert offered(broken, until=35.1) == [(2, 2)]
    assert offered(broken, offers(1, 20), until=99.0) == []


def test_a_list_of_a_kubelet_that_is_gone_says_nothing() -> None:
    broken = listed(10, "0", unhealthy=("1",))
    assert offered(broken, component(11, "killed"), component(12, "started"), until=99.0) == []
    assert offered(broken, component(11, "killed"), component(12, "started"), listed(13, "0"), until=99.0) == [(5, 5)]


def test_the_judge_has_them() -> None:
    assert [LAWS[number] for number in (13, 14, 15, 16)] == [PodLives, Terminations, Allocations, Offered]


@pytest.mark.parametrize(("lag_s", "found"), [(0.0, True), (2.0, False)])
def test_a_list_that_a_real_plugin_repeats_after_its_kubelets_restart_is_no_news(lag_s, found):
    """On a real node nothing is written of it; an embedded kubelet starts without any list."""
    stream = Stream({"a": "1"}, lag_s=lag_s)
    stream.kubelet("host-1", "devices", resource="falcon.com/gpu", healthy=["0-a"], unhealthy=[])
    stream.journal.write("component", "kubelet/host-1", "started")
    stream.allocate("host-1", "p", ["a"])
    assert (15 in stream.numbers()) is found


def told(t: float, reason: str) -> Said:
    return (t, "kubelet/h1", "event", {"type": "Normal", "reason": reason, "object": "pod/default/a", "message": ""})


def sandbox(t: float) -> Said:
    return api(t, "condition", type="PodReadyToStartContainers", status="False", reason="")


def deleting(t: float, grace_s: int = 30) -> Said:
    return api(t, "deleting", grace_s=grace_s, finalizers=[])


LIFE = [bound(0), sandbox(0.02), told(0.6, "Pulled"), told(0.62, "Created"), told(0.8, "Started")]
DEATH = [deleting(5), told(5.1, "Killing"), kubelet(5.4, "pod-ended"), api(6.2, "deleted")]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([*LIFE, *DEATH], [], id="as long as it takes"),
        pytest.param([*LIFE, deleting(5, 0), api(5, "deleted"), *DEATH[1:]], [], id="deleted by force"),
        pytest.param([bound(0), component(0, "killed"), sandbox(0.001)], [], id="it began anew"),
        pytest.param([bound(0), sandbox(0.001)], [(1, 0)], id="seen too soon"),
        pytest.param([*LIFE[:3], told(0.6, "Created")], [(3, 2)], id="created too soon"),
        pytest.param([*LIFE[:4], told(0.63, "Started")], [(4, 3)], id="started too soon"),
        pytest.param([deleting(5), told(5, "Killing")], [(1, 0)], id="killed too soon"),
    ],
)
def test_a_kubelet_takes_its_time(said: list[Said], named: list[object]) -> None:
    assert numbers(breaches(KubeletSpans(), said)) == named


@pytest.mark.parametrize(("killed_s", "says"), [(None, True), (9.0, False), (30.0, True)])
def test_a_kubelet_ends_a_pod_once(killed_s: float | None, says: bool) -> None:
    away = [] if killed_s is None else [component(killed_s, "killed"), component(killed_s, "started")]
    ends = [created(), bound(), started(1), kubelet(5, "pod-ended"), *away]
    assert not breaches(PodLives(), ends)
    found = breaches(PodLives(), [*ends, kubelet(31, "pod-ended")])
    assert [each.what for each in found] == (["default/a is ended again"] if says else [])
