"""Specs of running jobs that are changed: what the policy makes of them, and the operator on the embedded cluster."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from mews.kube.api.errors import InvalidError
from mews.kube.api.objects import clone
from mews.kube.api.resources import PODS
from mews.kube.client.port import Patch
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.model import Mode, Options, ScaledIn, ScaledOut
from mews.systems.kod2.policy import decide
from tests.systems.kod2.queues import ask, cluster, job, queues, running
from tests.systems.kod2.test_operator import job as tfjob
from tests.systems.kod2.test_operator import on_cluster


def edited(what, *workers, target=None, **fields):
    return replace(running(what, "n0", *workers), target=target, **fields)


# The policy


@pytest.mark.parametrize("mode", Mode)
def test_a_lowered_maximum_takes_workers_away_from_the_server_first(mode):
    what = job("j", least=1, wanted=2, most=2)
    verdict = decide(queues(cluster(9, 9), running=[edited(what, "n0", "n0", "n1", "n1")]), 5, Options(mode=mode))
    # worker-1 is beside the server and stays; of the others two go. What stays has an index that TF_CONFIG lists.
    assert verdict.decisions == (ScaledIn("j", ("worker-3", "worker-2"), ""),)


def test_a_worker_whose_index_is_not_listed_any_more_begins_anew_in_its_place_under_one_that_is():
    what = job("j", least=1, wanted=2, most=3)
    verdict = decide(queues(cluster(4, 1), running=[edited(what, "n0", None, None, None, "n1")]), 5)
    assert verdict.decisions[:2] == (ScaledIn("j", ("worker-4",), ""), ScaledOut("j", {"worker-1": "n1"}))


def test_lowered_replicas_take_workers_once_and_raised_ones_get_idle_room_without_a_cooldown():
    what = job("j", least=1, wanted=2, most=6)
    lowered = decide(queues(cluster(9), running=[edited(what, *["n0"] * 5, target=2)]), 5)
    assert lowered.decisions == (ScaledIn("j", ("worker-4", "worker-3", "worker-2"), ""),)
    what = job("j", least=1, wanted=4, most=6)
    raised = decide(queues(cluster(9), running=[edited(what, "n0", "n0", target=4, scaled_s=4.0)]), 5)
    assert raised.decisions == (ScaledOut("j", {"worker-2": "n0", "worker-3": "n0"}),)


def test_a_raised_minimum_is_filled_at_once_from_idle_room_or_from_lighter_jobs():
    what = job("j", least=3, wanted=3, most=3)
    (out,) = decide(queues(cluster(9), running=[edited(what, "n0", scaled_s=4.0)]), 5).decisions
    assert out == ScaledOut("j", {"worker-1": "n0", "worker-2": "n0"})
    light = running(job("light", 2, ps=2, least=1, wanted=3), "n0", "n0", "n0", "n0")
    taken = decide(queues(cluster(10), running=[edited(what, "n0"), light]), 5).decisions
    assert taken == (ScaledIn("light", ("worker-2",), "j"), ScaledOut("j", {"worker-1": "n0", "worker-2": "n0"}))


def test_a_raised_minimum_that_does_not_fit_leaves_the_job_running_and_says_so():
    what = job("j", least=9, wanted=9, most=9)
    verdict = decide(queues(cluster(4), running=[edited(what, "n0", "n0")]), 5)
    assert verdict.reasons["j"].code == "BelowMinimum"
    assert all(isinstance(decision, ScaledOut) for decision in verdict.decisions)


def test_servers_that_the_spec_has_no_more_go_and_new_ones_come():
    what = job("j", least=1)
    more = replace(what, fixed=(*what.fixed, ("ps-1", ask(1, 1))))
    assert decide(queues(cluster(9), running=[edited(more, "n0")]), 5).decisions == (ScaledOut("j", {"ps-1": "n0"}),)
    both = replace(edited(what, "n0"), tasks={"ps-0": "n0", "ps-1": "n0", "worker-0": "n0"})
    assert decide(queues(cluster(9), running=[both]), 5).decisions == (ScaledIn("j", ("ps-1",), ""),)


# The operator


async def change(bench, spec):
    return await bench.kube.patch(TFJOBS, "j", {"spec": spec}, kind=Patch.MERGE, namespace="default")


async def workers(bench, count, within_s=120.0):
    """Wait until so many workers' pods run and the status says so, and give them a moment to be more."""
    async with asyncio.timeout(within_s):
        while True:
            pods = await bench.pods()
            there = [name for name, pod in pods.items() if "-worker-" in name and pod["status"]["phase"] == "Running"]
            if len(there) == count and (await bench.status())["elastic"]["workers"] == count:
                return there
            await asyncio.sleep(1)


def listed(pod):
    (config,) = [e["value"] for e in pod["spec"]["containers"][0]["env"] if e["name"] == "TF_CONFIG"]
    return len(json.loads(config)["cluster"]["worker"])


def test_the_maximum_of_a_running_job_can_be_lowered_and_raised():
    async def test(bench):
        await bench.create(tfjob(workers=2, elastic={"maxReplicas": 4}, steps=100_000))
        await workers(bench, 4)
        await change(bench, {"elasticPolicy": {"maxReplicas": 2}})
        await workers(bench, 2, within_s=20)
        assert (await bench.status())["elastic"]["max"] == 2
        await change(bench, {"elasticPolicy": {"maxReplicas": 5}})
        await workers(bench, 5)
        pods = await bench.pods()
        # Those that ran keep what they were told; those made afterwards list five.
        assert [listed(pods[f"j-worker-{index}"]) for index in range(5)] == [4, 4, 5, 5, 5]

    on_cluster(test)


def test_tasks_begin_anew_when_the_maximum_changes_where_the_job_wants_that():
    async def test(bench):
        elastic = {"maxReplicas": 2, "restartOnResize": True}
        await bench.create(tfjob(workers=2, elastic=elastic, steps=100_000))
        await workers(bench, 2)
        first = (await bench.pods())["j-ps-0"]["metadata"]["uid"]
        await change(bench, {"elasticPolicy": {"maxReplicas": 3}})
        await workers(bench, 3, within_s=200)
        pods = await bench.pods()
        assert {name: listed(pod) for name, pod in pods.items()} == dict.fromkeys(pods, 3)
        assert pods["j-ps-0"]["metadata"]["uid"] != first
        assert "Resized" in await bench.reasons()

    on_cluster(test)


async def scale(bench, count):
    """What ``kubectl scale`` does (by kubectl itself: tests/systems/kod2/test_processes.py)."""
    body = {"spec": {"replicas": count}}
    scaled = await bench.kube.patch(TFJOBS, "j", body, kind=Patch.MERGE, namespace="default", subresource="scale")
    assert scaled["kind"] == "Scale" and scaled["spec"] == {"replicas": count}
    return scaled


def test_replicas_of_a_running_job_act_within_the_bounds_and_are_refused_beyond():
    async def test(bench):
        await bench.create(tfjob(workers=2, elastic={"minReplicas": 2, "maxReplicas": 5}, steps=100_000))
        await workers(bench, 5)
        await scale(bench, 3)
        await workers(bench, 3, within_s=20)
        selector = (await bench.status())["elastic"]["selector"]
        assert len((await bench.kube.list(PODS, namespace="default", label_selector=selector)).items) == 3
        for wrong in (1, 6):
            with pytest.raises(InvalidError, match="within elasticPolicy's minReplicas and maxReplicas"):
                await scale(bench, wrong)
        assert (await bench.status())["elastic"]["replicas"] == 3

    on_cluster(test)


def test_a_rigid_job_is_scaled_as_a_whole():
    async def test(bench):
        await bench.create(tfjob(workers=2, steps=100_000))
        await workers(bench, 2)
        await scale(bench, 4)
        await workers(bench, 4, within_s=20)
        await scale(bench, 1)
        await workers(bench, 1, within_s=20)

    on_cluster(test)


def test_the_baseline_follows_replicas_too():
    async def test(bench):
        await bench.create(tfjob(workers=2, steps=100_000))
        for count in (2, 4, 1):
            await scale(bench, count)
            await asyncio.sleep(5)
            assert sum("-worker-" in name for name in await bench.pods()) == count

    on_cluster(test, scheduling="tf-operator")


@pytest.mark.parametrize(
    "edit",
    [
        {"elasticPolicy": {"minReplicas": 9}},
        {"tfReplicaSpecs": {"Boss": {"template": {}}}},
        {"tfReplicaSpecs": {"Worker": None}},
    ],
)
def test_a_running_job_that_an_edit_makes_invalid_is_ended_and_cleaned_up(edit):
    async def test(bench):
        await bench.create(tfjob(workers=2, elastic={}, steps=100_000))
        await workers(bench, 2)
        await change(bench, edit)
        failed = await bench.until("Failed")
        assert failed["reason"] == "TFJobFailedValidation"
        await asyncio.sleep(5)
        assert await bench.pods() == {}

    on_cluster(test)


def test_a_running_job_whose_pods_hold_more_than_its_spec_asks_for_now_still_holds_that():
    async def test(bench):
        await bench.create(tfjob("large", workers=3, elastic={"minReplicas": 3}, cpu="8", steps=600))
        await bench.until("Running", "large")
        worker = clone((await bench.kube.get(TFJOBS, "large", namespace="default"))["spec"]["tfReplicaSpecs"])
        worker["Worker"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
        change = {"spec": {"tfReplicaSpecs": {"Worker": worker["Worker"]}}}
        await bench.kube.patch(TFJOBS, "large", change, kind=Patch.MERGE, namespace="default")
        await asyncio.sleep(5)
        await bench.create(tfjob("behind", workers=1, elastic={}, cpu="6"))
        await asyncio.sleep(20)
        assert (await bench.status("behind"))["elastic"]["state"] == "WAITING"
        assert "Moved" not in await bench.reasons()
        await bench.until("Succeeded", "large", within_s=3000)
        await bench.until("Succeeded", "behind", within_s=3000)

    on_cluster(test)
