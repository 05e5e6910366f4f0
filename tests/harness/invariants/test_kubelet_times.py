"""Laws 1003, 1004 and 1007, and what laws 20 and 76 know of kubelets: streams that break them, and others."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.journal import Line

KUBELET, POD, NODE = "kubelet/h", "pod/default/p", "node/h"
WHO = {"pod": "default/p", "uid": "u"}
Said = tuple[float, str, str, str, dict[str, Any]]


def kubelet(t: float, event: str, **fields: Any) -> Said:
    return t, "kubelet", KUBELET, event, fields


def api(t: float, event: str, actor: str = POD, **fields: Any) -> Said:
    return t, "api", actor, event, {"uid": "u", **fields}


def event(t: float, reason: str, about: str = POD, actor: str = KUBELET, message: str = "words") -> Said:
    return t, "api", actor, "event", {"type": "Normal", "reason": reason, "object": about, "message": message}


def component(t: float, what: str, actor: str = KUBELET) -> Said:
    return t, "component", actor, what, {}


def condition(t: float, kind: str, status: str, actor: str = POD, reason: str = "") -> Said:
    return api(t, "condition", actor, type=kind, status=status, reason=reason)


def named(law: int, *said: Said, **bounds: Any) -> list[tuple[int | None, int | None]]:
    """The numbers of the lines that the law's breaches name: the first wrong one, and the one it was due before."""
    judge = InvariantJudge(Bounds(**bounds))
    for number, (t, layer, actor, what, fields) in enumerate(said):
        judge.on_line(Line(number, t, layer, actor, what, fields))
    judge.pass_time(1e6)
    found = [each for each in judge.violations if each.invariant == law]
    return [(each.first and each.first.number, each.overdue and each.overdue.number) for each in found]


HELLO = event(0.0, "Starting", NODE)
CREATED = api(0.5, "created", scheduler="default-scheduler", node="", phase="Pending", requests={})
BOUND = api(1.0, "bound", node="h")
STARTED = kubelet(2.0, "container-started", **WHO, container="main", env={})
DELETING = api(20.0, "deleting", grace_s=5, finalizers=[])
ENDED = kubelet(21.0, "pod-ended", **WHO)
LATER = (300.0, "step", "s", "passed", {"step": 1, "do": "wait"})


@pytest.mark.parametrize(
    ("prompt", "answers"),
    [
        (
            BOUND,
            [
                condition(1.1, "PodReadyToStartContainers", "False"),
                event(1.1, "Pulled"),
                kubelet(1.1, "rejected", **WHO, reason="OutOfcpu", message="no room"),
                api(1.1, "deleting", grace_s=0, finalizers=[]),
                api(1.1, "deleted"),
            ],
        ),
        (
            kubelet(1.0, "registered", resource="toy.dev/gpu"),
            [kubelet(1.1, "devices", resource="toy.dev/gpu", healthy=[], unhealthy=[])],
        ),
    ],
)
def test_a_kubelet_answers_to_what_comes(prompt: Said, answers: list[Said]) -> None:
    assert named(1003, HELLO, CREATED, prompt, LATER) == [(2, 3)]
    for answer in answers:
        assert named(1003, HELLO, CREATED, prompt, answer, LATER) == []
    assert named(1003, HELLO, CREATED, prompt, condition(1.1, "PodScheduled", "True"), LATER) == [(2, 3)]


SEEN = (HELLO, CREATED, BOUND, STARTED)


@pytest.mark.parametrize("answer", [event(20.1, "Killing"), ENDED, api(20.1, "deleted")])
def test_a_kubelet_stops_what_is_deleted(answer: Said) -> None:
    assert named(1003, *SEEN, DELETING, LATER) == [(4, 5)]
    gone = api(40.0 if answer[3] == "event" else 21.5, "deleted")
    assert named(1003, *SEEN, DELETING, answer, gone, LATER) == []


def test_a_kubelet_removes_what_it_has_ended_unless_finalizers_keep_it() -> None:
    assert named(1003, *SEEN, DELETING, ENDED, LATER) == [(5, 6)]
    kept = api(20.0, "deleting", grace_s=5, finalizers=["toy.dev/keep"])
    assert named(1003, *SEEN, kept, ENDED, LATER) == []


@pytest.mark.parametrize(
    "excuse",
    [component(1.5, "killed"), condition(1.5, "Ready", "Unknown", NODE), api(1.5, "deleted", NODE)],
)
def test_a_kubelet_that_is_away_does_nothing(excuse: Said) -> None:
    assert named(1003, HELLO, CREATED, BOUND, excuse, LATER) == []


def test_a_kubelet_that_was_never_there_owes_nothing_nor_one_whose_lines_come_late() -> None:
    assert named(1003, CREATED, BOUND, LATER) == []
    assert named(1003, HELLO, CREATED, BOUND, LATER, lag_s=2.0) == []


@pytest.mark.parametrize(("shown_s", "wrong"), [(1.0, False), (1.7, False), (1.9, True)])
def test_that_a_container_runs_shows_at_the_next_look(shown_s: float, wrong: bool) -> None:
    begun = HELLO, CREATED, BOUND, condition(1.1, "Initialized", "True")
    shown = condition(2.0 + shown_s, "Ready", "False"), api(2.0 + shown_s, "phase", phase="Running", reason="")
    assert bool(named(20, *begun, STARTED, *shown, LATER)) is wrong
    assert not named(20, *begun, STARTED, *shown, LATER, lag_s=2.0)


CLAIM = {"claim": "default/c", "uid": "c", "driver": "toy.dev"}
RESERVED = (1.0, "api", "claim/default/c", "claim-reserved", {"claim": "default/c", "uid": "c", "pods": ["p"]})
PREPARED = kubelet(1.5, "claim-prepared", **CLAIM, devices=["h/0"], alone=["h/0"])
UNPREPARED = kubelet(20.5, "claim-unprepared", **CLAIM)


def test_a_claim_is_given_back_before_its_last_pod_is_ended() -> None:
    assert named(1004, RESERVED, PREPARED, UNPREPARED, ENDED) == []
    assert named(1004, RESERVED, PREPARED, ENDED) == [(2, None)]
    assert named(1004, RESERVED, PREPARED, component(3.0, "killed", "driver/h"), ENDED) == []
    assert named(1004, RESERVED, PREPARED, ENDED, lag_s=2.0) == []


def test_a_claim_that_another_pod_uses_stays_prepared() -> None:
    both = (*RESERVED[:4], {**RESERVED[4], "pods": ["p", "q"]})
    other = kubelet(30.0, "pod-ended", pod="default/q", uid="v")
    assert named(1004, both, PREPARED, ENDED) == []
    assert named(1004, both, PREPARED, ENDED, other) == [(3, None)]
    elsewhere = 21.0, "kubelet", "kubelet/other", "pod-ended", WHO
    assert named(1004, RESERVED, PREPARED, elsewhere) == []


def test_a_pod_of_the_name_of_one_that_was_ended_may_use_its_claim() -> None:
    both = (*RESERVED[:4], {**RESERVED[4], "pods": ["p", "q"]})
    again = api(25.0, "created", "pod/default/q", scheduler="default-scheduler", node="", phase="Pending", requests={})
    other = kubelet(20.0, "pod-ended", pod="default/q", uid="v")
    assert named(1004, both, PREPARED, other, again, ENDED) == []


MISSING = "prepare dynamic resources: DRA driver toy.dev is not registered"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ((component(1.0, "killed", "driver/h"), component(5.0, "started", "driver/h")), True),
        ((component(1.0, "killed", "driver/h"), component(15.0, "started", "driver/h")), False),
        ((component(1.0, "killed", "driver/h"),), False),
        ((component(5.0, "started", "driver/other"),), False),
        ((component(1.0, "killed", "other/x"), component(5.0, "started", "driver/h")), False),
        ((), False),
    ],
)
def test_a_driver_that_is_back_is_known(said: tuple[Said, ...], wrong: bool) -> None:
    failed = event(20.0, "FailedPrepareDynamicResources", message=MISSING)
    assert named(1004, *said, failed) == ([(len(said), None)] if wrong else [])


def test_a_condition_is_said_once() -> None:
    ready = condition(1.0, "Ready", "True", NODE, "KubeletReady")
    again = condition(9.0, "Ready", "True", NODE, "KubeletReady")
    assert named(1007, ready, again) == [(1, None)]
    assert named(1007, ready, condition(5.0, "Ready", "False", NODE, "x"), again) == []
    assert named(1007, ready, api(5.0, "deleted", NODE), api(6.0, "created", NODE, allocatable={}), again) == []
    assert named(1007, ready, condition(9.0, "DiskPressure", "True", NODE, "KubeletReady")) == []


@pytest.mark.parametrize(
    ("kind", "reason", "report"),
    [
        ("MemoryPressure", "KubeletHasSufficientMemory", "NodeHasSufficientMemory"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "NodeHasNoDiskPressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "NodeHasSufficientPID"),
    ],
)
def test_a_node_that_has_enough_is_reported_to_have_it(kind: str, reason: str, report: str) -> None:
    said = condition(1.0, kind, "False", NODE, reason)
    assert named(76, said, LATER) == [(0, 1)]
    assert named(76, said, event(1.0, report, NODE), LATER) == []


def test_a_node_is_called_rebooted_when_its_machine_was_switched_on_and_only_then() -> None:
    on = 5.0, "host", "host/h", "powered-on", {}
    rebooted, ready = event(6.0, "Rebooted", NODE), event(6.0, "NodeReady", NODE)
    assert named(76, ready) == []
    assert named(76, rebooted) == [(0, None)]
    assert named(76, on, rebooted, ready) == []
    assert named(76, on, ready) == [(1, None)]
    assert named(76, rebooted, lag_s=2.0) == []


READY = condition(3.0, "Ready", "True")


@pytest.mark.parametrize("grace_s", [0, 5])
def test_what_still_runs_is_killed_with_an_event_also_where_its_pod_was_deleted_by_force(grace_s: int) -> None:
    told = event(1.5, "Pulled"), event(1.8, "Created"), STARTED, event(2.0, "Started"), READY
    begun = HELLO, CREATED, BOUND, *told, api(20.0, "deleting", grace_s=grace_s, finalizers=[])
    gone = (api(20.0, "deleted"),) if grace_s == 0 else ()
    assert named(18, *begun, *gone, event(20.5, "Killing"), ENDED) == []
    assert named(18, *begun, *gone, ENDED) == [(len(begun) + len(gone), None)]
    assert named(18, *begun, *gone, component(20.2, "killed"), component(20.8, "started"), ENDED) == []
