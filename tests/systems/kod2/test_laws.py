"""The laws of KOD2's elastic scheduler: streams that they must report, streams that they must not, planted faults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from mews.kube.system.invariant import Breach
from mews.systems.kod2 import policy, reconciler, scaling, status
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.journal import tfjob_news
from mews.systems.kod2.laws import LITERAL_THRASH, LITERAL_WORKER_0, laws
from mews.systems.kod2.reconciler import Reconciler
from tests.harness.invariants.law_runs import (
    ROOT,
    PlantedRow,
    Said,
    breaches,
    check_found,
    each_planted,
    numbers,
    played,
)

ALL = (60, 61, 62, 63, 64, 65, 66)


def judged(number: int, said: Iterable[Said], **config: Any) -> list[Breach]:
    law = next(law for law in laws(OperatorConfig(**config)) if law.number == number)
    return breaches(law, said)


def found(number: int, said: Iterable[Said], **config: Any) -> list[tuple[int | None, int | None]]:
    return numbers(judged(number, said, **config))


def job(t: float, event: str, key: str = "a", **fields: Any) -> Said:
    return (t, f"tfjob/default/{key}", event, fields)


def enters(
    key: str = "a", *, low: int = 2, high: int = 4, retries: int | None = None, weight: float = 0.5
) -> list[Said]:
    bounds = job(0, "bounds", key, min=low, max=high, backoff_limit=retries)
    return [job(0, "created", key), bounds, job(0, "weight", key, weight=weight), state(0, "WAITING", 0, key)]


def state(t: float, now: str, workers: int, key: str = "a") -> Said:
    return job(t, "state", key, state=now, workers=workers)


def workers(t: float, old: int, new: int, key: str = "a") -> Said:
    return job(t, "workers", key, old=old, new=new)


def placed(t: float, *indices: int, key: str = "a", node: str = "n1") -> Said:
    return job(t, "placement", key, placement={f"worker-{index}": node for index in indices})


def pod(t: float, event: str, index: int = 0, key: str = "a", **fields: Any) -> Said:
    return (t, f"pod/default/{key}-worker-{index}", event, {"uid": f"{key}{index}", **fields})


def created(t: float, index: int = 0, node: str = "n1") -> Said:
    return pod(t, "created", index, node=node)


def on_node(t: float, event: str, index: int = 0) -> Said:
    return (t, "kubelet/n1", event, {"pod": f"default/a-worker-{index}", "uid": f"a{index}", "container": "tensorflow"})


def phase(t: float, now: str, reason: str = "") -> Said:
    return pod(t, "phase", phase=now, reason=reason)


RUNS = [*enters(), state(1, "RUNNING", 3), placed(1, 0, 1, 2), created(1, 0), created(1, 1), created(1, 2)]
"""Ten lines: of a job with three workers, between two and four."""
LIVES = [*RUNS, workers(2, 3, 2), placed(2, 0, 1), workers(70, 2, 4), placed(70, 0, 1, 2, 3), created(70, 3)]


@pytest.mark.parametrize("number", ALL)
def test_a_job_that_is_scaled_and_ends_breaks_no_law(number: int) -> None:
    assert found(number, [*LIVES, state(90, "COMPLETED", 0), job(99, "deleted")]) == []


def test_workers_below_the_minimum_and_above_the_maximum_are_reported_with_the_bounds() -> None:
    assert found(60, [*RUNS, workers(2, 3, 1)]) == [(9, 1)]
    assert found(60, [*RUNS, workers(2, 3, 5)]) == [(9, 1)]
    assert found(60, [*enters(), state(1, "RUNNING", 1)]) == [(4, 1)]
    assert found(60, [*enters(low=1), state(1, "RUNNING", 1)]) == []


def test_workers_that_an_edit_left_outside_the_bounds_are_not_taken_for_scaling() -> None:
    raised = job(2, "bounds", min=4, max=6, backoff_limit=None)
    lowered = job(2, "bounds", min=1, max=1, backoff_limit=None)
    assert found(60, [*RUNS, raised, workers(3, 3, 4)]) == []
    assert found(60, [*RUNS, lowered, workers(3, 3, 2), workers(4, 2, 1)]) == []


def test_a_running_job_that_goes_on_without_worker_0_is_reported_and_known_of_the_papers_words() -> None:
    [breach] = judged(61, [*RUNS, placed(2, 1, 2)])
    assert (numbers([breach]), breach.known) == ([(9, 5)], "")
    assert [each.known for each in judged(61, [*RUNS, placed(2, 1, 2)], mode="literal")] == [LITERAL_WORKER_0]
    assert found(61, [*RUNS, state(2, "WAITING", 0), state(9, "RUNNING", 2), placed(9, 1, 2)]) == []


def gives(t: float, tasks: str = "worker-2", to: str = "default/b") -> Said:
    text = f"gives {tasks} for {to}; 2 worker(s) left"
    return (t, "tfjob-controller", "event", {"reason": "ScaledIn", "object": "tfjob/default/a", "message": text})


def test_workers_that_a_heavier_job_gives_are_reported_with_the_weight_of_the_other() -> None:
    def scaled(weight: float, *more: Said, high: int = 5) -> list[Said]:
        return [*RUNS, *enters("b", weight=weight, high=high), *more, workers(5, 3, 2), gives(5)]

    assert found(62, scaled(0.4)) == [(13, 11)]
    assert found(62, scaled(0.5)) == []
    assert found(62, scaled(0.5, high=4)) == [(13, 11)]  # just as heavy, and it came later
    younger = [*enters("b", weight=0.5), *RUNS, workers(5, 3, 2), gives(5)]
    assert found(62, younger) == []
    assert found(62, scaled(0.4, state(4, "STARVING", 0, "b"))) == []
    assert found(62, scaled(0.4, (4.0, "node/n9", "created", {}))) == []  # weights are another by now
    assert found(62, [*RUNS, workers(5, 3, 2), gives(5, to="as its spec asks")]) == []


@pytest.mark.parametrize("over", [state(9, "COMPLETED", 0), job(9, "deleted")])
@pytest.mark.parametrize("after", [workers(10, 3, 2), placed(10, 0), state(10, "RUNNING", 3), created(10)])
def test_whatever_is_done_to_a_job_that_is_over_is_reported_with_its_end(over: Said, after: Said) -> None:
    assert found(63, [*RUNS, over, after]) == [(10, 9)]


def test_another_job_of_the_same_name_is_none_that_is_over() -> None:
    assert found(63, [*RUNS, job(9, "deleted"), *RUNS]) == []


@pytest.mark.parametrize(
    ("policy", "phase", "named"),
    [
        ("Running", "Succeeded", True),
        ("Running", "Running", False),
        ("None", "Running", True),
        ("All", "Succeeded", False),
        (None, "Succeeded", True),
    ],
)
def test_a_pod_that_is_to_stay_and_is_deleted_after_its_job_is_reported(
    policy: str | None, phase: str, named: bool
) -> None:
    bounds = job(8, "bounds", min=2, max=4, backoff_limit=None, clean_pods=policy)
    ends = [state(9, "COMPLETED", 0), job(9, "condition", type="Succeeded", status="True", reason="TFJobSucceeded")]
    about = {"type": "Normal", "reason": "SuccessfulDeletePod", "object": "tfjob/default/a"}
    event = (9.0, "tfjob-controller", "event", {**about, "message": "Deleted pod: a-worker-0"})
    said = [*RUNS, created(2), pod(8, "phase", phase=phase, reason=""), bounds, *ends, pod(9, "deleting"), event]
    at = len(said) - 2
    assert found(63, said) == ([(at, at - 2)] if named else [])
    failed = [each for each in said if each[2] != "condition"]
    assert found(63, failed) == []


def test_a_job_that_is_scaled_out_within_its_cooldown_is_reported_with_the_last_scaling() -> None:
    taken = [*RUNS, workers(2, 3, 2)]
    assert found(64, [*taken, workers(61, 2, 3)]) == [(10, 9)]
    assert found(64, [*taken, workers(62, 2, 3)]) == []
    assert found(64, [*taken, workers(61, 2, 3)], cooldown_s=50.0) == []
    assert found(64, [*taken, workers(9, 2, 1)]) == []
    assert found(64, [*RUNS, workers(2, 3, 4)]) == []  # a placement starts none
    assert found(64, [*taken, job(3, "bounds", min=2, max=9, backoff_limit=None), workers(4, 2, 3)]) == []
    assert [each.known for each in judged(64, [*taken, workers(61, 2, 3)], mode="literal")] == [LITERAL_THRASH]


def test_a_pod_that_was_not_placed_or_elsewhere_is_reported_with_the_placement() -> None:
    assert found(65, [*RUNS, created(2, 3)]) == [(9, 5)]
    assert found(65, [*RUNS, created(2, 1, "n2")]) == [(9, 5)]
    assert found(65, [*RUNS, created(2, 1, "")]) == []  # a pool's scheduler binds it
    assert found(65, [(0.0, "pod/default/other-worker-0", "created", {"uid": "x", "node": ""})]) == []


@pytest.mark.parametrize(("lag_s", "wrong"), [(0.0, [(4, None)]), (0.5, [(4, None)]), (2.0, [])])
def test_the_watch_of_pods_may_be_ahead_of_that_of_a_new_job(lag_s: float, wrong: list[Any]) -> None:
    law = next(law for law in laws(OperatorConfig()) if law.number == 65)
    assert numbers(breaches(law, [*enters(), created(1, 0)], lag_s=lag_s)) == wrong


def test_a_pod_that_was_being_made_for_a_deleted_job_of_that_name_is_nobodys_breach() -> None:
    anew = [*RUNS, job(2, "deleted"), *((2.0, *said[1:]) for said in enters())]
    assert found(65, [*anew, created(2, 1)]) == []
    assert found(65, [*anew, created(2, 3)]) == [(14, None)]
    assert found(65, [*anew, created(2, 1, "n2")]) == [(14, None)]
    assert found(65, [*anew, created(3, 1)]) == [(14, None)]


def refused(*waits_s: float) -> list[Said]:
    """Worker 0 is turned away at once whenever it is made anew, after these times."""
    said, t = [on_node(1, "rejected")], 1.0
    for wait_s in waits_s:
        t += wait_s
        said += [created(t), on_node(t, "rejected")]
    return said


def test_a_task_that_is_turned_away_is_made_anew_after_twice_as_long_each_time() -> None:
    assert found(66, [*RUNS, *refused(1, 2, 4, 8)]) == []
    assert found(66, [*RUNS, *refused(1, 1.5)]) == [(12, 11)]
    assert found(66, [*RUNS, *refused(0.5)]) == [(10, 9)]
    assert found(66, [*RUNS, *refused(1.6)]) == [(10, 9)]
    assert found(66, [*RUNS, *refused(1)[:1], job(1.5, "workers", old=3, new=4), job(1.5, "placement", placement={}),
                      created(2.6)]) == []  # fmt: skip


def test_a_task_that_ran_or_an_operator_that_began_anew_counts_from_the_start() -> None:
    ran = [*refused(1, 2), created(8), on_node(10, "container-started"), phase(10, "Running"), *refused(1)]
    assert found(66, [*RUNS, *ran]) == []
    assert found(66, [*RUNS, *refused(1), (3.0, "operator", "started", {}), on_node(3, "rejected"), created(4.5)]) == []


def test_a_job_keeps_its_room_for_five_refusals_and_no_more() -> None:
    five = refused(1, 2, 4, 8)
    assert found(66, [*RUNS, *five, created(99)]) == [(18, 17)]
    assert found(66, [*RUNS, *five, state(50, "WAITING", 0), state(98, "RUNNING", 3), created(99)]) == []
    assert found(66, [*RUNS, *five, created(32)], mode="literal") == []


def test_a_job_that_was_held_back_comes_back_after_twice_as_long_each_time() -> None:
    sent_back = [*RUNS, job(10, "stalled", times=3), state(10, "WAITING", 0)]
    assert found(66, [*sent_back, state(13.9, "RUNNING", 3)]) == [(11, 9)]
    assert found(66, [*sent_back, state(14, "RUNNING", 3)]) == []
    edited = job(11, "bounds", min=1, max=4, backoff_limit=None)
    assert found(66, [*sent_back, edited, state(12, "RUNNING", 3)]) == []


def test_a_program_is_tried_as_often_as_the_backoff_limit_says() -> None:
    fails = [on_node(2, "container-started"), phase(2, "Running"), phase(3, "Failed"), created(4)]
    tries = [*enters(retries=2), state(1, "RUNNING", 3), placed(1, 0, 1, 2), created(1)]
    assert found(66, [*tries, *fails, *fails]) == []
    assert found(66, [*tries, *fails, *fails, *fails]) == [(18, 17)]
    evicted = [on_node(2, "container-started"), phase(2, "Running"), phase(3, "Failed", "Evicted"), created(4)]
    assert found(66, [*tries, *evicted, *evicted, *evicted]) == []


def test_of_kubeflows_operator_the_end_and_the_conditions_are_judged() -> None:
    assert [law.number for law in laws(OperatorConfig(scheduling="tf-operator"))] == [63, 69, 78]


def test_bounds_weight_and_stalls_are_lines_when_they_are_new() -> None:
    worker = {"replicas": 2, "template": {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}}}
    spec = {"elasticPolicy": {"maxReplicas": 4}, "tfReplicaSpecs": {"Worker": worker}}
    tfjob = {"metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    new = {**tfjob, "status": {"elastic": {"weight": 0.5, "stalled": {"times": 2}}}}
    assert list(tfjob_news(None, new)) == [
        ("tfjob/default/a", "created", {}),
        ("tfjob/default/a", "bounds", {"min": 1, "max": 4, "backoff_limit": None, "clean_pods": None}),
        ("tfjob/default/a", "weight", {"weight": 0.5}),
        ("tfjob/default/a", "stalled", {"times": 2}),
    ]
    cleaned = {**tfjob, "spec": {**spec, "runPolicy": {"cleanPodPolicy": "All"}}}
    assert [fields["clean_pods"] for _, event, fields in tfjob_news(tfjob, cleaned) if event == "bounds"] == ["All"]
    assert list(tfjob_news(new, tfjob)) == [("tfjob/default/a", "stalled", {"times": 0})]
    assert list(tfjob_news(None, {**tfjob, "spec": {}})) == [("tfjob/default/a", "created", {})]


# Planted

MINIMUM_OF_ALL = (ROOT / "elastic/03-core-stays.yaml").read_text().replace("minReplicas: 1, max", "minReplicas: 3, max")


def no_minimum_is_left(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scaling, "removable", lambda victim: [f"worker-{index}" for index in victim.workers[:0:-1]])


def worker_0_is_taken_first(patch: pytest.MonkeyPatch) -> None:
    real = scaling.removable
    patch.setattr(scaling, "removable", lambda victim: ["worker-0", *real(victim)][: len(real(victim))])


def anybody_is_a_victim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(scaling, "victims", lambda job, running, weights: list(running))
    patch.setattr(policy._Scheduling, "_is_heaviest", lambda self, head: True)


def what_has_ended_begins_again(patch: pytest.MonkeyPatch) -> None:
    real, again = Reconciler._after_the_end, set[str]()

    async def enter(self: Any, tfjob: Any, status: Any) -> None:
        name = tfjob["metadata"]["name"]
        if name in again:
            await real(self, tfjob, status)
        else:
            again.add(name)
            await self._enter(tfjob, self._cache.spec_of(tfjob), status)

    patch.setattr(Reconciler, "_after_the_end", enter)


def there_is_no_cooldown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policy._Scheduling, "_may_grow", lambda self, runner: runner.worker_count < runner.job.maximum)


def all_pods_go_to_one_node(patch: pytest.MonkeyPatch) -> None:
    real = reconciler.pod_of_task

    def pod_of_task(*of: Any, node: Any, **how: Any) -> Any:
        return real(*of, node="host-1", **how)

    patch.setattr(reconciler, "pod_of_task", pod_of_task)


def refusals_do_not_delay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(status, "delay_s", lambda times, first_s=1.0: 0.3)


def refusals_delay_for_longer(patch: pytest.MonkeyPatch) -> None:
    real = status.delay_s
    patch.setattr(status, "delay_s", lambda times, first_s=1.0: 2 * real(times, first_s=first_s))


def nobody_wakes_what_was_held_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reconciler, "_wake", lambda self, tfjob, job: None)


def a_task_that_is_taken_keeps_its_pod(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        """Delete no pod."""

    patch.setattr(Reconciler, "_remove", nothing)


def no_job_is_called_running(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reconciler, "is_running", lambda job, tasks, pods: False)


PLANTED = [
    (no_minimum_is_left, 60, MINIMUM_OF_ALL, "below its minimum of 3", "workers", "bounds"),
    (worker_0_is_taken_first, 61, "elastic/03", "default/light goes on without worker-0", "placement", "placement"),
    (anybody_is_a_victim, 62, "elastic/04", "tfjob/default/heavy with weight 0.997751 gives", "workers", "weight"),
    (what_has_ended_begins_again, 63, "elastic/01", "is over (state), and then comes state", "state", "state"),
    (there_is_no_cooldown, 64, "elastic/06", "default/wide gets workers", "workers", "workers"),
    (all_pods_go_to_one_node, 65, "elastic/01", "light-worker-2 is created on host-1", "created", "placement"),
    (refusals_do_not_delay, 66, "elastic/08", "0.3 s after its node turned it away", "created", "rejected"),
    (refusals_delay_for_longer, 66, "elastic/08", "2.0 s after its node turned it away, 1 s", "created", "rejected"),
    (nobody_wakes_what_was_held_back, 66, "elastic/22", "s are enough, and nothing has happened", "state", "stalled"),
    (a_task_that_is_taken_keeps_its_pod, 95, "elastic/01", "light-worker-3 stays", "placement", ""),
    (no_job_is_called_running, 95, "elastic/01", "default/light is not called Running", "phase", ""),
]


@each_planted(PLANTED)
def test_the_law_finds_a_fault_of_one_line_and_names_the_lines(
    monkeypatch: pytest.MonkeyPatch, row: PlantedRow
) -> None:
    check_found(monkeypatch, row)


def test_of_what_did_not_follow_the_line_is_named_before_which_it_was_due(monkeypatch: pytest.MonkeyPatch) -> None:
    a_task_that_is_taken_keeps_its_pod(monkeypatch)
    found = next(each for each in played("elastic/01").violations if each["invariant"] == 95)
    first, overdue = found["first"], found["overdue"]
    assert first["line"] < overdue["line"]
    assert 0 < overdue["t"] - first["t"] < 1
