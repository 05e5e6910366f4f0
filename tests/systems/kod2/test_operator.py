"""The operator on the embedded cluster, in virtual time: what becomes of TFJobs there."""

import asyncio
import logging
import random
from pathlib import Path

import pytest

import mews.fixtures
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.scenario.model import Scenario
from mews.kube.api.errors import InvalidError, NotFoundError, UnavailableError
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import EVENTS, NODES, PODS, SERVICES
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.metrics import Kod2Counter, Kod2MemoryMetrics
from mews.systems.kod2.operator import Kod2Operator
from tests.systems.kod2.test_pods import tfjob


def cluster_doc(default_scheduler=None, **kod2):
    return Scenario.model_validate(
        {
            "apiVersion": "mews/v1",
            "kind": "Scenario",
            "metadata": {"name": "operator"},
            "hardware": str(Path(mews.fixtures.__file__).parent / "hardware" / "three-nodes.yaml"),
            "stack": {"kubecomp": None, "defaultScheduler": default_scheduler, "kod2": kod2},
        }
    )


def job(name="j", workers=2, *, image="mews/tf-trainer", steps=100, annotations=None, cpu=None, **given):
    made = tfjob(workers, **given)
    made |= {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name, "namespace": "default"}}
    for replicas in made["spec"]["tfReplicaSpecs"].values():
        template = replicas["template"]
        template["metadata"] = {"annotations": {"mews.dev/train-steps": str(steps), **(annotations or {})}}
        template["spec"]["containers"][0]["image"] = image
        template["spec"]["terminationGracePeriodSeconds"] = 1
    if cpu is not None:
        made["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]["requests"][
            "cpu"
        ] = cpu
    return made


class Bench:
    """The cluster and short words for what tests ask of it."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.kube = cluster.kube

    async def create(self, obj):
        return await self.kube.create(TFJOBS, obj, namespace="default")

    async def status(self, name="j"):
        return (await self.kube.get(TFJOBS, name, namespace="default")).get("status") or {}

    async def until(self, condition, name="j", within_s=600.0):
        async with asyncio.timeout(within_s):
            while True:
                found = condition_of(await self.kube.get(TFJOBS, name, namespace="default"), condition)
                if found is not None and found["status"] == "True":
                    return found
                await asyncio.sleep(0.5)

    async def pods(self):
        return {pod["metadata"]["name"]: pod for pod in (await self.kube.list(PODS, namespace="default")).items}

    async def reasons(self):
        return [event["reason"] for event in (await self.kube.list(EVENTS, namespace="default")).items]


def on_cluster(test, **kod2):
    async def main():
        cluster = await open_cluster(cluster_doc(**kod2), seed=1)
        try:
            await test(Bench(cluster))
            assert cluster.crashes() == []
        finally:
            await cluster.close()

    run_virtual(main)


def test_a_job_runs_from_created_to_succeeded_and_leaves_its_ended_pods():
    async def test(bench):
        await bench.create(job(elastic={}))
        await bench.until("Running")  # as soon as a worker runs; the server may be on its way
        await asyncio.sleep(2)
        assert (await bench.status())["replicaStatuses"]["PS"] == {"active": 1}
        services = [service["metadata"]["name"] for service in (await bench.kube.list(SERVICES)).items]
        assert services == ["j-ps-0", "j-worker-0", "j-worker-1"]
        await bench.until("Succeeded")
        await asyncio.sleep(5)
        status = await bench.status()
        assert [c["type"] for c in status["conditions"]] == ["Created", "Running", "Succeeded"]
        assert status["replicaStatuses"]["Worker"] == {"succeeded": 2}
        assert status["startTime"] < status["completionTime"]
        assert sorted(await bench.pods()) == ["j-worker-0", "j-worker-1"]  # cleanPodPolicy Running took the server
        assert {"TFJobCreated", "Placed", "TFJobRunning", "TFJobSucceeded"} <= set(await bench.reasons())

    on_cluster(test)


@pytest.mark.parametrize(("policy", "left"), [("All", []), ("None", ["j-ps-0", "j-worker-0"])])
def test_the_clean_up_policy_says_which_pods_stay(policy, left):
    async def test(bench):
        await bench.create(job(workers=1, runPolicy={"cleanPodPolicy": policy}))
        await bench.until("Succeeded")
        await asyncio.sleep(5)
        assert sorted(await bench.pods()) == left

    on_cluster(test)


def test_a_finished_job_goes_with_all_it_owns_after_its_time_to_live():
    async def test(bench):
        await bench.create(job(workers=1, runPolicy={"ttlSecondsAfterFinished": 20}))
        await bench.until("Succeeded")
        await asyncio.sleep(15)
        await bench.status()
        await asyncio.sleep(30)
        with pytest.raises(NotFoundError):
            await bench.status()
        assert await bench.pods() == {}

    on_cluster(test)


def test_a_job_fails_at_its_deadline():
    async def test(bench):
        await bench.create(job(steps=100_000, runPolicy={"activeDeadlineSeconds": 30}))
        failed = await bench.until("Failed")
        assert failed["reason"] == "TFJobFailed"
        assert failed["message"] == "Job j has failed because it was active longer than specified deadline"
        await asyncio.sleep(5)
        assert await bench.pods() == {}

    on_cluster(test)


def test_a_server_that_is_lost_goes_on_where_it_was():
    async def test(bench):
        await bench.create(job(steps=1000))
        await bench.until("Running")
        begun_s = bench.cluster.clock.now()
        await asyncio.sleep(100)
        await bench.kube.delete(PODS, "j-ps-0", namespace="default")
        await bench.until("Succeeded")
        lost_s = bench.cluster.clock.now() - begun_s
        await bench.create(job("undisturbed", steps=1000))
        await bench.until("Running", "undisturbed")
        begun_s = bench.cluster.clock.now()
        await bench.until("Succeeded", "undisturbed")
        assert lost_s < bench.cluster.clock.now() - begun_s + 30  # not the hundred seconds before

    on_cluster(test)


def test_a_suspended_job_gives_everything_back_and_starts_anew_when_resumed():
    async def test(bench):
        await bench.create(job(elastic={}))
        await bench.until("Running")
        suspend = {"spec": {"runPolicy": {"suspend": True}}}
        await bench.kube.patch(TFJOBS, "j", suspend, kind=Patch.MERGE, namespace="default")
        await bench.until("Suspended")
        await asyncio.sleep(5)
        assert await bench.pods() == {}
        assert "startTime" not in await bench.status()
        resume = {"spec": {"runPolicy": {"suspend": False}}}
        await bench.kube.patch(TFJOBS, "j", resume, kind=Patch.MERGE, namespace="default")
        await bench.until("Succeeded")

    on_cluster(test)


def test_a_program_that_may_be_tried_again_is_until_the_limit():
    async def test(bench):
        killed = {"mews.dev/duration-s": "2", "mews.dev/exit-code": "143"}
        given = job(workers=1, ps=0, image="mews/train", annotations=killed, restart="ExitCode")
        given["spec"]["runPolicy"] = {"backoffLimit": 2}
        await bench.create(given)
        await bench.until("Restarting")
        failed = await bench.until("Failed")
        assert failed["reason"] == "TFJobFailed"
        assert failed["message"] == "Job j has failed because it has reached the specified backoff limit"
        assert (await bench.status())["elastic"]["restarts"] == 2

    on_cluster(test)


def test_the_schema_refuses_what_it_knows_to_be_wrong():
    async def test(bench):
        for change, word in (
            ({"runPolicy": {"cleanPodPolicy": "Some"}}, "cleanPodPolicy"),
            ({"elasticPolicy": {"minReplicas": 0}}, "minReplicas"),
            ({"tfReplicaSpecs": {}}, "tfReplicaSpecs"),
        ):
            wrong = job()
            wrong["spec"] |= change
            with pytest.raises(InvalidError, match=word):
                await bench.create(wrong)

    on_cluster(test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda roles: [r.update(replicas=0) for r in roles.values()], "at least one replica"),
        (lambda roles: roles.update(Boss=roles["PS"]), "Boss: unknown replica type"),
    ],
)
def test_the_operator_refuses_the_rest_with_a_clear_message_and_goes_on(change, message):
    async def test(bench):
        wrong = job("wrong")
        change(wrong["spec"]["tfReplicaSpecs"])
        await bench.create(wrong)
        await bench.create(job("good", elastic={}))
        failed = await bench.until("Failed", "wrong")
        assert failed["reason"] == "TFJobFailedValidation"
        assert message in failed["message"]
        await bench.until("Succeeded", "good")

    on_cluster(test)


def test_a_node_that_goes_away_loses_its_tasks_to_others():
    async def test(bench):
        await bench.create(job(elastic={}, steps=100_000))
        await bench.until("Running")
        node = (await bench.pods())["j-worker-1"]["spec"]["nodeName"]
        await bench.cluster.kill(f"kubelet/{node}")
        await bench.kube.delete(NODES, node)
        async with asyncio.timeout(1200):
            while True:
                placement = (await bench.status())["elastic"]["placement"]
                pods = await bench.pods()
                running = [name for name, pod in pods.items() if pod["status"]["phase"] == "Running"]
                if node not in placement.values() and len(running) == 3:
                    return
                await asyncio.sleep(5)

    on_cluster(test)


def test_pods_that_are_no_tfjobs_hold_their_room():
    async def test(bench):
        asks = {"resources": {"requests": {"cpu": "8"}}}
        for number in (1, 2, 3):
            spec = {"nodeName": f"host-{number}", "containers": [{"name": "c", "image": "mews/idle", **asks}]}
            await bench.kube.create(PODS, {"metadata": {"name": f"other-{number}"}, "spec": spec}, namespace="default")
        await asyncio.sleep(5)
        await bench.create(job(elastic={}, cpu="4"))
        await asyncio.sleep(10)
        assert (await bench.status())["elastic"]["state"] == "WAITING"
        await bench.kube.delete(PODS, "other-2", namespace="default")
        await bench.until("Running")
        assert set((await bench.status())["elastic"]["placement"].values()) == {"host-2"}

    on_cluster(test)


def test_pods_of_jobs_that_are_on_their_way_out_are_room_to_place_in_and_not_yet_to_start_in():
    async def test(bench):
        await bench.create(job("first", workers=3, elastic={"minReplicas": 3}, cpu="9", steps=100_000))
        await bench.until("Running", "first")
        for node in ("host-1", "host-2", "host-3"):
            await bench.cluster.kill(f"kubelet/{node}")
        await bench.kube.delete(TFJOBS, "first", namespace="default")
        await bench.create(job("second", workers=3, elastic={"minReplicas": 3}, cpu="9"))
        await asyncio.sleep(5)
        assert (await bench.status("second"))["elastic"]["state"] == "RUNNING"
        pods = await bench.pods()
        assert all("deletionTimestamp" in pod["metadata"] for name, pod in pods.items() if name.startswith("first-"))
        assert not any(name.startswith("second-worker") for name in pods)

    on_cluster(test)


def test_killed_at_any_moment_its_successor_goes_on():
    async def test(bench):
        for number in range(4):
            await bench.create(job(f"j{number}", workers=6, elastic={"minReplicas": 2}, steps=150))
        for number in range(12):
            await asyncio.sleep(0.7 + 1.3 * number)
            await bench.cluster.kill("operator")
            await asyncio.sleep(0.5)
            await bench.cluster.start("operator")
        for number in range(4):
            await bench.until("Succeeded", f"j{number}", within_s=3000)

    on_cluster(test)


def test_a_service_that_is_deleted_comes_back():
    async def test(bench):
        await bench.create(job(elastic={}, steps=100_000))
        await bench.until("Running")
        first = await bench.kube.get(SERVICES, "j-ps-0", namespace="default")
        await bench.kube.delete(SERVICES, "j-ps-0", namespace="default")
        await asyncio.sleep(5)
        again = await bench.kube.get(SERVICES, "j-ps-0", namespace="default")
        assert again["metadata"]["uid"] != first["metadata"]["uid"]

    on_cluster(test)


class Moody:
    """The API, not reachable for the first so many creations of pods and writes of statuses."""

    def __init__(self, kube, failures):
        self._kube, self.left = kube, {"create": failures, "replace": failures}

    def __getattr__(self, name):
        return getattr(self._kube, name)

    def _moody(self, what):
        self.left[what] -= 1
        if self.left[what] >= 0:
            raise UnavailableError(f"{what} did not reach the API")

    async def create(self, resource, obj, **more):
        if resource is PODS:
            self._moody("create")
        return await self._kube.create(resource, obj, **more)

    async def replace(self, resource, obj, **more):
        self._moody("replace")
        return await self._kube.replace(resource, obj, **more)


def test_what_does_not_reach_the_api_is_tried_again_for_as_long_as_it_takes():
    async def test(bench):
        await bench.cluster.kill("operator")
        moody, metrics = Moody(bench.kube, 15), Kod2MemoryMetrics()
        context = Context(moody, bench.cluster.clock, random.Random(1), logging.getLogger("moody"))
        operator = asyncio.create_task(Kod2Operator(context, metrics=metrics).run())
        await bench.create(job(elastic={}))
        await bench.until("Succeeded", within_s=3600)
        assert max(moody.left.values()) < 0
        assert metrics.counts[Kod2Counter.RETRIES] >= 30
        operator.cancel()
        await asyncio.gather(operator, return_exceptions=True)

    on_cluster(test)


def test_the_baseline_creates_all_pods_at_once_and_pins_none():
    async def test(bench):
        await bench.create(job(workers=3, elastic={}))
        await asyncio.sleep(3)
        pods = await bench.pods()
        assert len(pods) == 4
        assert not any(pod["spec"].get("nodeName") for pod in pods.values())

    on_cluster(test, scheduling="tf-operator")
