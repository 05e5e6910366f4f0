"""Pods whose cpu and memory are changed while they run."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES, PODS
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.runtimehook.port import HookedContainer, HookError, HookPolicy, HookRequest
from tests.kube.emulated.kubelet.bench import NODE, Bench


@dataclass
class Updates:
    """An agent that hears of updates, and fails so many of them."""

    fails: int = 0
    asked: list[HookRequest] = field(default_factory=list)

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        return request.asked

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        self.asked.append(request)
        if self.fails:
            self.fails -= 1
            raise HookError("nobody there")
        return request.asked


def container(cpu: str = "100m", **parts: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "example.com/part": "1"}, "limits": {"example.com/part": "1"}}
    made = {"name": "main", "image": "busybox", "command": ["sleep", "1000"], "resources": resources}
    return {**made, "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "2"}], **parts}


async def resize(bench: Bench, name: str, cpu: str) -> None:
    body = copy.deepcopy(await bench.get(name))
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    await bench.kube.replace(PODS, body, subresource="resize")


def given(pod: Object) -> str:
    return str(pod["status"]["containerStatuses"][0]["allocatedResources"]["cpu"])


def condition(pod: Object, kind: str = "PodResizePending") -> dict[str, Any]:
    return next((each for each in pod["status"]["conditions"] if each["type"] == kind), {})


def bench_of(agent: Updates, policy: HookPolicy = HookPolicy.IGNORE) -> Bench:
    return Bench(hooks=ContainerHooks(agent, policy))


async def begin(bench: Bench, *names: str, **parts: Any) -> None:
    for name in names:
        await bench.pod(name, containers=[container(**parts)], policy="Always", grace_s=1)
        await bench.phase(name, "Running")


def test_a_running_container_gets_what_the_pod_is_resized_to_and_the_agent_is_asked_first() -> None:
    async def main() -> None:
        agent = Updates()
        bench = bench_of(agent)
        async with bench.running():
            await begin(bench, "a")
            assert agent.asked == []
            await resize(bench, "a", "200m")
            pod = await bench.until("a", lambda pod: given(pod) == "200m")
            (request,) = agent.asked
            assert (request.pod, request.container, request.attempt) == ("a", "main", 0)
            assert request.asked.env["NVIDIA_VISIBLE_DEVICES"] == "2"
            status = pod["status"]["containerStatuses"][0]
            assert status["resources"]["requests"] == {"cpu": "200m", "example.com/part": "1"}
            assert status["restartCount"] == 0
            assert [fields["container"] for event, fields in bench.notes if event == "container-updated"] == ["main"]
            completed = [message for _, reason, message, _ in await bench.events("a") if reason == "ResizeCompleted"]
            assert len(completed) == 1 and '"cpu":"200m"' in completed[0]
        await bench.containerd.close()

    run_virtual(main)


def test_what_the_node_never_has_is_infeasible_and_the_container_keeps_what_it_has() -> None:
    async def main() -> None:
        agent = Updates()
        bench = bench_of(agent)
        async with bench.running():
            await begin(bench, "a")
            await resize(bench, "a", "100000")
            pod = await bench.until("a", condition)
            found = condition(pod)
            assert (found["status"], found["reason"]) == ("True", "Infeasible")
            assert found["message"].startswith(
                "Node didn't have enough capacity: cpu, requested: 100000000, capacity: "
            )
            assert given(pod) == "100m"
            await resize(bench, "a", "100m")
            await bench.until("a", lambda pod: not condition(pod))
            assert agent.asked == []
        await bench.containerd.close()

    run_virtual(main)


def test_what_others_have_is_waited_for_and_does_not_count_as_given_meanwhile() -> None:
    async def main() -> None:
        bench = bench_of(Updates())
        async with bench.running():
            await begin(bench, "a", "b")
            room = int((await bench.kube.get(NODES, NODE))["status"]["allocatable"]["cpu"])
            await resize(bench, "a", str(room))
            pod = await bench.until("a", condition)
            assert condition(pod)["reason"] == "Deferred"
            assert condition(pod)["message"].startswith("Node didn't have enough resource: cpu, requested: ")
            await resize(bench, "b", "200m")  # there is room for this, whatever a wants
            await bench.until("b", lambda pod: given(pod) == "200m")
            await bench.kube.delete(PODS, "b", namespace="default")
            pod = await bench.until("a", lambda pod: given(pod) == str(room))
            assert not condition(pod)
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_that_wants_it_is_started_anew() -> None:
    async def main() -> None:
        agent = Updates()
        bench = bench_of(agent)
        async with bench.running():
            await begin(bench, "a", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])
            await resize(bench, "a", "200m")
            pod = await bench.until("a", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 1)
            assert given(pod) == "200m" and agent.asked == []
            messages = [message for _, reason, message, _ in await bench.events("a") if reason == "Killing"]
            assert messages == ["Container main resize requires restart"]
        await bench.containerd.close()

    run_virtual(main)


def test_under_fail_it_waits_for_the_agent_and_under_ignore_it_does_not() -> None:
    async def main(policy: HookPolicy, fails: int) -> None:
        agent = Updates(fails)
        bench = bench_of(agent, policy)
        async with bench.running():
            await begin(bench, "a")
            await resize(bench, "a", "200m")
            if policy is HookPolicy.FAIL:
                pod = await bench.until("a", lambda pod: condition(pod, "PodResizeInProgress"))
                found = condition(pod, "PodResizeInProgress")
                text = "PreUpdateContainerResourcesHook: nobody there"
                assert (found["reason"], found["message"], given(pod)) == ("Error", text, "100m")
            await bench.until("a", lambda pod: given(pod) == "200m")
            assert len(agent.asked) == (fails + 1 if policy is HookPolicy.FAIL else 1)
        await bench.containerd.close()

    run_virtual(lambda: main(HookPolicy.FAIL, 2))
    run_virtual(lambda: main(HookPolicy.IGNORE, 1))


def test_what_was_given_outlives_a_restart_of_the_kubelet() -> None:
    async def main() -> None:
        agent = Updates()
        bench = bench_of(agent)
        async with bench.running():
            await begin(bench, "a")
            await resize(bench, "a", "100000")
            await bench.until("a", condition)
        async with bench.running():
            await resize(bench, "a", "300m")
            pod = await bench.until("a", lambda pod: given(pod) == "300m")
            assert not condition(pod)
            assert len(agent.asked) == 1
        await bench.containerd.close()

    run_virtual(main)
