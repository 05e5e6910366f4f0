"""What a runtime hook makes of a container, and what becomes of one whose hook nobody answers."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import DeviceNode
from mews.kube.emulated.kubelet.api import EmulatedKubeletApi
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.runtimehook.port import HookedContainer, HookError, HookPolicy, HookRequest
from tests.kube.emulated.kubelet.bench import Bench


class Agent:
    """Changes every container as it is told to, or fails so often."""

    def __init__(self, *, fails: int = 0) -> None:
        self.asked: list[HookRequest] = []
        self.fails = fails

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        self.asked.append(request)
        if self.fails:
            self.fails -= 1
            raise HookError("nobody there")
        env = {**request.asked.env, "NVIDIA_VISIBLE_DEVICES": "2,3"}
        devices = (DeviceNode("/dev/nvidia2", "/dev/nvidia2"),)
        return replace(request.asked, env=env, devices=devices)

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        raise AssertionError("nothing is updated")


def one(agent: Agent, policy: HookPolicy = HookPolicy.IGNORE) -> Bench:
    bench = Bench(hooks=ContainerHooks(agent, policy))
    bench.devices.envs = {"NVIDIA_VISIBLE_DEVICES": "GPU-1", "OTHER": "plugin"}
    return bench


CONTAINER = {
    "name": "main",
    "image": "busybox",
    "command": ["sh", "-c", "env; sleep 1000"],
    "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
}


def test_a_hook_s_answer_covers_what_plugin_and_pod_asked_for() -> None:
    async def main() -> None:
        agent = Agent()
        bench = one(agent)
        async with bench.running():
            await bench.pod("a", containers=[CONTAINER])
            pod = await bench.phase("a", "Running")
            printed = await EmulatedKubeletApi(bench.containerd, NodeSpec("n1")).exec(
                "default", "a", "main", ["printenv", "NVIDIA_VISIBLE_DEVICES"]
            )
            assert printed.stdout == b"2,3\n"
            request = agent.asked[0]
            assert (request.pod, request.container, request.pod_uid) == ("a", "main", pod["metadata"]["uid"])
            assert request.asked.env["NVIDIA_VISIBLE_DEVICES"] == "all"
            started = next(fields for event, fields in bench.notes if event == "container-started")
            assert started["env"] == {"NVIDIA_VISIBLE_DEVICES": "2,3", "OTHER": "plugin"}
            assert [each.env["NVIDIA_VISIBLE_DEVICES"] for each in bench.containerd.environments()] == ["2,3"]
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_whose_hook_fails_is_created_as_asked_for() -> None:
    async def main() -> None:
        bench = one(Agent(fails=1))
        async with bench.running():
            await bench.pod("a", containers=[CONTAINER])
            await bench.phase("a", "Running")
            assert [each.env["NVIDIA_VISIBLE_DEVICES"] for each in bench.containerd.environments()] == ["all"]
            failed = [fields for event, fields in bench.notes if event == "hook-failed"]
            assert [(each["container"], each["message"]) for each in failed] == [("main", "nobody there")]
        await bench.containerd.close()

    run_virtual(main)


def test_under_fail_a_container_waits_until_its_hook_is_answered() -> None:
    async def main() -> None:
        bench = one(Agent(fails=2), HookPolicy.FAIL)
        async with bench.running():
            await bench.pod("a", containers=[CONTAINER])

            def waits(pod: dict) -> bool:
                found = (pod["status"].get("containerStatuses") or [{}])[0].get("state", {}).get("waiting", {})
                return found.get("reason") == "CreateContainerError"

            waiting = await bench.until("a", waits)
            text = waiting["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
            assert text == "PreCreateContainerHook: nobody there"
            await bench.phase("a", "Running")
            assert [each.env["NVIDIA_VISIBLE_DEVICES"] for each in bench.containerd.environments()] == ["2,3"]
        await bench.containerd.close()

    run_virtual(main)


def test_environments_are_those_of_containers_that_run() -> None:
    async def main() -> None:
        bench = one(Agent())
        async with bench.running():
            await bench.pod("a", ["sleep", "5"])
            await bench.phase("a", "Running")
            assert [each.container for each in bench.containerd.environments()] == ["main"]
            await bench.phase("a", "Succeeded")
            await asyncio.sleep(1)
            assert bench.containerd.environments() == ()
        await bench.containerd.close()

    run_virtual(main)
