"""TFJobs read, their pods and services, and what the pods' ends mean (contract kod2.md section 1)."""

import json

import pytest

from mews.kube.api.objects import seconds
from mews.systems.kod2.errors import TFJobError
from mews.systems.kod2.outcome import is_training, outcome_of
from mews.systems.kod2.podspec import pod_of_task, service_of_task, tf_config
from mews.systems.kod2.status import finished, holds, with_condition
from mews.systems.kod2.tfjob import CleanPodPolicy, Role, clean_up_of, read_tfjob


def replicas(count=1, restart="Never", **container):
    container = {"name": "tensorflow", "image": "x", "resources": {"requests": {"cpu": "1"}}, **container}
    return {"replicas": count, "restartPolicy": restart, "template": {"spec": {"containers": [container]}}}


def tfjob(workers=2, *, ps=1, elastic=None, restart="Never", **spec):
    roles = {"Worker": replicas(workers, restart)} | ({"PS": replicas(ps, restart)} if ps else {})
    made = {"metadata": {"name": "j", "namespace": "ns", "uid": "u"}, "spec": {"tfReplicaSpecs": roles, **spec}}
    if elastic is not None:
        made["spec"]["elasticPolicy"] = elastic
    return made


def pod(task, phase, *, code=None, reason=None, restarts=0):
    role, _, index = task.rpartition("-")
    status = {"phase": phase}
    if reason:
        status["reason"] = reason
    if code is not None:
        status["containerStatuses"] = [
            {"name": "tensorflow", "state": {"terminated": {"exitCode": code}}, "restartCount": restarts}
        ]
    elif restarts:
        status["containerStatuses"] = [{"name": "tensorflow", "state": {"running": {}}, "restartCount": restarts}]
    labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": index}
    return {"metadata": {"name": f"j-{task}", "labels": labels}, "status": status}


def pods(**phases):
    return {task.replace("_", "-"): value for task, value in phases.items()}


# Reading


def test_bounds_default_to_one_and_replicas_and_a_job_without_them_is_rigid():
    assert (read_tfjob(tfjob(4, elastic={})).minimum, read_tfjob(tfjob(4, elastic={})).maximum) == (1, 4)
    rigid = read_tfjob(tfjob(4))
    assert (rigid.elastic, rigid.minimum, rigid.maximum) == (False, 4, 4)


@pytest.mark.parametrize("bounds", [{"minReplicas": 3}, {"maxReplicas": 1}, {"minReplicas": 2, "maxReplicas": 1}])
def test_bounds_that_do_not_hold_the_replicas_are_refused(bounds):
    with pytest.raises(TFJobError, match="1 <= minReplicas <= replicas <= maxReplicas"):
        read_tfjob(tfjob(2, elastic=bounds))


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"Worker": replicas(0)}, "at least one replica"),
        ({"Worker": replicas(), "Boss": replicas()}, "Boss: unknown replica type; must be one of PS, Chief"),
        ({"Worker": replicas(), "Chief": replicas(2)}, "Chief.replicas: 2"),
        ({"Worker": replicas(name="main")}, "must have one named 'tensorflow'; there is: main"),
    ],
)
def test_a_bad_job_is_refused_in_words_for_its_author(roles, message):
    with pytest.raises(TFJobError, match=message):
        read_tfjob({"metadata": {"name": "j", "namespace": "ns", "uid": "u"}, "spec": {"tfReplicaSpecs": roles}})


def test_the_older_flat_fields_are_read_and_run_policy_wins():
    given = tfjob(
        cleanPodPolicy="All", backoffLimit=2, ttlSecondsAfterFinished=5, runPolicy={"ttlSecondsAfterFinished": 9}
    )
    assert clean_up_of(given, CleanPodPolicy.RUNNING) == (CleanPodPolicy.ALL, 9)
    assert clean_up_of(tfjob(), CleanPodPolicy.RUNNING) == (CleanPodPolicy.RUNNING, None)
    assert read_tfjob(given).backoff_limit == 2


# Pods and services


def test_tf_config_lists_as_many_workers_as_the_job_may_ever_have():
    job = read_tfjob(tfjob(2, elastic={"maxReplicas": 4}))
    assert tf_config(job, "worker-1") == {
        "cluster": {"ps": ["j-ps-0.ns.svc:2222"], "worker": [f"j-worker-{i}.ns.svc:2222" for i in range(4)]},
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }


def test_a_pod_is_pinned_or_left_to_the_pools_scheduler_on_a_named_host():
    job, owner = read_tfjob(tfjob(2, elastic={})), tfjob()
    pinned = pod_of_task(job, owner, "worker-0", node="n1")
    assert (pinned["metadata"]["name"], pinned["spec"]["nodeName"]) == ("j-worker-0", "n1")
    pooled = pod_of_task(job, owner, "worker-0", node="n1", scheduler="kubecomp-scheduler")
    assert "nodeName" not in pooled["spec"]
    assert pooled["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "n1"}
    assert pooled["spec"]["schedulerName"] == "kubecomp-scheduler"


def test_a_pod_has_its_owner_its_port_its_environment_and_its_restart_policy():
    job, owner = read_tfjob(tfjob(2, restart="ExitCode")), tfjob()
    made = pod_of_task(job, owner, "worker-1", node=None)
    (container,) = made["spec"]["containers"]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert json.loads(env["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert env["KOD2_QUORUM"] == "2"
    assert container["ports"] == [{"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"}]
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert "nodeName" not in made["spec"]
    service = service_of_task(job, owner, "worker-1")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= made["metadata"]["labels"].items()


# Ends


def test_an_elastic_job_is_finished_when_every_worker_that_still_exists_succeeded():
    job = read_tfjob(tfjob(3, elastic={}))
    there = pods(ps_0=pod("ps-0", "Running"), worker_0=pod("worker-0", "Succeeded", code=0))
    assert outcome_of(job, ["ps-0", "worker-0"], there, restarts=0).ended == "Succeeded"
    assert outcome_of(job, ["ps-0", "worker-0", "worker-1"], there, restarts=0).ended == ""


def test_a_rigid_job_succeeds_with_worker_0_and_one_with_a_chief_with_its_chief():
    there = pods(worker_0=pod("worker-0", "Succeeded", code=0), worker_1=pod("worker-1", "Running"))
    assert outcome_of(read_tfjob(tfjob(2)), ["worker-0", "worker-1"], there, restarts=0).ended == "Succeeded"
    all_of_them = read_tfjob(tfjob(2, successPolicy="AllWorkers"))
    assert outcome_of(all_of_them, ["worker-0", "worker-1"], there, restarts=0).ended == ""
    led = tfjob(2)
    led["spec"]["tfReplicaSpecs"]["Chief"] = replicas()
    job = read_tfjob(led)
    assert job.lead is Role.CHIEF
    assert outcome_of(job, ["chief-0", "worker-0", "worker-1"], there, restarts=0).ended == ""
    there["chief-0"] = pod("chief-0", "Succeeded", code=0)
    assert outcome_of(job, ["chief-0", "worker-0", "worker-1"], there, restarts=0).ended == "Succeeded"


@pytest.mark.parametrize("reason", ["OutOfcpu", "UnexpectedAdmissionError", "Evicted"])
def test_a_pod_that_its_node_refused_or_threw_out_is_made_anew(reason):
    code = 137 if reason == "Evicted" else None
    there = pods(worker_0=pod("worker-0", "Failed", reason=reason, code=code))
    assert outcome_of(read_tfjob(tfjob(1)), ["worker-0"], there, restarts=0).refused == ("worker-0",)


@pytest.mark.parametrize(
    ("restart", "code", "ended", "restarted"),
    [
        ("Never", 1, "Failed", ()),
        ("ExitCode", 1, "Failed", ()),
        ("ExitCode", 127, "Failed", ()),
        ("ExitCode", 128, "", ("worker-0",)),
        ("ExitCode", 143, "", ("worker-0",)),
    ],
)
def test_what_a_failure_means_is_up_to_the_restart_policy(restart, code, ended, restarted):
    there = pods(worker_0=pod("worker-0", "Failed", code=code))
    outcome = outcome_of(read_tfjob(tfjob(1, ps=0, restart=restart)), ["worker-0"], there, restarts=0)
    assert (outcome.ended, outcome.restarted) == (ended, restarted)


def test_as_many_restarts_as_the_backoff_limit_fail_the_job_whoever_made_them():
    job = read_tfjob(tfjob(1, ps=0, restart="OnFailure", backoffLimit=2))
    for restarts, before, ended in ((1, 0, ""), (2, 0, "Failed"), (1, 1, "Failed")):
        there = pods(worker_0=pod("worker-0", "Running", restarts=restarts))
        assert outcome_of(job, ["worker-0"], there, restarts=before).ended == ended


@pytest.mark.parametrize("restart", ["Never", "OnFailure", "ExitCode"])
def test_without_any_backoff_the_first_failure_is_over_the_limit_and_takes_all_pods(restart):
    job = read_tfjob(tfjob(1, ps=0, restart=restart, backoffLimit=0))
    outcome = outcome_of(job, ["worker-0"], pods(worker_0=pod("worker-0", "Failed", code=1)), restarts=0)
    assert outcome.message == "Job j has failed because it has reached the specified backoff limit"
    assert outcome.nothing_stays


@pytest.mark.parametrize(
    ("code", "beside", "restarted"), [(0, 137, ()), (137, 1, ("worker-0",)), (None, 1, ("worker-0",))]
)
def test_the_exit_code_is_that_of_the_container_that_trains_alone(code, beside, restarted):
    failed = pod("worker-0", "Failed", code=code)
    besides = {"name": "logs", "state": {"terminated": {"exitCode": beside}}}
    failed["status"]["containerStatuses"] = [besides, *failed["status"].get("containerStatuses", ())]
    outcome = outcome_of(
        read_tfjob(tfjob(1, ps=0, restart="ExitCode")), ["worker-0"], pods(worker_0=failed), restarts=0
    )
    assert (outcome.ended, outcome.restarted) == ("" if restarted else "Failed", restarted)


def test_every_role_that_failed_is_told_of_and_the_message_is_of_the_first():
    job = read_tfjob(tfjob(2, ps=1))
    there = pods(
        **{f"worker_{i}": pod(f"worker-{i}", "Failed", code=1) for i in (0, 1)}, ps_0=pod("ps-0", "Failed", code=1)
    )
    outcome = outcome_of(job, ["ps-0", "worker-0", "worker-1"], there, restarts=0)
    said = ["1 PS replica(s) failed.", "2 Worker replica(s) failed."]
    assert [text for _, text in outcome.events] == [f"TFJob ns/j has failed because {each}" for each in said]
    assert outcome.message == outcome.events[0][1]


def test_a_running_pod_that_somebody_deletes_has_failed_to_the_baseline_alone():
    there = pods(worker_0=pod("worker-0", "Running"), worker_1=pod("worker-1", "Running"))
    there["worker-1"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    job = read_tfjob(tfjob(2, ps=0, restart="OnFailure"))
    assert outcome_of(job, ["worker-0", "worker-1"], there, restarts=0).ended == ""
    outcome = outcome_of(job, ["worker-0", "worker-1"], there, restarts=0, baseline=True)
    assert outcome.message == "TFJob ns/j has failed because 1 Worker replica(s) failed."


def test_a_dynamic_worker_that_failed_fails_the_job_by_its_exit_code_alone():
    there = pods(worker_0=pod("worker-0", "Running"), worker_1=pod("worker-1", "Failed", code=1))
    for restart, ended in (("Never", ""), ("ExitCode", "Failed")):
        given = tfjob(2, ps=0, restart=restart)
        given["spec"]["enableDynamicWorker"] = True
        outcome = outcome_of(read_tfjob(given), ["worker-0", "worker-1"], there, restarts=0)
        assert outcome.ended == ended
        assert [kind for kind, _ in outcome.events] == (["Warning"] if ended else [])


def test_an_elastic_job_trains_with_its_servers_and_any_worker_a_rigid_one_with_all():
    there = pods(ps_0=pod("ps-0", "Running"), worker_1=pod("worker-1", "Running"), worker_0=pod("worker-0", "Pending"))
    tasks = ["ps-0", "worker-0", "worker-1"]
    assert is_training(read_tfjob(tfjob(2, elastic={})), tasks, there)
    assert not is_training(read_tfjob(tfjob(2)), tasks, there)


def test_conditions_exclude_each_other_as_kubeflows_do():
    status = with_condition({}, "Running", "r", "m", now_s=1.0)
    status = with_condition(status, "Restarting", "r", "m", now_s=2.0)
    assert [c["type"] for c in status["conditions"]] == ["Restarting"]
    status = with_condition(status, "Running", "r", "m", now_s=3.0)
    status = finished(status, "Succeeded", "r", "m", now_s=4.0)
    assert not holds(status, "Running") and holds(status, "Succeeded")
    assert status["elastic"]["state"] == "COMPLETED"


def test_a_condition_that_stays_true_keeps_the_time_at_which_it_became_so():
    first = with_condition({}, "Restarting", "TFJobRestarting", "once", now_s=100.0)
    assert with_condition(first, "Restarting", "TFJobRestarting", "twice", now_s=160.0) == first
    again = with_condition(first, "Restarting", "Otherwise", "twice", now_s=160.0)
    (condition,) = again["conditions"]
    assert seconds(condition["lastTransitionTime"]) == 100.0
    assert seconds(condition["lastUpdateTime"]) == 160.0
    off = finished(with_condition({}, "Running", "r", "m", now_s=100.0), "Failed", "r", "m", now_s=200.0)
    running, _ = off["conditions"]
    assert (running["status"], seconds(running["lastTransitionTime"])) == ("False", 200.0)
    back = with_condition(off, "Running", "r", "m", now_s=300.0)["conditions"][-1]
    assert seconds(back["lastTransitionTime"]) == 300.0
