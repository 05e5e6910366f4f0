"""What the webhooks answer: each request of the design as it is created, and who may bind."""

from __future__ import annotations

from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import PODS
from mews.kube.clock import stream
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.systems.koordinator import names
from mews.systems.koordinator.admission import has_devices, json_patch, mutated, refused_binding
from mews.systems.koordinator.errors import InvalidRequestError

K, S = "koordinator.sh/", "kubernetes.io/"
PLAIN = {"cpu": "4", "memory": "8Gi"}


def pod(requests: dict[str, str], limits: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    resources = {"requests": requests} if limits is None else {"requests": requests, "limits": limits}
    return {
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": resources}], **spec},
    }


def made(given: dict[str, Any], *, device_plugin: bool = True) -> dict[str, Any]:
    return mutated(given, scheduler=names.SCHEDULER, device_plugin=device_plugin)["spec"]["containers"][0]["resources"]


@pytest.mark.parametrize(
    ("requests", "becomes"),
    [
        ({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu": "2", K + "gpu-core": "200", K + "gpu-memory-ratio": "200"}),
        ({S + "gpu": "50"}, {K + "gpu-core": "50", K + "gpu-memory-ratio": "50", K + "gpu.shared": "1"}),
        ({K + "gpu": "50"}, {K + "gpu-core": "50", K + "gpu-memory-ratio": "50", K + "gpu.shared": "1"}),
        ({K + "gpu": "300"}, {K + "gpu-core": "300", K + "gpu-memory-ratio": "300", K + "gpu.shared": "3"}),
        ({K + "gpu-memory-ratio": "150"}, {K + "gpu-memory-ratio": "150", K + "gpu.shared": "1"}),  # it is refused
        ({K + "gpu-memory": "1Gi"}, {K + "gpu-memory": "1Gi", K + "gpu.shared": "1"}),
        (
            {K + "gpu-core": "200", K + "gpu-memory": "1Gi"},
            {K + "gpu-core": "200", K + "gpu-memory": "1Gi"},  # no number is made of a core above 100
        ),
        (
            {S + "gpu-core": "50", S + "gpu-memory-ratio": "60"},
            {K + "gpu-core": "50", K + "gpu-memory-ratio": "60", K + "gpu.shared": "1"},
        ),
        (
            {S + "gpu-core": "60", S + "gpu-memory": "4Gi"},
            {K + "gpu-core": "60", K + "gpu-memory": "4Gi", K + "gpu.shared": "1"},
        ),
        ({S + "rdma": "100"}, {K + "rdma": "100"}),
        ({S + "fpga": "100"}, {K + "fpga": "100"}),
        (
            {K + "gpu.shared": "2", K + "gpu-memory-ratio": "100"},
            {K + "gpu.shared": "2", K + "gpu-memory-ratio": "100"},
        ),
        ({K + "gpu": "50", K + "gpu-core": "50"}, {K + "gpu": "50", K + "gpu-core": "50"}),  # the scheduler refuses it
    ],
)
def test_a_request_of_the_design_becomes_today_s_with_limits_that_equal_it(
    requests: dict[str, str], becomes: dict[str, str]
) -> None:
    found = made(pod({**requests, **PLAIN}))
    assert found == {"requests": {**PLAIN, **becomes}, "limits": becomes}


def test_nvidia_s_name_goes_where_its_plugin_does_not_run() -> None:
    found = made(pod({"nvidia.com/gpu": "1"}), device_plugin=False)
    assert found["limits"] == {K + "gpu-core": "100", K + "gpu-memory-ratio": "100"}


def test_what_was_translated_already_stays_as_it_is() -> None:
    first = made(pod({"nvidia.com/gpu": "2"}))
    assert made(pod(first["requests"], first["limits"])) == first


def test_limits_of_processor_and_memory_stay_and_init_containers_are_written_too() -> None:
    given = pod({K + "gpu": "50", **PLAIN}, {K + "gpu": "50", "cpu": "8"})
    given["spec"]["initContainers"] = [{"name": "i", "image": "x", "resources": {"limits": {S + "gpu": "30"}}}]
    after = mutated(given, scheduler=names.SCHEDULER, device_plugin=True)
    assert after["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "8"
    half = {K + "gpu-core": "30", K + "gpu-memory-ratio": "30", K + "gpu.shared": "1"}
    assert after["spec"]["initContainers"][0]["resources"] == {"limits": half, "requests": half}


def test_a_pod_without_devices_is_none_of_ours() -> None:
    given = pod({**PLAIN, "falcon.com/gpu": "1"}, schedulerName="kubecomp-scheduler")
    assert not has_devices(given)
    assert mutated(given, scheduler=names.SCHEDULER, device_plugin=True) is given


def test_an_amount_that_is_said_twice_and_differently_is_refused() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"container main: kubernetes\.io/gpu-core: 60: it is requested as 50 as well"
    ):
        made(pod({K + "gpu-core": "50", S + "gpu-core": "60"}))


def test_an_amount_under_two_names_is_refused_as_the_scheduler_would() -> None:
    with pytest.raises(InvalidRequestError, match=r"container main: koordinator\.sh/gpu is requested under two names"):
        made(pod({K + "gpu": "50", S + "gpu": "50"}))
    by_both_sides = made(pod({S + "gpu": "50"}, {K + "gpu": "50"}))
    assert by_both_sides["limits"] == {K + "gpu-core": "50", K + "gpu-memory-ratio": "50", K + "gpu.shared": "1"}


def test_a_pod_with_devices_that_somebody_has_placed_already_is_refused() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"spec\.nodeName: n: a pod that asks for devices is placed by koord-sch"
    ):
        made(pod({"nvidia.com/gpu": "1"}, nodeName="n"))
    plain = pod(PLAIN, nodeName="n")
    assert mutated(plain, scheduler=names.SCHEDULER, device_plugin=True) is plain
    shown = pod({"nvidia.com/gpu": "1"}, nodeName="n")
    shown["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert mutated(shown, scheduler=names.SCHEDULER, device_plugin=True) is shown


@pytest.mark.parametrize("requests", [PLAIN, {"nvidia.com/gpu": "1"}])
def test_a_copy_of_another_pod_does_not_have_its_devices(requests: dict[str, str]) -> None:
    given = pod(requests)
    given["metadata"]["annotations"] = {names.ALLOCATED: "{}", "mine": "stays"}
    after = mutated(given, scheduler=names.SCHEDULER, device_plugin=True)
    assert after["metadata"]["annotations"] == {"mine": "stays"}
    removal = {"op": "remove", "path": "/metadata/annotations/scheduling.koordinator.sh~1device-allocated"}
    assert json_patch(given, after)[0] == removal


def test_the_patch_names_the_scheduler_and_the_resources_and_an_api_server_takes_what_it_makes() -> None:
    given = pod({S + "gpu": "50", **PLAIN})
    after = mutated(given, scheduler=names.SCHEDULER, device_plugin=True)
    assert [(each["op"], each["path"]) for each in json_patch(given, after)] == [
        ("add", "/spec/schedulerName"),
        ("add", "/spec/containers/0/resources"),
    ]
    assert json_patch(after, after) == []

    async def main() -> None:
        kube = InProcessKube(fresh_store(virtual_clock().now, stream(1, "store")))
        with pytest.raises(ApiError, match="Limit must be set for non overcommitable resources"):
            await kube.create(PODS, pod({K + "gpu": "50"}), namespace="default")
        stored = await kube.create(PODS, after, namespace="default")
        assert stored["spec"]["schedulerName"] == names.SCHEDULER

    run_virtual(main)


ACCOUNT = "system:serviceaccount:koordinator-system:koord-scheduler"


@pytest.mark.parametrize(
    ("requests", "username", "allowed"),
    [
        ({K + "gpu-core": "50"}, ACCOUNT, True),
        ({K + "gpu-core": "50"}, "system:kube-scheduler", False),
        ({"nvidia.com/gpu": "1"}, "system:kube-scheduler", False),
        (PLAIN, "system:kube-scheduler", True),
        ({"falcon.com/gpu": "1"}, "system:kube-scheduler", True),
    ],
)
def test_a_pod_with_devices_is_bound_by_our_scheduler_alone(
    requests: dict[str, str], username: str, allowed: bool
) -> None:
    said = refused_binding(pod(requests), username, accounts=(ACCOUNT,))
    assert (said == "") is allowed
    if said:
        assert said == f"pod default/a asks for devices: only {ACCOUNT} may bind it, and this is {username}"
