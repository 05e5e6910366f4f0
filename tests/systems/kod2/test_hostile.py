"""Jobs that cannot be run, or not for now, and the good ones behind them: each ends, on the embedded cluster."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mews.systems.kod2
from benchmarks.kod2_hostile import HOSTILE, good, hostile, prepare, run, scenario, succeeded
from mews.harness.clock import run_virtual
from mews.harness.clusters import open_cluster
from mews.kube.api.errors import ApiError, InvalidError
from mews.kube.api.objects import clone, condition_of
from mews.kube.api.resources import CONFIGMAPS, LIMIT_RANGES, NAMESPACES, NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.client.port import Patch
from mews.systems.kod2 import cluster_cache
from mews.systems.kod2.install import TFJOBS
from mews.systems.kod2.operator import Kod2Operator
from mews.systems.kod2.reconciler import Reconciler
from mews.systems.kod2.status import with_condition
from tests.systems.kod2.test_operator import job, on_cluster

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SCHEMA = json.loads((Path(mews.systems.kod2.__file__).parent / "pod_template.json").read_text())


def with_cluster(test):
    async def main():
        cluster = await open_cluster(scenario(), seed=1)
        try:
            await test(cluster.kube)
            assert cluster.crashes() == []
        finally:
            await cluster.close()

    run_virtual(main)


def test_a_good_job_behind_each_of_thirty_hostile_ones_ends():
    async def test(kube):
        found = await run(kube, HOSTILE)
        assert len(found) == len(HOSTILE) >= 30
        # None was run but those that this API lets in all the way; all others say why they were not.
        quiet = {name for name, text in found.items() if not text}
        assert quiet <= {"an unknown affinity", "a user below zero", "no such account", "half a device",
                         "a container twice", "every worker wants the same port of its node"}  # fmt: skip
        assert found["forbidden by a quota"].startswith("Stalled: FailedCreatePod: ")
        assert found["a volume twice"].startswith("Failed: FailedCreatePod: ")
        assert found["a word for a quantity"].startswith("refused by the API: ")

    with_cluster(test)


# One after the other


async def held(bench, reason, within_s=60.0):
    """Wait until the job is back in the waiting queue for that reason."""
    async with asyncio.timeout(within_s):
        while True:
            status = await bench.status()
            stalled = condition_of({"status": status}, "Stalled") or {}
            if stalled.get("reason") == reason and status["elastic"]["state"] == "WAITING":
                return status
            await asyncio.sleep(0.5)


def test_what_is_forbidden_is_let_in_when_that_is_over_and_holds_nothing_until_then():
    async def test(bench):
        await bench.kube.patch(NAMESPACES, "default", enforce("restricted"), kind=Patch.MERGE)
        await bench.create(job(elastic={}))
        status = await held(bench, "FailedCreatePod")
        assert status["elastic"]["workers"] == 0 and "placement" not in status["elastic"]
        assert "startTime" not in status
        assert "FailedCreatePod" in await bench.reasons()
        await bench.kube.patch(NAMESPACES, "default", enforce("privileged"), kind=Patch.MERGE)
        await bench.until("Running")
        assert condition_of({"status": await bench.status()}, "Stalled") is None
        assert "stalled" not in (await bench.status())["elastic"]
        await bench.until("Succeeded")

    on_cluster(test)


def enforce(level):
    return {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}}


def test_a_job_goes_on_with_the_workers_that_were_let_in_where_those_are_enough():
    async def test(bench):
        kube = bench.kube
        await prepare(kube)
        given_job = job(workers=3, elastic={}, steps=100_000)
        given_job["metadata"]["namespace"] = "quota"  # two cores: the server and one worker
        await kube.create(TFJOBS, given_job, namespace="quota")
        await asyncio.sleep(50)
        found = await kube.get(TFJOBS, "j", namespace="quota")
        assert found["status"]["elastic"]["placement"].keys() == {"ps-0", "worker-0"}
        assert condition_of(found, "Running")["status"] == "True"
        assert condition_of(found, "Stalled")["reason"] == "FailedCreatePod"

    on_cluster(test)


def test_a_running_job_keeps_its_room_for_a_while_when_a_pod_of_it_is_not_let_in_again():
    async def test(bench):
        await bench.create(job(elastic={"minReplicas": 2}, steps=100_000))
        await bench.until("Running")
        await bench.kube.patch(NAMESPACES, "default", enforce("restricted"), kind=Patch.MERGE)
        await bench.kube.delete(PODS, "j-worker-1", namespace="default")
        await asyncio.sleep(15)
        assert (await bench.status())["elastic"]["state"] == "RUNNING"
        await held(bench, "FailedCreatePod")
        await asyncio.sleep(5)
        assert await bench.pods() == {}

    on_cluster(test)


def test_a_job_that_does_not_start_gives_its_room_back_in_the_end():
    async def test(bench):
        waits = job(workers=3, elastic={"minReplicas": 3}, cpu="8")
        spec = waits["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
        spec["initContainers"] = [{"name": "waits", "image": "mews/gpu-hold"}]
        await bench.create(waits)
        await bench.create(job("good", elastic={}, cpu="8"))
        await asyncio.sleep(500)
        assert (await bench.status("good"))["elastic"]["state"] in ("WAITING", "STARVING")
        await held(bench, "NotStarted", within_s=200)
        await bench.until("Succeeded", "good")
        worker = {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"initContainers": None}}}}}
        await bench.kube.patch(TFJOBS, "j", {"spec": worker}, kind=Patch.MERGE, namespace="default")
        await bench.until("Succeeded", within_s=900)

    on_cluster(test)


def test_an_error_of_the_operators_own_is_its_jobs_alone(monkeypatch):
    run_job = Reconciler._run

    async def fails(self, tfjob, read, status):
        if read.name == "j":
            raise RuntimeError("no such luck")
        await run_job(self, tfjob, read, status)

    async def test(bench):
        monkeypatch.setattr(Reconciler, "_run", fails)
        await bench.create(job(workers=3, elastic={"minReplicas": 3}))
        status = await held(bench, "ReconcileError")
        assert condition_of({"status": status}, "Stalled")["message"] == "RuntimeError: no such luck"
        await bench.create(job("good", elastic={}))
        await bench.until("Succeeded", "good")
        monkeypatch.undo()
        await bench.until("Succeeded")

    on_cluster(test)


def test_a_status_that_the_server_does_not_take_holds_up_nobody_else(monkeypatch):
    act = Kod2Operator._act

    async def refused(self, decision):
        if decision.job == "default/j":
            raise InvalidError("not this one")
        await act(self, decision)

    async def test(bench):
        monkeypatch.setattr(Kod2Operator, "_act", refused)
        await bench.create(job(elastic={}))
        await bench.create(job("good", elastic={}))
        await bench.until("Succeeded", "good")
        assert (await bench.status())["elastic"]["state"] == "WAITING"
        monkeypatch.undo()
        await bench.until("Succeeded")

    on_cluster(test)


def test_a_spec_edit_ends_the_wait_of_a_refused_job():
    async def test(bench):
        bad = job(elastic={})
        bad["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["priorityClassName"] = "highest"
        await bench.create(bad)
        await asyncio.sleep(100)  # the delay is a minute by now
        await held(bench, "FailedCreatePod")
        worker = {"tfReplicaSpecs": {"Worker": {"template": {"spec": {"priorityClassName": None}}}}}
        await bench.kube.patch(TFJOBS, "j", {"spec": worker}, kind=Patch.MERGE, namespace="default")
        await bench.until("Running", within_s=10)

    on_cluster(test)


# What others write


def corrupted(monkeypatch, resource, change):
    """The operator alone sees objects of that kind changed, as a server that checks less would let them in."""

    class Corrupted(Informer):
        def _set(self, key, new):
            if new is not None and self._resource == resource:
                new = clone(new)
                change(new)
            super()._set(key, new)

    monkeypatch.setattr(cluster_cache, "Informer", Corrupted)


def of_one_node(field, value):
    def change(node):
        if node["metadata"]["name"] == "host-1":
            node["status"][field] = value

    return change


def of_the_stranger(change):
    def changed(pod):
        if pod["metadata"]["name"] == "stranger":
            change(pod)

    return changed


@pytest.mark.parametrize(
    ("resource", "change"),
    [
        (NODES, of_one_node("allocatable", {"cpu": "lots", "memory": "-1", "pods": "many"})),
        (NODES, of_one_node("allocatable", {"cpu": "1e999999", "memory": "9" * 5000, "pods": {}})),
        (NODES, of_one_node("conditions", [{}, {"type": "Ready"}])),
        (PODS, of_the_stranger(lambda pod: pod["spec"]["containers"][0].update(resources={"requests": {"cpu": "?"}}))),
        (PODS, of_the_stranger(lambda pod: pod["spec"].update(affinity={"podAffinity": {REQUIRED: [{}]}}))),
        (LIMIT_RANGES, lambda ranges: ranges["spec"].update(limits=[{"type": "Container", "defaultRequest": {
            "cpu": "much", "memory": "-1", "nvidia.com/gpu": "1e999999"}}])),
        (CONFIGMAPS, lambda pool: pool.update(data={"devices": "[" * 100_000, "nodes": '["host-1", 3, {}]'})),
    ],
)  # fmt: skip
def test_what_cannot_be_read_of_other_objects_holds_up_no_job(monkeypatch, resource, change):
    corrupted(monkeypatch, resource, change)

    async def test(bench):
        container = {"name": "c", "image": "mews/idle"}
        stranger = {"metadata": {"name": "stranger"}, "spec": {"nodeName": "host-1", "containers": [container]}}
        await bench.kube.create(PODS, stranger, namespace="default")
        ranges = {"metadata": {"name": "r"}, "spec": {"limits": [{"type": "Container"}]}}
        await bench.kube.create(LIMIT_RANGES, ranges, namespace="default")
        await bench.kube.create(CONFIGMAPS, {"metadata": {"name": "pool-a"}}, namespace="kubecomp")
        await bench.create(job(elastic={}))
        await bench.until("Succeeded", within_s=200)
        assert "ReconcileError" not in await bench.reasons()

    on_cluster(test)


def test_a_pod_that_claims_a_job_and_has_no_labels_goes_and_the_job_ends():
    async def test(bench):
        made = await bench.create(job(elastic={}))
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "j", "uid": made["metadata"]["uid"]}
        container = {"name": "c", "image": "mews/idle"}
        metadata = {"name": "claims", "ownerReferences": [{**owner, "controller": True}]}
        await bench.kube.create(PODS, {"metadata": metadata, "spec": {"containers": [container]}}, namespace="default")
        await bench.until("Succeeded", within_s=200)
        assert "claims" not in await bench.pods()

    on_cluster(test)


@pytest.mark.parametrize(
    "elastic",
    [
        {"state": "RUNNING", "placement": {"ps-x": "host-1", "worker-": "host-1", "worker-two": "nowhere"}},
        {"state": "RUNNING", "placement": {"worker-0": "nowhere", "ps-12345678901": "host-1"}, "min": -7},
        {"state": "STARVING"},
        {"state": "WAITING", "waitingSince": "2026-01-01T00:00:00Z", "weight": -1e300, "restarts": -(2**31)},
    ],
)
def test_nonsense_in_the_status_of_one_job_holds_up_no_other(elastic):
    async def test(bench):
        await bench.create(job(elastic={}, steps=100_000))
        await bench.until("Running")
        found = await bench.kube.get(TFJOBS, "j", namespace="default")
        status = {**found["status"], "elastic": elastic}
        await bench.kube.replace(TFJOBS, {**found, "status": status}, namespace="default", subresource="status")
        await bench.create(job("good", elastic={}))
        await bench.until("Succeeded", "good", within_s=200)

    on_cluster(test)


def test_an_error_in_a_pass_is_left_to_the_job_that_it_is_about(monkeypatch):
    explain = Kod2Operator._explain

    async def fails(self, key, reason):
        if key == "default/j":
            raise KeyError("no such luck")
        await explain(self, key, reason)

    async def test(bench):
        monkeypatch.setattr(Kod2Operator, "_explain", fails)
        await bench.create(job(elastic={"minReplicas": 2}, cpu="20"))
        await bench.create(job("large", elastic={}, cpu="30"))
        await bench.create(job("good", elastic={}))
        await bench.until("Succeeded", "good")
        assert (await bench.status("large"))["elastic"]["reason"].startswith("LargerThanCluster")

    on_cluster(test)


def test_a_message_that_quotes_too_much_is_cut_and_a_long_name_has_events():
    status = with_condition({}, "Failed", "Reason", "x" * 10**6, now_s=0.0)
    assert len(status["conditions"][0]["message"]) == 32_768

    async def test(bench):
        await bench.create(job("n" * 242 + "." * 1 + "n" * 10, elastic={}))
        await bench.until("Failed", "n" * 242 + "." * 1 + "n" * 10)
        assert "TFJobFailedValidation" in await bench.reasons()

    on_cluster(test)


# Any manifest


TEXTS = st.sampled_from(["", "a", "tensorflow", "Never", "1", "not a label!", "x" * 70, "/a", "v", "100Mi", "TCP", "ü"])
NUMBERS = st.sampled_from([-1, 0, 1, 2, 80, 65536, 2**31 - 1])


def values(schema, depth=0):
    """What a schema lets in, mostly small."""
    if "anyOf" in schema:
        return st.one_of(NUMBERS, st.sampled_from(["1", "100Mi", "0", "2k"]))
    if "additionalProperties" in schema:
        inner = values(schema["additionalProperties"], depth + 1)
        return st.dictionaries(st.sampled_from(["cpu", "a", "memory", "x y"]), inner, max_size=1)
    match schema["type"]:
        case "object":
            return objects(schema, depth)
        case "array":
            return st.lists(values(schema["items"], depth + 1), max_size=2 if depth < 4 else 1)
        case "string":
            return st.just("2026-01-01T00:00:00Z") if schema.get("format") == "date-time" else TEXTS
        case "boolean":
            return st.booleans()
        case _:
            return NUMBERS


@st.composite
def objects(draw, schema, depth):
    properties = schema.get("properties", {})
    chosen = set(schema.get("required", ()))
    if properties and depth < 7:
        chosen |= set(draw(st.lists(st.sampled_from(sorted(properties)), max_size=3 if depth < 3 else 1, unique=True)))
    return {name: draw(values(properties[name], depth + 1)) for name in sorted(chosen)}


@st.composite
def manifests(draw):
    """A job with something drawn in each template, on most of the cluster; the container that trains stays."""
    made = hostile(draw(st.integers(0, 10**6)), lambda made: None)
    for replicas in made["spec"]["tfReplicaSpecs"].values():
        kept, drawn = replicas["template"], draw(values(SCHEMA))
        container = {**draw(values(SCHEMA["properties"]["spec"]["properties"]["containers"]["items"], 3))}
        container |= kept["spec"]["containers"][0]
        spec = {**drawn.get("spec", {}), "terminationGracePeriodSeconds": 1}
        spec["containers"] = [container, *spec.get("containers", [])[:1]]
        metadata = {**drawn.get("metadata", {}), "annotations": kept["metadata"]["annotations"]}
        replicas["template"] = {"metadata": metadata, "spec": spec}
    return made


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(manifests(), min_size=3, max_size=6))
def test_whatever_the_api_lets_in_a_good_job_behind_it_ends(jobs):
    async def test(kube):
        for made in jobs:
            with suppress(ApiError):
                await kube.create(TFJOBS, made, namespace="default")
        await kube.create(TFJOBS, good(1), namespace="default")
        async with asyncio.timeout(20_000):
            await succeeded(kube, "good-1")

    with_cluster(test)
