"""KOD2's laws on placements, events and conditions: streams that they must report, and streams that they must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.invariant import ObservedState
from mews.kube.system.invariant import Breach
from mews.kube.system.journal import Line
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.laws import laws

Said = tuple[float, str, str, dict[str, Any]]
"""t, actor, event, fields; all lines are of layer api."""
JOB = "tfjob/default/a"


def judged(number: int, said: Sequence[Said]) -> list[Breach]:
    law = next(law for law in laws(OperatorConfig()) if law.number == number)
    state, found = ObservedState(Bounds()), list[Breach]()
    for place, (t, actor, event, fields) in enumerate(said):
        layer = "component" if event == "killed" else "api"
        if law.events is None or (layer, event) in law.events:
            found += law.on_line(Line(place, t, layer, actor, event, fields), state)
    return found


def firsts(found: Sequence[Breach]) -> list[int | None]:
    return [each.first.number if each.first else None for each in found]


def job(t: float, event: str, **fields: Any) -> Said:
    return (t, JOB, event, fields)


def placed(t: float, **placement: str) -> Said:
    return job(t, "placement", placement={name.replace("_", "-"): node for name, node in placement.items()})


def pod(t: float, event: str, task: str = "worker-0", **fields: Any) -> Said:
    return (t, f"pod/default/a-{task}", event, {"uid": task, **fields})


def told(t: float, reason: str, message: str) -> Said:
    return (t, "tfjob-controller", "event", {"type": "Normal", "reason": reason, "object": JOB, "message": message})


def condition(t: float, kind: str, status: str = "True") -> Said:
    return job(t, "condition", type=kind, status=status, reason="")


ENTERS = [
    job(0, "created"),
    job(0, "bounds", min=1, max=4, backoff_limit=None),
    job(0, "state", state="WAITING", workers=0),
]
RUNS = [
    *ENTERS,
    job(1, "state", state="RUNNING", workers=1),
    placed(1, ps_0="n1", worker_0="n1"),
    told(1, "Placed", "placed: ps-0, worker-0 on n1"),
    pod(1, "created", node="n1"),
    pod(1, "bound", node="n1"),
    told(1, "SuccessfulCreatePod", "Created pod: a-worker-0"),
    pod(3, "phase", phase="Running", reason=""),
    condition(3, "Running"),
]
GROWS = [
    *RUNS,
    job(40, "workers", old=1, new=2),
    placed(40, ps_0="n1", worker_0="n1", worker_1="n2"),
    told(40, "ScaledOut", "gets worker-1 on n2; 2 worker(s) now"),
]
ENDS = [
    *GROWS,
    pod(90, "phase", phase="Succeeded", reason=""),
    job(90, "state", state="COMPLETED", workers=0),
    condition(90, "Running", "False"),
    condition(90, "Succeeded"),
    pod(91, "deleting", "ps-0", grace_s=1, finalizers=[]),
    told(91, "SuccessfulDeletePod", "Deleted pod: a-ps-0"),
    job(99, "deleted"),
]


def test_a_job_that_has_ended_is_not_called_running() -> None:
    ends = [*GROWS, pod(90, "phase", phase="Succeeded", reason=""), job(90, "state", state="COMPLETED", workers=0)]
    succeeded, later = condition(90, "Succeeded"), job(99, "deleted")
    [breach] = judged(69, [*ends, succeeded, later])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (len(ends), len(RUNS) - 1)
    assert judged(69, [*ends, condition(90, "Running", "False"), succeeded, later]) == []
    assert judged(69, [*ends, succeeded, condition(90, "Running", "False"), later]) == []


@pytest.mark.parametrize("number", [67, 68, 69, 95])
def test_a_job_that_grows_and_ends_breaks_nothing(number: int) -> None:
    assert judged(number, ENDS) == []


def test_a_placement_of_more_workers_than_are_counted_is_reported() -> None:
    [breach] = judged(67, [*RUNS, GROWS[len(RUNS) + 1]])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (len(RUNS), 3)


def test_a_task_that_is_placed_elsewhere_while_its_pod_runs_is_reported_with_its_binding() -> None:
    moved = placed(40, ps_0="n1", worker_0="n2")
    [breach] = judged(67, [*RUNS, moved])
    assert (breach.first and breach.first.number, breach.after and breach.after.number) == (len(RUNS), 7)
    assert judged(67, [*RUNS, pod(39, "deleting"), moved]) == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(told(41, "ScaledOut", "gets worker-1 on n2; 3 worker(s) now"), "it has 2 worker", id="miscounted"),
        pytest.param(told(50, "ScaledOut", "gets worker-1 on n2; 2 worker(s) now"), "has not changed", id="told again"),
        pytest.param(told(41, "ScaledIn", "gives ps-0 for default/b; 2 worker(s) left"), "names ps-0", id="a server"),
        pytest.param(told(41, "Placed", "placed: worker-7 on n2"), "placed are", id="another task"),
        pytest.param(told(41, "SuccessfulCreatePod", "Created pod: a-worker-9"), "was not created", id="no pod made"),
        pytest.param(told(41, "SuccessfulDeletePod", "Deleted pod: a-ps-0"), "was not deleting", id="no pod deleted"),
        pytest.param(
            told(41, "BelowMinimum", "it runs on, but 1 fixed task(s) do not fit"), "all tasks", id="complete"
        ),
    ],
)
def test_an_event_that_says_what_is_not_so_is_reported(line: Said, says: str) -> None:
    [breach] = judged(68, [*GROWS, line])
    assert firsts([breach]) == [len(GROWS)]
    assert says in breach.what


def test_a_pod_of_which_no_event_tells_is_reported_unless_who_made_it_has_died() -> None:
    silent = [line for line in RUNS if line[3].get("reason") != "SuccessfulCreatePod"]
    assert firsts(judged(68, [*silent, job(9, "weight", weight=0.5)])) == [6]
    died: Said = (1, "operator", "killed", {})
    assert judged(68, [*silent[:8], died, *silent[8:], job(9, "weight", weight=0.5)]) == []


@pytest.mark.parametrize(("kind", "phase"), [("Running", "Pending"), ("Succeeded", "Running")])
def test_a_condition_that_no_pod_bears_out_is_reported(kind: str, phase: str) -> None:
    said = [*RUNS[:9], pod(3, "phase", phase=phase, reason=""), condition(30, kind)]
    assert firsts(judged(69, said)) == [10]


def test_a_job_that_is_completed_without_a_condition_is_reported_with_its_state() -> None:
    said = [line for line in ENDS if line[3].get("type") != "Succeeded"]
    assert firsts(judged(69, said)) == [len(GROWS) + 1]


def exits(t: float, task: str = "worker-0") -> Said:
    return told(t, "ExitedWithCode", f"Pod: default.a-{task} exited with code 0")


def succeeds(t: float, task: str = "worker-0") -> Said:
    return pod(t, "phase", task, phase="Succeeded", reason="")


LATER = job(95, "weight", weight=0.5)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([exits(89), succeeds(90), LATER], id="before its phase"),
        pytest.param([succeeds(90), exits(90), LATER], id="in the same moment"),
        pytest.param([succeeds(90), job(90, "state", state="COMPLETED", workers=0), LATER], id="with its job"),
        pytest.param([exits(30), succeeds(90), LATER], id="once before, of a pod of the same name"),
        pytest.param([succeeds(90), (90.0, "operator", "killed", {}), LATER], id="nobody to tell it"),
        pytest.param([pod(80, "deleting", "worker-0"), succeeds(90), LATER], id="one that had to go"),
    ],
)
def test_a_pods_end_that_is_told_or_that_nobody_can_tell_breaks_nothing(said: list[Said]) -> None:
    assert judged(78, [*GROWS, *said]) == []


def test_a_pods_end_that_nobody_tells_is_reported_with_its_phase() -> None:
    assert firsts(judged(78, [*GROWS, succeeds(90), LATER])) == [len(GROWS)]
    assert firsts(judged(78, [*GROWS, succeeds(90), job(91, "state", state="COMPLETED", workers=0)])) == [len(GROWS)]


SERVED = [*GROWS, told(40, "SuccessfulCreateService", "Created service: a-worker-1")]
SHRINKS = [*SERVED, placed(50, ps_0="n1", worker_0="n1"), told(50, "SuccessfulDeletePod", "Deleted pod: a-worker-1")]
SERVICE_GOES = told(50, "SuccessfulDeleteService", "Deleted service: a-worker-1")


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([*SHRINKS, SERVICE_GOES, LATER], id="it goes"),
        pytest.param([*SHRINKS, job(50, "state", state="COMPLETED", workers=0), LATER], id="its job ends"),
        pytest.param([*SHRINKS, job(50, "deleted"), LATER], id="its job goes"),
        pytest.param([*SHRINKS, (50.5, "operator", "killed", {}), LATER], id="nobody to delete it"),
        pytest.param([*SHRINKS, told(50.5, "SuccessfulCreatePod", "Created pod: a-worker-1"), LATER], id="made anew"),
        pytest.param([*SERVED, told(50, "SuccessfulDeletePod", "Deleted pod: a-worker-1"), LATER], id="still placed"),
        pytest.param([*SHRINKS[len(SERVED) :], LATER], id="it had none"),
    ],
)
def test_a_service_that_goes_with_its_task_or_that_is_still_used_breaks_nothing(said: list[Said]) -> None:
    assert judged(59, said) == []


def test_a_service_that_stays_without_its_task_is_reported_with_the_end_of_the_pod() -> None:
    assert firsts(judged(59, [*SHRINKS, LATER])) == [len(SHRINKS) - 1]
