"""A recorded session replays to the same verdict, and only what users did is recorded."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.live.recording import as_applied, as_written, is_users, merge_patch, steps_for
from mews.harness.live.scenario_file import recorded_scenario, stack_document
from mews.harness.live.step_answer import StepAnswer
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import parse_scenario
from mews.kube.api.resources import DEPLOYMENTS, JOBS, NODES, PODS, SERVICES, Resource
from mews.kube.client.port import Patch
from tests.harness.live.sessions import a_deployment, a_pod, in_session, scenario_of

USER = {"manager": "kubectl-create", "operation": "Update", "time": "1", "fieldsV1": {"f:spec": {}}}
OURS = {"manager": "mews-device-manager", "operation": "Update", "time": "1", "fieldsV1": {}}
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def an_object(name="a", uid="1", managers=(USER,), **more):
    metadata = {"name": name, "namespace": "default", "uid": uid, "managedFields": list(managers)}
    return {"metadata": {**metadata, **more.pop("metadata", {})}, **more}


def replayed(text):
    scenario = parse_scenario(text, Path("recorded.yaml"))
    run = Engine(RunOptions("embedded", "virtual")).run(scenario)
    return run.result.verdict, run.result.reason


async def by_kubectl(session, resource, obj):
    namespace = "default" if resource.namespaced else None
    await session.cluster.kube.create(resource, obj, namespace=namespace, field_manager="kubectl-create")


async def a_busy_session(session):
    """A pod that needs a move, a lying chassis, a crash, an edited table and a deployment."""
    lie = {"kind": "lying-result", "operation": "attach", "says": False, "count": 1}
    assert await session.perform({"fault": {"chassis": "A", "add": lie}}) == StepAnswer()
    await by_kubectl(session, PODS, a_pod("five", 5))
    await asyncio.sleep(20)
    assert await session.perform({"restart": "reconfig-manager"}) == StepAnswer()
    assert (
        await session.perform({"chassis": {"edit": {"chassis": "A", "device": "000C00", "port": None}}}) == StepAnswer()
    )
    deployment = a_deployment("web")
    await by_kubectl(session, DEPLOYMENTS, deployment)
    await asyncio.sleep(10)
    await session.cluster.kube.patch(
        DEPLOYMENTS,
        "web",
        {"spec": {"replicas": 2}},
        kind=Patch.MERGE,
        namespace="default",
        field_manager="kubectl-scale",
    )
    await asyncio.sleep(10)
    return session.record("recorded")


@pytest.fixture(scope="module")
def recorded():
    return in_session(a_busy_session)


def test_a_session_replays_to_the_same_verdict(recorded):
    document = yaml.safe_load(recorded.partition("\n")[2])
    actions = [key for step in document["steps"] for key in step if key not in ("sleep", "name", "timeout")]
    assert actions == ["wait", "fault", "apply", "restart", "chassis", "apply", "patch", "wait"]
    ending = document["steps"][-1]["wait"]
    pod = {"name": "five", "namespace": "default", "phase": "Running", "scheduled": True, "ready": True}
    assert {"pod": pod} in ending
    assert replayed(recorded) == ("passed", "")


def test_a_recording_that_is_not_what_happened_fails(recorded):
    text = recorded.replace("count: 5\n", "count: 4\n").replace("timeout: 300.0", "timeout: 5.0")
    verdict, reason = replayed(text)
    assert verdict == "failed"
    assert "4" in reason


def test_a_step_that_failed_is_not_recorded():
    async def play(session):
        with pytest.raises(ValueError, match="component 'nobody': must be one of"):
            await session.perform({"kill": "nobody"})
        refused = (await session.perform({"assert": {"hosts": {"host-1": 99}}})).reason
        return refused, session.record("nothing")

    refused, text = in_session(play)
    assert "99" in refused
    steps = yaml.safe_load(text.partition("\n")[2])["steps"]
    assert [key for step in steps for key in step] == ["wait"]


def test_what_components_make_is_no_users():
    assert not is_users(an_object(managers=[OURS]))
    assert not is_users(an_object(managers=[]))
    owned = an_object(metadata={"ownerReferences": [{"kind": "ReplicaSet", "controller": True}]})
    assert not is_users(owned)
    assert is_users(an_object())


def test_a_change_is_the_users_whose_fields_changed():
    old = an_object(data={"a": "1"})
    theirs = an_object(data={"a": "2"}, managers=[USER, {**OURS, "time": "2"}])
    assert steps_for(CONFIG_MAPS, old, theirs) == []
    new = an_object(data={"a": "2"}, managers=[{**USER, "time": "2"}])
    target = {"kind": "ConfigMap", "apiVersion": "v1", "name": "a", "namespace": "default"}
    assert steps_for(CONFIG_MAPS, old, new) == [{"patch": {**target, "body": {"data": {"a": "2"}}}}]


def test_a_deletion_is_recorded_once_and_only_if_a_user_asked():
    old = an_object(spec={})
    leaving = an_object(spec={}, metadata={"deletionTimestamp": "x"})
    [step] = steps_for(PODS, old, leaving)
    assert step["delete"]["name"] == "a"
    assert steps_for(PODS, leaving, None) == []
    disrupted = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}
    preempted = an_object(spec={}, status=disrupted, metadata={"deletionTimestamp": "x"})
    assert steps_for(PODS, old, preempted) == []
    disrupted["conditions"][0]["reason"] = "EvictionByEvictionAPI"
    assert steps_for(PODS, old, preempted) == [{"evict": {"pod": "a", "namespace": "default"}}]


def test_a_job_that_goes_by_its_own_time_is_not_deleted_by_a_user():
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    job = an_object(spec={"ttlSecondsAfterFinished": 5}, status=done)
    assert steps_for(JOBS, job, None) == []
    del job["spec"]["ttlSecondsAfterFinished"]
    assert len(steps_for(JOBS, job, None)) == 1


def test_an_object_of_the_same_name_is_another_one():
    old, new = an_object(uid="1", spec={}), an_object(uid="2", spec={})
    assert [key for step in steps_for(PODS, old, new) for key in step] == ["delete", "apply"]


def test_nodes_are_cordoned_and_tainted_by_users_alone():
    node = {"metadata": {"name": "n", "managedFields": []}, "spec": {}}
    not_ready = {"metadata": node["metadata"], "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}
    assert steps_for(NODES, node, not_ready) == []
    closed = {"metadata": {"name": "n", "managedFields": [USER]}, "spec": {"unschedulable": True}}
    [step] = steps_for(NODES, node, closed)
    assert step["patch"]["body"] == {"spec": {"unschedulable": True}}
    assert steps_for(NODES, None, node) == []


def test_what_kubectl_applied_is_recorded_as_it_was_written():
    written = '{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{},"name":"a"},"spec":{"x":1}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": written}
    obj = an_object(spec={"x": 1, "y": 2}, metadata={"annotations": annotations})
    wanted = {"name": "a", "namespace": "default"}
    assert as_written(obj, PODS) == {"apiVersion": "v1", "kind": "Pod", "metadata": wanted, "spec": {"x": 1}}


def test_what_the_server_added_is_left_out():
    token = {"name": "kube-api-access-x1", "projected": {}}
    tolerations = [{"key": "node.kubernetes.io/not-ready", "tolerationSeconds": 300}, {"key": "mine"}]
    container = {"name": "main", "volumeMounts": [{"name": "kube-api-access-x1"}]}
    spec = {"volumes": [token], "tolerations": tolerations, "containers": [container], "priority": 0}
    pod = as_applied(an_object(spec=spec, status={"phase": "Running"}), PODS)
    assert pod["spec"] == {"tolerations": [{"key": "mine"}], "containers": [{"name": "main"}]}
    assert pod["metadata"] == {"name": "a", "namespace": "default"}
    assert "status" not in pod
    assert as_applied(an_object(spec={"clusterIP": "10.0.0.1", "ports": []}), SERVICES)["spec"] == {"ports": []}
    assert as_applied(an_object(spec={"clusterIP": "None"}), SERVICES)["spec"] == {"clusterIP": "None"}
    labels = {"controller-uid": "1", "batch.kubernetes.io/job-name": "a", "mine": "x"}
    job = as_applied(an_object(spec={"selector": {}, "template": {"metadata": {"labels": labels}}}), JOBS)
    assert job["spec"] == {"template": {"metadata": {"labels": {"mine": "x"}}}}


def test_a_merge_patch_takes_away_adds_and_changes():
    old, new = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}, {"b": {"c": 1, "d": 3}, "e": [1, 2], "f": 1}
    assert merge_patch(old, new) == {"a": None, "b": {"d": 3}, "e": [1, 2], "f": 1}
    assert merge_patch(new, new) == {}


def test_programs_of_the_users_own_cannot_be_recorded():
    scenario = scenario_of()
    stack = scenario.stack.model_copy(update={"extenders": ("mine",)})
    with pytest.raises(ValueError, match="programs of yours"):
        recorded_scenario(
            "x",
            scenario.model_copy(update={"stack": stack}),
            [],
            began_s=0.0,
            ended_s=1.0,
            speed=1.0,
            ending=[],
        )


def test_a_stack_is_written_as_a_file_has_it():
    text = "hardware: demo\nstack: {kubecomp: null, kod2: {}, controllers: {run: ['*', -job-controller]}}\n"
    document = stack_document(scenario_of(text))
    assert document == {"controllers": {"run": ["*", "-job-controller"]}, "kod2": {}, "kubecomp": None}
    again = scenario_of(f"hardware: demo\nstack: {json.dumps(document)}\n")
    assert again.stack == scenario_of(text).stack
