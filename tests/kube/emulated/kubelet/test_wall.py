"""A node in wall-clock time: its pods are processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object
from mews.kube.api.resources import EVENTS, PODS
from mews.kube.clock import Clock, Pace, stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.kubelet import starter
from mews.kube.emulated.kubelet.api import EmulatedKubeletApi
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.kubelet import Kubelet
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes
from tests.kube.emulated.kubelet.bench import NODE, FakeDevices, pod

pytestmark = pytest.mark.wall


class WallNode:
    def __init__(self, folder: Path) -> None:
        self.clock, self.pace = Clock.wall(), Pace(30.0)
        self.kube = InProcessKube(fresh_store(self.clock.now, stream(1, "store")))
        self.devices = FakeDevices(envs={"NVIDIA_VISIBLE_DEVICES": "GPU-1,GPU-2"})
        simulated, processes = SimulatedRuntime(self.pace), ProcessRuntime(folder)
        rng = stream(1, "containerd")
        self.containerd = Containerd(self.clock, rng, simulated=simulated, processes=processes, network="127.9.2")
        self.api = EmulatedKubeletApi(self.containerd, NodeSpec("n1"))

    @asynccontextmanager
    async def kubelet(self) -> AsyncIterator[None]:
        context = Context(self.kube, self.clock, stream(1, "kubelet"), logging.getLogger("kubelet"))
        spec = NodeSpec(NODE)
        kubelet = Kubelet(context, spec, self.devices, self.containerd, self.pace, images=load_images())
        task = asyncio.create_task(kubelet.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def bound(self, name: str, command: list[str] | None = None, **parts: Any) -> None:
        await self.kube.create(PODS, pod(name, command, **parts), namespace="default")
        await self.kube.bind("default", name, NODE)

    async def phase(self, name: str, phase: str) -> Object:
        async with asyncio.timeout(60):
            while True:
                found = await self.kube.get(PODS, name, namespace="default")
                if found["status"]["phase"] == phase:
                    return found
                await asyncio.sleep(0.01)

    async def text(self, name: str) -> str:
        return b"".join([chunk async for chunk in self.api.log("default", name, "main")]).decode()


def test_a_gpu_check_process_prints_exactly_its_uuids(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        async with node.kubelet():
            await node.bound("check", image="mews/gpu-check")
            done = await node.phase("check", "Succeeded")
            assert await node.text("check") == "GPU-1\nGPU-2\n"
            assert done["status"]["podIP"].startswith("127.9.2.")
        await node.containerd.close()

    asyncio.run(main())


def test_a_process_survives_its_kubelet_and_ends_with_its_pod(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        async with node.kubelet():
            await node.bound("hold", image="mews/gpu-hold")
            before = await node.phase("hold", "Running")
        async with node.kubelet():
            await asyncio.sleep(0.2)
            after = await node.phase("hold", "Running")
            assert after["status"] == before["status"]
            result = await node.api.exec("default", "hold", "main", ["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"])
            assert result.stdout == b"GPU-1,GPU-2\n"
            await node.kube.delete(PODS, "hold", namespace="default")
            with pytest.raises(NotFoundError):
                await node.phase("hold", "gone")
        await node.containerd.close()

    asyncio.run(main())


def test_a_failing_process_restarts_and_its_previous_log_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        async with node.kubelet():
            count = "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; echo run $n; exit 1"
            await node.bound("again", ["sh", "-c", count], policy="Always")
            async with asyncio.timeout(60):
                while True:
                    found = await node.kube.get(PODS, "again", namespace="default")
                    statuses = found["status"].get("containerStatuses", [{}])
                    if statuses[0].get("restartCount", 0) >= 1 and "terminated" in statuses[0]["lastState"]:
                        break
                    await asyncio.sleep(0.01)
            previous = [c async for c in node.api.log("default", "again", "main", previous=True)]
            assert int(b"".join(previous).split()[1]) + 1 == int((await node.text("again")).split()[1])
        await node.containerd.close()

    asyncio.run(main())


WEB = """
import http.server, os, sys
if os.path.exists("sick"):
    os.remove("sick")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if self.path == "/live" and os.path.exists("sick") else 200)
        self.end_headers()
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer((os.environ["POD_IP"], 8000), Handler).serve_forever()
"""


def test_a_process_is_ready_by_its_page_and_started_again_when_it_says_that_it_is_sick(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        page = {"periodSeconds": 10, "timeoutSeconds": 30}
        main: dict[str, Any] = {
            "name": "main",
            "image": "python",
            "args": ["-c", WEB],
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "ports": [{"name": "web", "containerPort": 8000}],
            "readinessProbe": {"httpGet": {"port": "web", "path": "/ready"}, **page},
            "livenessProbe": {"httpGet": {"port": 8000, "path": "/live"}, **page, "initialDelaySeconds": 20},
            "startupProbe": {"tcpSocket": {"port": "web"}, **page, "failureThreshold": 1000},
        }

        async def until(restarts: int) -> None:
            async with asyncio.timeout(60):
                while True:
                    found = (await node.kube.get(PODS, "web", namespace="default"))["status"]
                    entry = found.get("containerStatuses", [{}])[0]
                    if entry.get("ready") and entry["restartCount"] == restarts:
                        return
                    await asyncio.sleep(0.02)

        async with node.kubelet():
            await node.bound("web", containers=[main], policy="Always", grace_s=1)
            await until(0)
            assert (await node.api.exec("default", "web", "main", ["touch", "sick"])).exit_code == 0
            await until(1)
            events = (await node.kube.list(EVENTS, namespace="default")).items
            said = {(event["reason"], event["message"]) for event in events}
            assert ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503") in said
            assert ("Killing", "Container main failed liveness probe, will be restarted") in said
        await node.containerd.close()

    asyncio.run(main())


def test_a_process_that_cannot_see_its_volumes_is_warned_of_once(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/tmp"}}]
        mounts = [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/tmp"}]
        thrice = "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; [ $n -ge 3 ]"
        both = [
            {"name": name, "image": "busybox", "command": ["sh", "-c", thrice], "volumeMounts": mounts}
            for name in ("one", "two")
        ]
        async with node.kubelet():
            await node.bound("p", containers=both, volumes=volumes, policy="OnFailure")
            done = await node.phase("p", "Succeeded")
        assert [each["restartCount"] for each in done["status"]["containerStatuses"]] == [2, 2]
        said = [event for event in (await node.kube.list(EVENTS, namespace="default")).items if _warns(event)]
        text = "Volume a is not mounted: containers that run as processes see the file system of this machine"
        assert [(event["message"], event["count"]) for event in said] == [(text, 1)]
        await node.containerd.close()

    asyncio.run(main())


def test_a_pod_that_shares_process_ids_with_the_machine_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter, "namespaces_lacking", lambda: "")
    monkeypatch.setattr(starter, "lacking", lambda kind: "no /proc" if kind == "pid" else "")

    async def main() -> None:
        node = WallNode(tmp_path)
        paths = NodeHostPaths(lambda name: tmp_path / name, lambda host: None)
        node.containerd.volumes = PodVolumes(lambda: node.kube, tmp_path, paths)
        thrice = "n=$(cat count 2>/dev/null || echo 0); n=$((n+1)); echo $n > count; [ $n -ge 3 ]"
        async with node.kubelet():
            await node.bound("p", ["sh", "-c", thrice], policy="OnFailure")
            await node.bound("played", image="mews/train")
            await node.phase("p", "Succeeded")
            await node.phase("played", "Running")
        events = (await node.kube.list(EVENTS, namespace="default")).items
        said = [(each["message"], each["count"]) for each in events if each["reason"] == "NamespacesShared"]
        assert said == [("Containers share the process IDs of this machine: no /proc", 1)]
        await node.containerd.close()

    asyncio.run(main())


def test_a_summary_has_what_processes_use_and_what_their_volumes_hold(tmp_path: Path) -> None:
    async def main() -> None:
        node = WallNode(tmp_path)
        paths = NodeHostPaths(lambda name: tmp_path / name, lambda host: None)
        node.containerd.volumes = PodVolumes(lambda: node.kube, tmp_path, paths)
        async with node.kubelet():
            await node.bound("p", ["sh", "-c", "while :; do :; done"], volumes=[{"name": "e", "emptyDir": {}}])
            folder = tmp_path / (await node.phase("p", "Running"))["metadata"]["uid"] / "volumes/e"
            folder.mkdir(parents=True)
            (folder / "held").write_bytes(bytes(100_000))
            await asyncio.sleep(1.5)
            [found] = (await node.api.summary(now=1.0, files=True))["pods"]
            assert (found["podRef"]["name"], found["containers"][0]["name"]) == ("p", "main")
            assert found["cpu"]["usageCoreNanoSeconds"] > 0
            assert found["volume"][0]["usedBytes"] >= 100_000
            [short] = (await node.api.summary(now=1.0, files=False))["pods"]
            assert "volume" not in short and short["podRef"] == found["podRef"]
        await node.containerd.close()

    asyncio.run(main())


def _warns(event: Object) -> bool:
    return bool(event["reason"] == "VolumesNotMounted")
