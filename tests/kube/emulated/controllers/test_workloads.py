"""Workloads in virtual time: what the stories come to, told twice, and the choice of controllers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mews.harness.clock import EPOCH_S
from mews.kube.api.errors import TooManyRequestsError
from mews.kube.api.objects import is_deleting, name_of, phase_of, seconds, timestamp
from mews.kube.api.resources import CRON_JOBS, DEPLOYMENTS, DISRUPTION_BUDGETS, JOBS, PODS, REPLICA_SETS
from mews.kube.emulated.controllers.catalogue import CONTROLLERS, chosen
from mews.kube.emulated.controllers.cronjob.schedule import parse
from mews.kube.emulated.controllers.job.failures import Backoff
from mews.kube.emulated.controllers.job.indexes import parse_indexes, superfluous, write_indexes
from mews.kube.emulated.controllers.revisions import data_of
from mews.kube.emulated.controllers.template_hash import template_hash
from tests.kube.emulated.controllers import job_stories, stories
from tests.kube.emulated.controllers.owner_graphs import OwnerGraph, owner_graph
from tests.kube.emulated.controllers.staging import Stage, workload
from tests.kube.emulated.controllers.telling import Story, Told, ours, title


def last(told: Told, story: Story, kind: str, name: str = "") -> Any:
    """What is left of an object at a story's last turn."""
    objects = [json.loads(text) for text in told[title(story)][0][-1][1]]
    return next(o for o in objects if o["kind"] == kind and o["metadata"]["name"].startswith(name))


def events(told: Told, story: Story, about: str) -> list[str]:
    return told[title(story)][1].get(about, [])


@pytest.fixture(scope="module")
def told() -> Told:
    return ours(stories.STORIES)


def test_the_same_seed_tells_the_same(told: Told) -> None:
    assert ours(stories.STORIES) == told


def test_another_seed_tells_the_same_but_for_names(told: Told) -> None:
    assert ours(stories.STORIES, seed=7) == told


_HARDY = (
    *(stories.rolls_out_and_back, stories.recreates, job_stories.completes, job_stories.completes_by_index),
    *(job_stories.fails_by_index, job_stories.has_succeeded_enough, stories.grows_beside_itself),
    *(stories.goes_one_by_one, stories.is_everywhere, stories.leaves_nothing, stories.leaves_orphans),
)


@pytest.mark.parametrize("lives_s", [0.37, 1.1])
def test_controllers_that_die_again_and_again_get_there_too(told: Told, lives_s: float) -> None:
    mortal = ours(_HARDY, lives_s=lives_s)
    for story in _HARDY:
        assert _counted(mortal, story) == _counted(told, story), title(story)


def _counted(told: Told, story: Story) -> list[tuple[str, Any]]:
    """Objects at the last turn, by what does not tell how often they were written."""
    found = [json.loads(text) for text in told[title(story)][0][-1][1]]
    numbers = ("replicas", "availableReplicas", "updatedReplicas", "succeeded", "completedIndexes", "numberReady")
    return sorted(
        (f"{o['kind']}/{o['metadata']['name']}/{o.get('phase')}", [(o.get("status") or {}).get(n) for n in numbers])
        for o in found
    )


async def is_left_alone(stage: Stage) -> None:
    await stage.make(DEPLOYMENTS, "web", **workload("web", replicas=3))
    await stage.until("counted", lambda: stage.status(DEPLOYMENTS, "web", unavailableReplicas=3))
    assert len(await stage.all(REPLICA_SETS)) == 1
    assert not await stage.all(PODS)


def test_each_controller_runs_by_itself() -> None:
    ours([is_left_alone], run=["deployment-controller"])


def test_a_circle_of_owners_deleted_in_the_foreground_goes_and_stops_nobody() -> None:
    names = ("a", "b", "c")
    circle = OwnerGraph(
        seed=0, owners={name: [(names[number - 1], True)] for number, name in enumerate(names)}, held=frozenset(),
        deletions=[("a", "Foreground"), ("b", "Foreground")],
    )  # fmt: skip
    told = ours([circle, stories.leaves_nothing])
    assert told[title(circle)][0][-1] == ("let go", [])
    assert told[title(stories.leaves_nothing)][0][-1][0] == "gone"


def test_any_graph_of_owners_comes_to_rest_and_what_is_deleted_goes() -> None:
    graphs = [owner_graph(seed) for seed in range(300)]
    told = ours(graphs)
    for graph in graphs:
        left = told[title(graph)][0][-1][1]
        assert not [text for text in left if " True " in text.partition(" [")[0] + " "], (graph, left)


def test_a_roll_back_takes_the_old_replica_set_up_again_under_a_new_revision(told: Told) -> None:
    turns = dict(told["rolls-out-and-back"][0])
    sets = [each for text in turns["rolled back"] if (each := json.loads(text))["kind"] == "ReplicaSet"]
    kept = {each["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: each for each in sets}
    assert {revision: each["spec"]["replicas"] for revision, each in kept.items()} == {"2": 0, "3": 3}
    assert kept["3"]["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_a_job_that_fails_says_first_that_it_will(told: Told) -> None:
    job = last(told, job_stories.fails, "Job")
    assert [c["type"] for c in job["status"]["conditions"]] == ["FailureTarget", "Failed"]
    assert job["status"]["failed"] == 2
    assert events(told, job_stories.fails, "Job/job")[-1] == str(
        ("job-controller", "Warning", "BackoffLimitExceeded", "Job has reached the specified backoff limit", 1)
    )


def test_a_job_that_completes_counts_every_pod_once_and_lets_it_go(told: Told) -> None:
    job = last(told, job_stories.completes, "Job")
    assert [c["type"] for c in job["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert job["status"]["succeeded"] == 4
    assert job["status"]["uncountedTerminatedPods"] == {}
    assert "finalizers" not in last(told, job_stories.completes, "Pod")["metadata"]


def test_orphans_stay_and_everything_else_goes(told: Told) -> None:
    assert "ownerReferences" not in last(told, stories.leaves_orphans, "Pod")["metadata"]
    left = {json.loads(text)["kind"] for text in told["leaves-nothing"][0][-1][1]}
    assert left == {"ServiceAccount"}


async def is_drained(stage: Stage) -> None:
    """Evictions of three pods of which two must stay healthy."""
    budget = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2}
    await stage.make(DISRUPTION_BUDGETS, "web", spec=budget)
    await stage.make(REPLICA_SETS, "web", **workload("web", replicas=3))
    await stage.until("ready", lambda: stage.status(DISRUPTION_BUDGETS, "web", disruptionsAllowed=1))
    for pod in [name_of(pod) for pod in await stage.all(PODS)]:
        await stage.kube.evict(stage.namespace, pod)
        for other in await stage.all(PODS):
            if not is_deleting(other) and phase_of(other) == "Running":
                with pytest.raises(TooManyRequestsError):
                    await stage.kube.evict(stage.namespace, name_of(other))
        await stage.until("replaced", lambda: stage.status(DISRUPTION_BUDGETS, "web", disruptionsAllowed=1))
        assert await stage.status(REPLICA_SETS, "web", readyReplicas=3)


def test_a_budget_lets_pods_go_one_after_the_other() -> None:
    turns = [what for what, _ in ours([is_drained])["is-drained"][0]]
    assert turns == ["ready", "replaced", "replaced", "replaced"]


async def comes_round(stage: Stage) -> None:
    job = job_stories.job("Succeeded")["spec"]
    await stage.make(CRON_JOBS, "tick", spec={"schedule": "*/2 * * * *", "jobTemplate": {"spec": job}})
    await asyncio.sleep(11 * 60)
    await stage.until("five times", lambda: _ended(stage, 3))


async def _ended(stage: Stage, count: int) -> bool:
    return len(await stage.all(JOBS)) == count


def test_a_cron_job_comes_round_and_keeps_its_last_three() -> None:
    told = ours([comes_round])
    jobs = [each for text in told["comes-round"][0][-1][1] if (each := json.loads(text))["kind"] == "Job"]
    minute = int(EPOCH_S) // 60
    assert [each["metadata"]["name"] for each in jobs] == [f"tick-{minute + n}" for n in (6, 8, 10)]
    said = events(told, comes_round, "CronJob/tick")
    assert sum("Created job" in each for each in said) == 5
    assert str(("cronjob-controller", "Normal", "SuccessfulDelete", f"Deleted job tick-{minute + 2}", 1)) in said


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01T00:07:30Z", "2026-01-01T00:15:00Z"),
        ("0 9-17/4 * * mon-fri", "2026-01-02T17:00:00Z", "2026-01-05T09:00:00Z"),
        ("30 2 13 * 5", "2026-01-01T00:00:00Z", "2026-01-02T02:30:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("@monthly", "2026-01-15T00:00:00Z", "2026-02-01T00:00:00Z"),
    ],
)
def test_when_it_is_time_next(text: str, after: str, expected: str) -> None:
    found = parse(text).after(seconds(after))
    assert found is not None
    assert timestamp(found) == expected


def test_a_schedule_that_never_comes_and_ones_that_cannot_be_read() -> None:
    assert parse("0 0 31 2 *").after(EPOCH_S) is None
    for text in ("* * * *", "61 * * * *", "a * * * *", "5-1 * * * *", "*/0 * * * *"):
        with pytest.raises(ValueError, match=r"expected exactly 5 fields|failed to parse int|must be within"):
            parse(text)


def test_many_similar_events_are_told_as_one(told: Told) -> None:
    said = events(told, stories.rolls_out_and_back, "Deployment/web")
    assert len(said) == 10
    assert "(combined from similar events): Scaled down replica set" in said[-1]


def test_failed_pods_are_replaced_later_and_later() -> None:
    def ended(at: str) -> dict[str, Any]:
        state = {"terminated": {"finishedAt": f"2026-01-01T00:00:{at}Z"}}
        return {"status": {"containerStatuses": [{"state": state}]}, "metadata": {}, "spec": {}}

    begin = 1_767_225_600.0
    backoff = Backoff().after([], [ended("00")])
    assert backoff.left_s(begin) == 10
    backoff = backoff.after([], [ended("10")])
    assert (backoff.failures, backoff.left_s(begin + 10)) == (2, 20)
    assert backoff.after([ended("20")], []).left_s(begin + 20) == 0


@pytest.mark.parametrize("text", ["", "0", "0,1", "0-2", "0-2,4,6,7,9-11"])
def test_indexes_are_written_as_they_are_read(text: str) -> None:
    assert write_indexes(parse_indexes(text)) == text


def test_the_hash_of_a_template_is_upstreams() -> None:
    container = {"name": "c", "image": "x:1", "imagePullPolicy": "IfNotPresent", "resources": {}}
    container |= {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    spec = {"containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}
    spec |= {"schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}
    assert template_hash({"metadata": {"labels": {"app": "web"}}, "spec": spec}) == "b9ddb8b86"


def test_controllers_are_chosen_as_kube_controller_manager_chooses() -> None:
    everything = tuple(CONTROLLERS)
    assert chosen(["*"]) == everything
    assert chosen(["*", "-job-controller"]) == tuple(name for name in everything if name != "job-controller")
    assert chosen(["job-controller"]) == ("job-controller",)
    assert chosen([]) == ()
    with pytest.raises(ValueError, match="controller 'cron': must be"):
        chosen(["cron"])


def conditions(told: Told, story: Story) -> list[tuple[str, str, str]]:
    found = last(told, story, "Job")["status"]["conditions"]
    return [(each["type"], each["reason"], each["message"]) for each in found]


def test_an_index_fails_for_good_after_its_own_limit_and_the_job_goes_on_with_the_others(told: Told) -> None:
    status = last(told, job_stories.fails_by_index, "Job")["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert (status["succeeded"], status["failed"]) == (2, 2)
    assert conditions(told, job_stories.fails_by_index) == [
        ("FailureTarget", "FailedIndexes", "Job has failed indexes"),
        ("Failed", "FailedIndexes", "Job has failed indexes"),
    ]


def test_a_job_ends_with_more_failed_indexes_than_it_may_have(told: Told) -> None:
    status = last(told, job_stories.fails_in_too_many_indexes, "Job")["status"]
    assert status["failedIndexes"] == "0,1"
    assert {reason for _, reason, _ in conditions(told, job_stories.fails_in_too_many_indexes)} == {
        "MaxFailedIndexesExceeded"
    }


def test_a_rule_fails_an_index_at_its_first_failure(told: Told) -> None:
    status = last(told, job_stories.fails_an_index_by_rule, "Job")["status"]
    assert (status["failedIndexes"], status["completedIndexes"], status["failed"]) == ("0", "1", 1)


def test_a_failure_that_is_passed_over_counts_for_the_wait_alone(told: Told) -> None:
    status = last(told, job_stories.passes_over_failures, "Job")["status"]
    assert status.get("failed", 0) == 0
    assert status["failedIndexes"] == ""


def test_a_success_policy_ends_a_job_and_its_other_pods(told: Told) -> None:
    assert conditions(told, job_stories.has_succeeded_enough) == [
        ("SuccessCriteriaMet", "SuccessPolicy", "Matched rules at index 1"),
        ("Complete", "SuccessPolicy", "Matched rules at index 1"),
    ]
    assert events(told, job_stories.has_succeeded_enough, "Job/job")[-1] == str(
        ("job-controller", "Normal", "Completed", "Job completed", 1)
    )


def test_a_job_that_another_controller_manages_is_left_alone(told: Told) -> None:
    assert last(told, job_stories.is_someone_elses, "Job", "job").get("status", {}) == {}
    assert events(told, job_stories.is_someone_elses, "Job/job") == []
    assert last(told, job_stories.is_someone_elses, "Job", "mine")["status"]["succeeded"] == 1


def test_pods_are_replaced_once_they_have_ended_or_as_they_go(told: Told) -> None:
    turns = dict(told[title(job_stories.replaces_what_has_ended)][0])
    assert sum('"kind": "Pod"' in text for text in turns["going"]) == 1
    creations = [
        sum("Created pod" in each for each in events(told, story, "Job/job"))
        for story in (job_stories.replaces_what_has_ended, job_stories.replaces_what_goes)
    ]
    assert creations == [2, 2]


def test_a_daemon_set_with_a_surge_makes_a_new_pod_before_the_old_one_goes(told: Told) -> None:
    said = events(told, stories.grows_beside_itself, "DaemonSet/ds")
    steps = ["+" if "Created" in each else "-" for each in said]
    assert steps == ["+", "+", "+", "-", "+", "-"]


def test_a_budget_lets_sick_pods_go_only_by_its_policy(told: Told) -> None:
    refusals = dict(told[title(stories.is_sick)][0])["refused"]
    assert len(refusals) == 1
    assert refusals[0].startswith("IfHealthyBudget: Cannot evict pod")


def test_endpoints_written_by_hand_are_mirrored_while_their_service_has_no_selector(told: Told) -> None:
    turns = {
        what: [each for text in lines if (each := json.loads(text))["kind"] == "EndpointSlice"]
        for what, lines in told[title(stories.is_written_by_hand)][0]
    }
    assert [(each["addressType"], len(each["endpoints"])) for each in turns["mirrored"]] == [("IPv4", 3), ("IPv6", 1)]
    assert turns["changed"][0]["ports"][0]["port"] == 81
    assert [each["metadata"]["labels"]["kubernetes.io/service-name"] for each in turns["unserved"]] == ["own"]


def test_indexes_beyond_the_completions_do_not_count() -> None:
    assert parse_indexes("0-2,4,6-9", below=7) == [0, 1, 2, 4, 6]


def test_of_pods_that_share_an_index_the_one_that_got_furthest_stays() -> None:
    def pod(name: str, phase: str, index: str | None) -> dict[str, Any]:
        annotations = {} if index is None else {"batch.kubernetes.io/job-completion-index": index}
        metadata = {"name": name, "uid": name, "annotations": annotations, "creationTimestamp": "2026-01-01T00:00:00Z"}
        return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase}}

    job = {"spec": {"completionMode": "Indexed", "completions": 2}}
    pods = [pod("a", "Pending", "0"), pod("b", "Running", "0"), pod("c", "Running", "1"), pod("d", "Running", "2")]
    doomed = superfluous(job, [*pods, pod("e", "Running", None)], EPOCH_S)
    assert sorted(name_of(each) for each in doomed) == ["a", "d", "e"]


def test_a_revision_holds_its_template_in_go_s_order() -> None:
    containers = [{"name": "c", "image": "i", "env": [{"value": "1", "name": "A"}]}]
    owner = {"spec": {"template": {"spec": {"containers": containers}, "metadata": {"labels": {"b": "1", "a": "2"}}}}}
    assert json.dumps(data_of(owner), separators=(",", ":")) == (
        '{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"2","b":"1"}},'
        '"spec":{"containers":[{"env":[{"name":"A","value":"1"}],"image":"i","name":"c"}]}}}}'
    )
