"""``explain`` names the true cause where one is planted."""

import pytest

from mews.harness.live.explanation import CAUSES, explain, pod_named
from mews.harness.live.sight import ExplainedSight
from tests.harness.live.sessions import a_deployment, a_pod, explained


def found(*arguments, **options):
    explanation = explained(*arguments, **options)
    return explanation.cause, " ".join(explanation.sentences)


def test_more_than_any_pool_has():
    cause, text = found([{"apply": a_pod("greedy", 13)}], "greedy")
    assert cause == "over-ask"
    assert "It asks for 13 falcon.com/gpu, more than any pool has: pool-0 has 12." in text
    assert "Pod greedy requires 13 GPU but only 12 GPU in the pool" in text


def test_a_pool_whose_gpus_others_hold():
    steps = [
        {"apply": a_pod("eight", 8)},
        {"wait": {"pod": {"name": "eight", "phase": "Running"}}},
        {"apply": a_pod("five", 5)},
    ]
    cause, text = found(steps, "five")
    assert cause == "pool-empty"
    assert "It asks for 5 falcon.com/gpu and 4 of 12 are idle; held by: default/eight (8)." in text


def test_a_holder_that_refuses_to_let_go():
    hold = [{"host": {"host": name, "do": "hold", "key": "dcgm"}} for name in ("host-2", "host-3")]
    pod = a_pod("trainer", 5, nodeSelector={"kubernetes.io/hostname": "host-1"})
    cause, text = found([*hold, {"apply": pod}], "trainer")
    assert cause == "holder-refuses"
    assert "cannot be taken from host-" in text
    assert "in use by dcgm (pid" in text


def test_a_chassis_that_lies():
    lies = {"kind": "lying-result", "operation": "attach", "says": False, "count": 20}
    slow = {"kind": "slow-operation", "operation": "attach", "extra_s": 6, "count": 20}
    steps = [{"fault": {"chassis": "A", "add": fault}} for fault in (lies, slow)]
    cause, text = found([*steps, {"apply": a_pod("eight", 8)}], "eight", after_s=15.0)
    assert cause == "chassis-lies", text
    assert "chassis/A answered false to the attach of 0-" in text
    assert "which is not true" in text


def test_a_device_manager_that_is_down():
    steps = [{"kill": "device-manager/host-1"}, {"apply": a_pod("five", 5)}]
    cause, text = found(steps, "five", after_s=5.0)
    assert cause == "component-down"
    assert "device-manager/host-1 is down: killed at" in text


def test_a_pod_that_devices_are_moved_for():
    slow = {"fault": {"chassis": "A", "add": {"kind": "slow-operation", "operation": "attach", "extra_s": 30}}}
    pod = a_pod("six", 6, nodeSelector={"kubernetes.io/hostname": "host-2"})
    cause, text = found([slow, {"apply": pod}], "six", after_s=15.0)
    assert cause == "moving"
    assert "has chosen node host-2 and holds it until 2 more falcon.com/gpu can be used there." in text
    assert "chassis/A is at work: attach of 0-" in text
    assert "has not said anything" not in text


def test_a_scheduler_that_there_is_not():
    cause, text = found([{"apply": a_pod("lost", 1, scheduler="kubecomp")}], "lost")
    assert cause == "scheduler-unknown"
    assert "Nothing answers to its schedulerName 'kubecomp'; schedulers that run: default-scheduler, kubecomp-" in text


def test_a_scheduler_that_is_down():
    cause, text = found([{"kill": "scheduler"}, {"apply": a_pod("late", 1)}], "late")
    assert cause == "scheduler-down"
    assert "Its scheduler kubecomp-scheduler is down: killed at" in text


def test_taints_on_every_node():
    taint = {"spec": {"taints": [{"key": "closed", "effect": "NoSchedule"}]}}
    steps = [{"patch": {"kind": "Node", "name": f"host-{n}", "body": taint}} for n in (1, 2, 3)]
    cause, text = found([*steps, {"apply": a_pod("plain", 1)}], "plain")
    assert cause == "taint"
    assert "had untolerated taint" in text


def test_a_quota_by_which_no_pod_is_made():
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    cause, text = found([{"apply": quota}, {"sleep": 5}, {"apply": a_deployment("web")}], "web")
    assert cause == "quota"
    assert "ReplicaSet web-" in text
    assert "exceeded quota: none" in text


def test_a_webhook_that_denies():
    hook = {
        "name": "no.mews.dev",
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    configuration = {**kind, "metadata": {"name": "no"}, "webhooks": [hook]}
    cause, text = found([{"apply": configuration}, {"apply": a_deployment("web")}], "web")
    assert cause == "webhook", text
    assert 'failed calling webhook "no.mews.dev"' in text


def test_an_extender_that_is_down():
    stack = "hardware: seed-001\nstack: {kubecomp: null, gpushare: {unit: GiB, nodes: [n1]}}\n"
    container = {
        "name": "main",
        "image": "mews/gpu-hold",
        "resources": {"limits": {"aliyun.com/gpu-mem": "5"}},
    }
    pod = {"kind": "Pod", "metadata": {"name": "slice"}, "spec": {"containers": [container]}}
    cause, text = found([{"kill": "gpushare-extender"}, {"apply": pod}], "slice", text=stack)
    assert cause == "extender-down", text
    assert "gpushare-extender, which schedulers ask, is down: killed at" in text


def test_a_running_pod_and_where_its_devices_are():
    steps = [{"apply": a_pod("two", 2)}, {"wait": {"pod": {"name": "two", "phase": "Running"}}}]
    cause, text = found(steps, "two", after_s=0.0)
    assert cause == "running"
    assert "Container main holds of falcon.com/gpu: 0-000" in text


def test_a_pod_that_there_never_was():
    explanation = explain(ExplainedSight("default", "nobody", None))
    assert (explanation.cause, explanation.sentences) == (
        "missing",
        ("There is no pod nobody in namespace default.",),
    )


def test_what_ended_says_how():
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}],
    }
    pod = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"nodeName": "n"}, "status": status}
    explanation = explain(ExplainedSight("default", "a", pod))
    assert explanation.cause == "ended"
    assert explanation.sentences == (
        "It has ended: Failed, Evicted.",
        "Container main exited with 137 (OOMKilled).",
    )


def test_gates_and_finalizers_are_named():
    metadata = {"name": "a", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x/y"]}
    pod = {"metadata": metadata, "spec": {"schedulingGates": [{"name": "later"}]}, "status": {}}
    explanation = explain(ExplainedSight("default", "a", pod, schedulers={"default-scheduler": "default-scheduler"}))
    text = " ".join(explanation.sentences)
    assert explanation.cause == "deleting"
    assert "finalizers hold it: x/y" in text
    assert "Scheduling gates hold it back: later." in text


@pytest.mark.parametrize(
    ("text", "named"),
    [("a", ("default", "a")), ("pod/a", ("default", "a")), ("pod/ns/a", ("ns", "a")), ("ns/a", ("ns", "a"))],
)
def test_a_pod_is_named_as_kubectl_does(text, named):
    assert pod_named(text) == named


@pytest.mark.parametrize("text", ["", "pod/", "pod/a/b/c", "a/b/c"])
def test_what_names_no_pod_is_refused(text):
    with pytest.raises(ValueError, match="must be pod/NAME"):
        pod_named(text)


def test_causes_are_ranked_once():
    assert len(CAUSES) == len(set(CAUSES))
