"""What Kubeflow's users count on, on the embedded cluster in virtual time (docs/kod2.md has the table)."""

import asyncio
import json

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.harness.scenario.stack import DefaultSchedulerOptions
from mews.kube.api.errors import InvalidError, NotFoundError
from mews.kube.api.objects import condition_of
from mews.kube.api.resources import EVENTS, LIMIT_RANGES, SERVICES
from mews.kube.client.port import Patch
from mews.systems.kod2.config import OperatorConfig, config_of
from mews.systems.kod2.defaults import JobDefaults
from mews.systems.kod2.errors import Kod2ConfigError, TFJobError
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.podspec import pod_of_task, service_of_task
from mews.systems.kod2.tfjob import read_tfjob
from tests.systems.kod2.test_operator import Bench, cluster_doc, job
from tests.systems.kod2.test_pods import replicas, tfjob

MODES = pytest.mark.parametrize("scheduling", ["kod2", "tf-operator"])


def led(name="j", **more):
    """A job with a chief, and what else is asked for."""
    made = job(name, 2)
    template = made["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    for role, count in {"Chief": 1, **more}.items():
        made["spec"]["tfReplicaSpecs"][role] = {"replicas": count, "template": template}
    return made


def without_requests(name="j", **given):
    made = job(name, **given)
    for each in made["spec"]["tfReplicaSpecs"].values():
        del each["template"]["spec"]["containers"][0]["resources"]
    return made


async def condition(bench, kind, name="j"):
    found = condition_of(await bench.kube.get(TFJOBS, name, namespace="default"), kind)
    return None if found is None else (found["status"], found["reason"], found["message"])


async def events(bench):
    return {(event["reason"], event["message"]) for event in (await bench.kube.list(EVENTS, namespace="default")).items}


async def suspend(bench, value):
    change = {"spec": {"runPolicy": {"suspend": value}}}
    await bench.kube.patch(TFJOBS, "j", change, kind=Patch.MERGE, namespace="default")


def on_cluster(test, **kod2):
    """With a default scheduler: the baseline leaves pods to it."""

    async def main():
        scenario = cluster_doc(**kod2)
        stack = scenario.stack.model_copy(update={"default_scheduler": DefaultSchedulerOptions()})
        cluster = await open_cluster(scenario.model_copy(update={"stack": stack}), seed=1)
        try:
            await test(Bench(cluster))
            assert cluster.crashes() == []
        finally:
            await cluster.close()

    run_virtual(main)


# Conditions and events


@MODES
def test_a_suspended_job_says_so_loses_pods_and_services_and_says_when_it_is_resumed(scheduling):
    async def test(bench):
        await bench.create(job())
        await bench.until("Running")
        await suspend(bench, True)
        await bench.until("Suspended")
        await asyncio.sleep(5)
        told = ("TFJobSuspended", "TFJob j is suspended.")
        assert await condition(bench, "Running") == ("False", *told)
        assert await condition(bench, "Suspended") == ("True", *told)
        assert await bench.pods() == {}
        assert [s for s in (await bench.kube.list(SERVICES, namespace="default")).items if "j-" in str(s)] == []
        await suspend(bench, False)
        await bench.until("Running")
        told = ("TFJobResumed", "TFJob j is resumed.")
        assert await condition(bench, "Suspended") == ("False", *told)
        assert await condition(bench, "Created") == ("True", "TFJobCreated", "TFJob j is created.")
        assert told in await events(bench)
        await bench.until("Succeeded")

    on_cluster(test, scheduling=scheduling)


@MODES
def test_a_job_that_is_created_suspended_has_no_pods_until_it_is_resumed(scheduling):
    async def test(bench):
        await bench.create(job(runPolicy={"suspend": True}))
        await bench.until("Suspended")
        await asyncio.sleep(60)
        status = await bench.status()
        assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Created", "True"), ("Suspended", "True")]
        assert await bench.pods() == {} and "startTime" not in status
        await suspend(bench, False)
        await bench.until("Succeeded")

    on_cluster(test, scheduling=scheduling)


def test_pods_and_services_made_and_deleted_are_events_with_kubeflows_names():
    async def test(bench):
        await bench.create(job(runPolicy={"cleanPodPolicy": "All"}))
        await bench.until("Succeeded")
        await asyncio.sleep(5)
        told = await events(bench)
        for task in ("ps-0", "worker-0", "worker-1"):
            for kind, noun in (("Pod", "pod"), ("Service", "service")):
                assert (f"SuccessfulCreate{kind}", f"Created {noun}: j-{task}") in told
                assert (f"SuccessfulDelete{kind}", f"Deleted {noun}: j-{task}") in told
        assert ("ExitedWithCode", "Pod: default.j-worker-0 exited with code 0") in told
        assert ("TFJobSucceeded", "TFJob default/j successfully completed.") in told

    on_cluster(test)


def test_a_job_succeeds_with_its_chief_and_those_that_still_run_count_as_succeeded():
    async def test(bench):
        given = led(PS=1)
        given["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
        await bench.create(given)
        await bench.until("Succeeded")
        assert (await bench.status())["replicaStatuses"]["PS"] == {"succeeded": 1}
        assert (await bench.pods())["j-ps-0"]["status"]["phase"] == "Running"

    on_cluster(test)


@MODES
def test_chief_servers_workers_and_two_evaluators_play_to_the_end_in_virtual_time(scheduling):
    async def test(bench):
        given = led(PS=2, Evaluator=2)
        given["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
        await bench.create(given)
        await bench.until("Succeeded")
        await asyncio.sleep(5)
        ends = {name: pod["status"]["phase"] for name, pod in (await bench.pods()).items()}
        names = ("chief-0", "evaluator-0", "evaluator-1", "worker-0", "worker-1")
        assert ends.items() >= {f"j-{name}": "Succeeded" for name in names}.items()
        assert (ends["j-ps-0"], ends["j-ps-1"]) == ("Running", "Running")

    on_cluster(test, scheduling=scheduling)


@MODES
def test_a_job_of_servers_alone_runs_and_is_ended_by_its_deadline(scheduling):
    async def test(bench):
        given = job(runPolicy={"activeDeadlineSeconds": 60})
        del given["spec"]["tfReplicaSpecs"]["Worker"]
        await bench.create(given)
        await asyncio.sleep(20)
        assert [pod["status"]["phase"] for pod in (await bench.pods()).values()] == ["Running"]
        assert await condition(bench, "Running") is None
        await bench.until("Failed")

    on_cluster(test, scheduling=scheduling)


def test_a_job_with_no_time_at_all_is_begun_and_ended_and_leaves_nothing():
    async def test(bench):
        await bench.create(job(runPolicy={"activeDeadlineSeconds": 0, "cleanPodPolicy": "None"}))
        await bench.until("Failed")
        await asyncio.sleep(5)
        assert await bench.pods() == {}
        assert ("SuccessfulCreatePod", "Created pod: j-ps-0") in await events(bench)

    on_cluster(test)


@MODES
def test_a_job_of_another_manager_is_left_alone_and_its_manager_stays(scheduling):
    async def test(bench):
        await bench.create(job(runPolicy={"managedBy": "kueue.x-k8s.io/multikueue"}))
        await asyncio.sleep(30)
        assert await bench.status() == {} and await bench.pods() == {}
        for change in ({"runPolicy": {"managedBy": "kubeflow.org/training-operator"}}, {"runPolicy": None}):
            with pytest.raises(InvalidError, match="managedBy is immutable"):
                await bench.kube.patch(TFJOBS, "j", {"spec": change}, kind=Patch.MERGE, namespace="default")
        with pytest.raises(InvalidError, match="managedBy"):
            await bench.create(job("k", runPolicy={"managedBy": "somebody"}))

    on_cluster(test, scheduling=scheduling)


@MODES
def test_a_failed_pod_of_a_role_that_is_restarted_is_made_anew(scheduling):
    async def test(bench):
        given = job(restart="OnFailure", steps=1000)
        given["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["activeDeadlineSeconds"] = 20  # the pod's own
        await bench.create(given)
        await bench.until("Running")
        pod = (await bench.pods())["j-worker-1"]
        await bench.until("Restarting")
        told = ("TFJobRestarting", "job j is restarting because Worker replica(s) failed.")
        assert await condition(bench, "Restarting") == ("True", *told)
        await bench.until("Running")
        assert (await bench.pods())["j-worker-1"]["metadata"]["uid"] != pod["metadata"]["uid"]

    on_cluster(test, scheduling=scheduling)


def test_a_job_is_deleted_after_its_time_to_live_with_an_event():
    async def test(bench):
        await bench.create(job(runPolicy={"ttlSecondsAfterFinished": 5}))
        await bench.until("Succeeded")
        await asyncio.sleep(20)
        with pytest.raises(NotFoundError):
            await bench.status()
        assert ("SuccessfulDeleteJob", "Deleted job: j") in await events(bench)

    on_cluster(test)


# What a job says nothing about


@MODES
def test_a_job_without_requests_gets_those_of_the_options(scheduling):
    async def test(bench):
        await bench.create(without_requests())
        await bench.until("Succeeded")
        pod = (await bench.pods())["j-worker-0"]
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "250m", "memory": "64Mi"}

    on_cluster(test, scheduling=scheduling, default_cpu="250m", default_memory="64Mi")


@MODES
def test_the_namespaces_limit_range_comes_before_the_options_and_is_counted_with(scheduling):
    async def test(bench):
        item = {"type": "Container", "defaultRequest": {"cpu": "9", "memory": "1Gi"}, "default": {"cpu": "10"}}
        ranges = {"metadata": {"name": "r"}, "spec": {"limits": [item]}}
        await bench.kube.create(LIMIT_RANGES, ranges, namespace="default")
        await asyncio.sleep(1)
        await bench.create(without_requests(workers=2))
        await bench.until("Succeeded")
        pods = await bench.pods()
        requests = pods["j-worker-0"]["spec"]["containers"][0]["resources"]["requests"]
        assert requests == {"cpu": "9", "memory": "1Gi"}
        assert "OutOfcpu" not in await bench.reasons()
        assert len({pod["spec"]["nodeName"] for pod in pods.values()}) == len(pods)

    on_cluster(test, scheduling=scheduling)


def test_limits_count_as_requests_and_a_job_that_asks_for_something_gets_no_more():
    defaults = JobDefaults(OperatorConfig(), list)
    given = tfjob(1, ps=0)
    container = given["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}}
    (found,) = defaults.given_to(read_tfjob(given)).workers.template["spec"]["containers"]
    assert found["resources"]["requests"] == {"nvidia.com/gpu": 1, "cpu": "2"}
    container["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    (found,) = defaults.given_to(read_tfjob(given)).workers.template["spec"]["containers"]
    assert found["resources"]["requests"] == {"nvidia.com/gpu": 1, "cpu": "1", "memory": "1Gi"}


def test_without_defaults_a_job_without_requests_is_refused_by_the_elastic_scheduler_alone():
    async def refused(bench):
        await bench.create(without_requests())
        failed = await bench.until("Failed")
        assert "no task requests CPU or memory, so none can be placed" in failed["message"]

    async def runs(bench):
        await bench.create(without_requests())
        await bench.until("Succeeded")

    on_cluster(refused, default_cpu="", default_memory="")
    on_cluster(runs, default_cpu="", default_memory="", scheduling="tf-operator")


def test_the_clean_up_policy_of_jobs_that_name_none_is_an_option():
    async def test(bench):
        await bench.create(job("quiet", workers=1))
        await bench.create(job("named", workers=1, runPolicy={"cleanPodPolicy": "All"}))
        for name in ("quiet", "named"):
            await bench.until("Succeeded", name)
        await asyncio.sleep(5)
        assert sorted(await bench.pods()) == ["quiet-ps-0", "quiet-worker-0"]

    on_cluster(test, clean_pod_policy="None")
    with pytest.raises(Kod2ConfigError, match="clean_pod_policy: 'Some': must be one of All, Running, None"):
        config_of({"clean_pod_policy": "Some"}, "here")
    with pytest.raises(Kod2ConfigError, match="default_cpu: 'much': must be a quantity"):
        config_of({"default_cpu": "much"}, "here")


# Pods and services


def given_config(obj, task, **config):
    found = JobDefaults(OperatorConfig(**config), list).given_to(read_tfjob(obj))
    env = pod_of_task(found, obj, task, node=None)["spec"]["containers"][0]["env"]
    return next((json.loads(entry["value"]) for entry in env if entry["name"] == "TF_CONFIG"), None)


def test_names_end_with_the_clusters_domain_where_one_is_given():
    found = given_config(tfjob(1), "worker-0", cluster_domain="cluster.local")
    assert found["cluster"]["ps"] == ["j-ps-0.ns.svc.cluster.local:2222"]
    with pytest.raises(Kod2ConfigError, match="cluster_domain: 'A b': must be a domain"):
        config_of({"cluster_domain": "A b"}, "here")


def test_a_job_of_one_task_has_no_tf_config_and_evaluators_are_listed():
    assert given_config(tfjob(1, ps=0), "worker-0") is None
    evaluated = tfjob(1)
    evaluated["spec"]["tfReplicaSpecs"]["Evaluator"] = replicas(2)
    assert given_config(evaluated, "worker-0")["cluster"]["evaluator"] == [
        f"j-evaluator-{i}.ns.svc:2222" for i in (0, 1)
    ]


def test_a_dynamic_worker_is_told_of_itself_and_the_servers():
    found = given_config(tfjob(3, enableDynamicWorker=True), "worker-2")
    assert found == {
        "cluster": {"ps": ["j-ps-0.ns.svc:2222"], "worker": {"2": "j-worker-2.ns.svc:2222"}},
        "task": {"type": "worker", "index": 2},
    }


def test_a_service_has_all_ports_of_the_container():
    given = tfjob(1, ps=0)
    ports = [{"name": "board", "containerPort": 6006}]
    given["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["ports"] = ports
    found = service_of_task(read_tfjob(given), given, "worker-0")["spec"]["ports"]
    assert [(port["name"], port["port"]) for port in found] == [("board", 6006), ("tfjob-port", 2222)]


def test_bounds_need_workers():
    given = tfjob(1, elastic={})
    del given["spec"]["tfReplicaSpecs"]["Worker"]
    with pytest.raises(TFJobError, match=r"spec.elasticPolicy: bounds the workers, and spec.tfReplicaSpecs has none"):
        read_tfjob(given)
