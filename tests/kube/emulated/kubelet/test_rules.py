"""The pure rules: what a pod does next, its phase, back-off, the environment."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.emulated.kubelet.backoff import BackOff, go_duration
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.environment import environment, expand
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.podstate import ContainerWaiting, PodPlan, PodState, decide, phase_of
from mews.kube.emulated.kubelet.podstatus import status_of
from tests.kube.emulated.kubelet.bench import pod

RUNNING = (ContainerInstance("c", "id", 0, 1.0),)
DONE = (ContainerInstance("c", "id", 0, 1.0, 2.0, 0),)
FAILED = (ContainerInstance("c", "id", 0, 1.0, 2.0, 5),)


def state(policy: str, instances: dict[str, Any], *, inits: list[str] | None = None, **parts: Any) -> PodState:
    made = [{"name": name} | ({"restartPolicy": "Always"} if name == "sidecar" else {}) for name in inits or []]
    names = parts.pop("mains", ["main"])
    body = pod("a", policy=policy, containers=[{"name": name, "image": "busybox"} for name in names], inits=made)
    return PodState(body, ip="10.0.0.1", up=parts.pop("up", True), instances=instances, **parts)


@pytest.mark.parametrize(
    ("case", "plan", "phase"),
    [
        (state("Never", {}, up=False), PodPlan(sandbox=True), "Pending"),
        (state("Never", {}), PodPlan(start=("main",)), "Pending"),
        (state("Never", {}, mains=["a", "b"]), PodPlan(start=("a", "b")), "Pending"),
        (state("Never", {"a": RUNNING}, mains=["a", "b"]), PodPlan(start=("b",)), "Pending"),
        (state("Never", {"main": RUNNING}), PodPlan(), "Running"),
        (state("Never", {"main": DONE}), PodPlan(end=True), "Succeeded"),
        (state("Never", {"main": FAILED}), PodPlan(end=True), "Failed"),
        (state("Never", {"a": DONE, "b": RUNNING}, mains=["a", "b"]), PodPlan(), "Running"),
        (state("OnFailure", {"main": DONE}), PodPlan(end=True), "Succeeded"),
        (state("OnFailure", {"main": FAILED}), PodPlan(start=("main",)), "Running"),
        (state("Always", {"main": DONE}), PodPlan(start=("main",)), "Running"),
        (state("Always", {"main": DONE}, ended=True), PodPlan(end=True), "Succeeded"),
        (state("Always", {"main": FAILED}, ended=True), PodPlan(end=True), "Failed"),
        (state("Never", {}, inits=["one", "two"]), PodPlan(start=("one",)), "Pending"),
        (state("Never", {"one": RUNNING}, inits=["one", "two"]), PodPlan(), "Pending"),
        (state("Never", {"one": DONE}, inits=["one", "two"]), PodPlan(start=("two",)), "Pending"),
        (state("Never", {"one": DONE, "two": DONE}, inits=["one", "two"]), PodPlan(start=("main",)), "Pending"),
        (state("Never", {"one": FAILED}, inits=["one"]), PodPlan(end=True), "Failed"),
        (state("Always", {"one": FAILED}, inits=["one"]), PodPlan(start=("one",)), "Pending"),
        (state("Never", {}, inits=["sidecar"]), PodPlan(start=("sidecar",)), "Pending"),
        (state("Never", {"sidecar": RUNNING}, inits=["sidecar"]), PodPlan(start=("main",)), "Pending"),
        (
            state("Never", {"sidecar": FAILED, "main": RUNNING}, inits=["sidecar"]),
            PodPlan(start=("sidecar",)),
            "Running",
        ),
        (state("Never", {"sidecar": RUNNING, "main": DONE}, inits=["sidecar"]), PodPlan(end=True), "Running"),
        (state("Never", {"sidecar": FAILED, "main": DONE}, inits=["sidecar"]), PodPlan(end=True), "Succeeded"),
        (state("Never", {"sidecar": DONE, "main": FAILED}, inits=["sidecar"], ended=True), PodPlan(end=True), "Failed"),
        (state("Never", {"main": RUNNING}, killed=("DeadlineExceeded", "x")), PodPlan(end=True), "Failed"),
    ],
)
def test_the_next_step_and_the_phase_follow_from_what_is(case: PodState, plan: PodPlan, phase: str) -> None:
    assert (decide(case), phase_of(case)) == (plan, phase)


def test_a_terminal_phase_is_held_back_until_everything_is_stopped() -> None:
    running = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "qosClass": "BestEffort"}
    done = state("Never", {"main": DONE})
    early = status_of(done, now=3.0, host_ip="h", before=running)
    assert (early["phase"], early["startTime"]) == ("Running", running["startTime"])
    late = status_of(state("Never", {"main": DONE}, ended=True, up=False), now=3.0, host_ip="h", before=early)
    assert late["phase"] == "Succeeded"


def test_conditions_of_others_are_kept_before_the_kubelet_s() -> None:
    before = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    status = status_of(state("Never", {"main": RUNNING}), now=3.0, host_ip="h", before=before)
    assert [entry["type"] for entry in status["conditions"]][:2] == ["DisruptionTarget", "PodReadyToStartContainers"]


def test_a_waiting_container_that_ran_before_shows_how_it_ended() -> None:
    waiting = {"main": ContainerWaiting("CrashLoopBackOff", "back-off 10s")}
    status = status_of(state("Always", {"main": FAILED}, waiting=waiting), now=3.0, host_ip="h", before={})
    shown = status["containerStatuses"][0]
    assert shown["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    assert shown["lastState"]["terminated"]["exitCode"] == 5


def test_back_off_doubles_up_to_its_limit_and_is_forgotten_after_twice_that() -> None:
    backoff, now = BackOff(10.0, 300.0), 0.0
    assert backoff.holds("a", 0.0, 0.0) is None
    delays = []
    for _ in range(7):
        backoff.next("a", now, now)
        delays.append(backoff.holds("a", now, now))
        now += 301.0
    assert delays == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]
    backoff.next("a", now + 700.0, now + 700.0)
    assert backoff.holds("a", now + 700.0, now + 705.0) == 10.0
    assert backoff.holds("a", now + 700.0, now + 710.0) is None
    assert backoff.holds("b", now, now) is None
    assert [go_duration(delay) for delay in (10, 80, 300)] == ["10s", "1m20s", "5m0s"]


def test_references_in_an_environment_are_expanded_once() -> None:
    assert expand("$(A)-$(B)-$$(A)-$A", {"A": "1"}) == "1-$(B)-$(A)-$A"


def test_the_downward_api_reaches_the_environment() -> None:
    body = pod("a", annotations={"team": "blue"})
    body["metadata"] |= {"uid": "u", "labels": {"app": "x"}}
    paths = {
        "N": "metadata.name",
        "S": "metadata.namespace",
        "U": "metadata.uid",
        "L": "metadata.labels['app']",
        "T": "metadata.annotations['team']",
        "M": "metadata.labels['none']",
        "H": "status.hostIP",
    }
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()]
    cpu = {"resource": "limits.cpu", "divisor": "1m"}
    env.append({"name": "CPU", "valueFrom": {"resourceFieldRef": cpu}})
    env.append({"name": "GPUS", "valueFrom": {"resourceFieldRef": {"resource": "requests.falcon.com/gpu"}}})
    resources = {"limits": {"cpu": "1500m"}, "requests": {"falcon.com/gpu": "2"}}
    made = environment(body, {"env": env, "resources": resources}, given={}, pod_ip="10.1.1.1", host_ip="h")
    assert made == {
        "HOSTNAME": "a",
        "N": "a",
        "S": "default",
        "U": "u",
        "L": "x",
        "T": "blue",
        "M": "",
        "H": "h",
        "CPU": "1500",
        "GPUS": "2",
    }


@pytest.mark.parametrize("source", [{"fieldRef": {"fieldPath": "spec.volumes"}}, {"secretKeyRef": {"name": "s"}}])
def test_what_cannot_be_resolved_is_a_config_error(source: dict[str, Any]) -> None:
    with pytest.raises(StartError) as raised:
        environment(pod("a"), {"env": [{"name": "X", "valueFrom": source}]}, given={}, pod_ip="", host_ip="")
    assert raised.value.reason == "CreateContainerConfigError"


def test_limits_that_a_container_has_not_are_the_node_s_in_the_downward_api() -> None:
    def of(name: str, resource: str, **more: str) -> dict[str, Any]:
        return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, **more}}}

    env = [
        of("CPU", "limits.cpu"),
        of("MEMORY", "limits.memory", divisor="1Mi"),
        of("REQUEST", "requests.cpu"),
        of("OTHER", "limits.cpu", containerName="side", divisor="1m"),
    ]
    body = pod("a")
    body["spec"]["containers"].append({"name": "side", "resources": {"limits": {"cpu": "250m"}}})
    allocatable = {"cpu": "8", "memory": "1Gi"}
    made = environment(body, {"env": env}, given={}, pod_ip="", host_ip="h", allocatable=allocatable)
    assert made == {"HOSTNAME": "a", "CPU": "8", "MEMORY": "1024", "REQUEST": "0", "OTHER": "250"}
