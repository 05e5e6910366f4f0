"""A whole node: kubelet, device manager, folder and a plugin, over kubelet restarts (contract kubelet.md 2 and 8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.deviceplugin import LocalKubeletFolder
from mews.harness.ports.fence import Fence
from mews.kube.api.errors import UnavailableError
from mews.kube.api.objects import Object, seconds
from mews.kube.api.resources import EVENTS, LEASES, NODES, PODS
from mews.kube.clock import Pace, rest, stream
from mews.kube.component import Context
from mews.kube.deviceplugin.port import Allocation, PluginDevice, PluginError, PluginOptions
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import KubeletProcess, Machine
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from tests.kube.emulated.kubelet.bench import NODE, pod

GPU = "falcon.com/gpu"


class Plugin:
    """Four devices; comes back after each start of the kubelet."""

    def __init__(self) -> None:
        self.starts: list[tuple[str, ...]] = []

    async def options(self) -> PluginOptions:
        return PluginOptions(pre_start_required=True, preferred_allocation_available=True)

    async def list_and_watch(self) -> AsyncIterator[tuple[PluginDevice, ...]]:
        yield tuple(PluginDevice(f"1-00010{number}") for number in range(4))
        await asyncio.get_running_loop().create_future()

    async def preferred_allocation(
        self, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        return tuple(sorted(available)[:size])

    async def allocate(self, requests: Sequence[Sequence[str]]) -> tuple[Allocation, ...]:
        return tuple(
            Allocation(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(f"GPU-{device}" for device in sorted(request))})
            for request in requests
        )

    async def pre_start(self, devices: Sequence[str]) -> None:
        self.starts.append(tuple(sorted(devices)))


class Node:
    def __init__(self) -> None:
        self.clock, self.pace = virtual_clock(), Pace()
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store")))
        self.notes: list[tuple[str, dict[str, object]]] = []
        self.folder = LocalKubeletFolder()
        self.machine = Machine(
            NodeSpec(NODE),
            Containerd(self.clock, stream(1, "containerd"), simulated=SimulatedRuntime(self.pace)),
            self.folder,
            MemoryCheckpoint(),
            load_images(),
            self.pace,
            note=lambda event, **fields: self.notes.append((event, fields)),
        )
        self.plugin = Plugin()
        self.starts = 0

    async def serve_plugin(self) -> None:
        link = self.folder.link()
        while True:
            await link.kubelet_restarted()
            await link.serve("falcon.sock", self.plugin)
            try:
                await link.register("falcon.sock", GPU, PluginOptions(pre_start_required=True))
            except PluginError:
                await rest(1)

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[KubeletProcess]:
        """Runs until it is killed: fenced and cancelled."""
        self.starts += 1
        fence = Fence()
        rng = stream(1, f"kubelet {self.starts}")
        context = Context(fence.around(self.kube), self.clock, rng, logging.getLogger("kubelet"))
        process = self.machine.kubelet(context)
        task = asyncio.create_task(process.run())
        try:
            yield process
        finally:
            fence.cut()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def shown(self) -> str:
        nodes = (await self.kube.list(NODES)).items
        if not nodes:
            return ""
        status = nodes[0]["status"]
        return f"{status['capacity'].get(GPU, '-')}/{status['allocatable'].get(GPU, '-')}"

    async def until_shown(self, numbers: str, timeout_s: float = 60.0) -> None:
        async with asyncio.timeout(timeout_s):
            while await self.shown() != numbers:  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def run_pod(self, name: str, gpus: int, command: list[str], *, policy: str = "Never") -> Object:
        main = {"name": "main", "image": "mews/gpu-check", "command": command}
        main["resources"] = {"limits": {GPU: str(gpus)} if gpus else {}}
        await self.kube.create(PODS, pod(name, containers=[main], policy=policy), namespace="default")
        await self.kube.bind("default", name, NODE)
        return await self.past(name, "Pending")

    async def past(self, name: str, *phases: str) -> Object:
        """The pod, once it has left those phases."""
        async with asyncio.timeout(600):
            while True:
                found = await self.kube.get(PODS, name, namespace="default")
                if found["status"]["phase"] not in phases:
                    return found
                await asyncio.sleep(0.01)


def test_a_pod_gets_its_devices_and_keeps_them_over_a_kubelet_restart_that_first_shows_none() -> None:
    async def main() -> None:
        node, loop = Node(), asyncio.get_running_loop()
        plugin = asyncio.create_task(node.serve_plugin())
        async with node.kubelet():
            await node.until_shown("4/4")
            running = await node.run_pod("a", 2, ["sleep", "9999"])
            assert running["status"]["containerStatuses"][0]["allocatedResources"] == {GPU: "2"}
            assert node.plugin.starts == [("1-000100", "1-000101")]
        await asyncio.sleep(3)
        async with node.kubelet():
            begun = loop.time()
            await node.until_shown("0/0")
            assert 0.4 <= loop.time() - begun <= 0.9
            await node.until_shown("4/4")
            assert 10.0 <= loop.time() - begun <= 11.5
            devices = await node.folder.pod_resources().list()
            assert {d.device_ids[0] for _, held in devices[0].containers for d in held} == {"1-000100", "1-000101"}
            after = await node.kube.get(PODS, "a", namespace="default")
            assert after["status"] == running["status"]
            over = await node.run_pod("b", 3, ["sleep", "9"])
            assert over["status"]["reason"] == "UnexpectedAdmissionError"
            assert "Requested: 3, Available: 2" in over["status"]["message"]
        assert [event for event, _ in node.notes if event in ("allocated", "container-started", "rejected")] == [
            *("allocated", "container-started", "rejected"),
        ]
        plugin.cancel()
        await node.machine.containerd.close()
        await asyncio.gather(plugin, return_exceptions=True)

    run_virtual(main)


def test_a_pod_bound_before_the_plugin_is_back_is_rejected() -> None:
    async def main() -> None:
        node = Node()
        plugin = asyncio.create_task(node.serve_plugin())
        async with node.kubelet():
            await node.until_shown("4/4")
        plugin.cancel()
        async with node.kubelet():
            await node.until_shown("0/0")
            failed = await node.run_pod("early", 1, ["sleep", "9"])
            text = f"no healthy devices present; cannot allocate unhealthy devices {GPU}"
            assert text in failed["status"]["message"]
        await node.machine.containerd.close()
        await asyncio.gather(plugin, return_exceptions=True)

    run_virtual(main)


def test_gpu_check_prints_exactly_its_uuids_in_virtual_time() -> None:
    async def main() -> None:
        node = Node()
        plugin = asyncio.create_task(node.serve_plugin())
        async with node.kubelet():
            await node.until_shown("4/4")
            main = {"name": "main", "image": "mews/gpu-check", "resources": {"limits": {GPU: "2"}}}
            await node.kube.create(PODS, pod("check", containers=[main]), namespace="default")
            await node.kube.bind("default", "check", NODE)
            await asyncio.sleep(10)
            chunks = [c async for c in node.machine.api().log("default", "check", "main")]
            assert b"".join(chunks) == b"GPU-1-000100\nGPU-1-000101\n"
            done = await node.kube.get(PODS, "check", namespace="default")
            assert done["status"]["phase"] == "Succeeded"
        plugin.cancel()
        await node.machine.containerd.close()
        await asyncio.gather(plugin, return_exceptions=True)

    run_virtual(main)


def test_an_unchanged_node_status_is_written_every_five_minutes_and_the_lease_every_ten_seconds() -> None:
    async def main() -> None:
        node, loop = Node(), asyncio.get_running_loop()
        writes: list[float] = []
        renewals: list[float] = []

        async def watch_nodes() -> None:
            async for _ in node.kube.watch(NODES):
                writes.append(loop.time())

        async def watch_leases() -> None:
            async for _ in node.kube.watch(LEASES):
                renewals.append(loop.time())

        watches = [asyncio.create_task(watch_nodes()), asyncio.create_task(watch_leases())]
        async with node.kubelet():
            await asyncio.sleep(3600)
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        spans = [later - earlier for earlier, later in pairwise(writes[2:])]
        assert all(300.0 <= span <= 310.5 for span in spans)
        assert len(spans) >= 9
        beats = [later - earlier for earlier, later in pairwise(renewals)]
        assert all(10.0 <= beat <= 10.4 for beat in beats)

    run_virtual(main)


@pytest.mark.parametrize("speed", [1.0, 20.0])
def test_speed_divides_ticks_spans_and_simulated_durations(speed: float) -> None:
    async def main() -> None:
        node = Node()
        node.pace = Pace(speed)
        runtime = SimulatedRuntime(node.pace)
        containerd = Containerd(node.clock, stream(1, "containerd"), simulated=runtime)
        node.machine = Machine(NodeSpec(NODE), containerd, node.folder, MemoryCheckpoint(), load_images(), node.pace)
        async with node.kubelet():
            begun = asyncio.get_running_loop().time()
            await node.run_pod("a", 0, ["sleep", "300"])
            await node.past("a", "Running")
            assert 302.0 <= (asyncio.get_running_loop().time() - begun) * speed <= 308.0
        await containerd.close()

    run_virtual(main)


def test_a_rebooted_node_refuses_pods_with_devices_and_restarts_those_without() -> None:
    async def main() -> None:
        node = Node()
        plugin = asyncio.create_task(node.serve_plugin())
        async with node.kubelet():
            await node.until_shown("4/4")
            await node.run_pod("held", 1, ["sleep", "9999"], policy="Always")
            await node.run_pod("plain", 0, ["sleep", "9999"], policy="Always")
            await node.run_pod("never", 0, ["sleep", "9999"])
        plugin.cancel()
        await node.machine.reboot()
        await asyncio.sleep(2)
        async with node.kubelet():
            held = await node.past("held", "Running")
            assert held["status"]["reason"] == "UnexpectedAdmissionError"
            assert "no healthy devices present" in held["status"]["message"]
            assert "containerStatuses" not in held["status"]
            never = await node.past("never", "Running")
            assert never["status"]["phase"] == "Failed"
            await asyncio.sleep(5)
            plain = await node.kube.get(PODS, "plain", namespace="default")
            shown = plain["status"]["containerStatuses"][0]
            assert (shown["restartCount"], shown["ready"]) == (1, True)
            lost = [shown["lastState"]["terminated"], never["status"]["containerStatuses"][0]["state"]["terminated"]]
            assert [(state["exitCode"], state["reason"]) for state in lost] == [(255, "Unknown")] * 2
            events = (await node.kube.list(EVENTS)).items
            changed = [event["involvedObject"]["name"] for event in events if event["reason"] == "SandboxChanged"]
            assert changed == ["plain"]
        await node.machine.containerd.close()
        await asyncio.gather(plugin, return_exceptions=True)

    run_virtual(main)


def test_a_kubelet_lives_through_an_api_server_that_does_not_answer() -> None:
    async def main() -> None:
        node = Node()
        kube = node.kube
        down = {"now": False}

        class Flaky:
            """The same API, unreachable while ``down``; open watches stay."""

            def __getattr__(self, name: str) -> Any:
                method = getattr(kube, name)

                async def call(*args: Any, **kwargs: Any) -> Any:
                    if down["now"]:
                        raise UnavailableError("connection refused")
                    return await method(*args, **kwargs)

                return method if name == "watch" else call

        node.kube = Flaky()  # type: ignore[assignment]
        async with node.kubelet():
            await node.run_pod("a", 0, ["sleep", "20"])
            down["now"] = True
            await asyncio.sleep(60)
            down["now"] = False
            assert (await node.past("a", "Running"))["status"]["phase"] == "Succeeded"
            events = [event["reason"] for event in (await kube.list(EVENTS)).items]
            assert events.count("Started") == 1
            await asyncio.sleep(12)
            lease = await kube.get(LEASES, NODE, namespace="kube-node-lease")
            assert node.clock.now() - seconds(lease["spec"]["renewTime"]) <= 10.4
        await node.machine.containerd.close()

    run_virtual(main)


@pytest.mark.parametrize(("booting_for_s", "waits"), [(0.0, True), (5.0, False)])
def test_a_node_that_has_been_booting_for_long_enough_registers_at_once(booting_for_s: float, waits: bool) -> None:
    async def main() -> None:
        node = Node()
        context = Context(node.kube, node.clock, stream(1, "kubelet"), logging.getLogger("kubelet"))
        process = node.machine.kubelet(context, booting_for_s=booting_for_s)
        task = asyncio.create_task(process.run())
        await asyncio.sleep(0.1)
        assert bool((await node.kube.list(NODES)).items) is not waits
        await asyncio.sleep(0.7)
        assert (await node.kube.list(NODES)).items
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_virtual(main)
