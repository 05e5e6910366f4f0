"""The extender's HTTP answers, without a scheduler."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from mews.harness.cli import exit_code
from mews.harness.clock import run_virtual, virtual_clock
from mews.harness.ports.fence import Fence
from mews.harness.ports.services import LocalServices
from mews.kube.api.errors import ServerError
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.client.port import DeleteOptions
from mews.kube.clock import stream
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.systems.gpushare import names
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.extender import GpuShareExtender
from mews.systems.gpushare.inspect import details_text, inspected, main, parse, shares, summary_text
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import gpus_text


class Bench:
    def __init__(self) -> None:
        clock = virtual_clock()
        self.store = fresh_store(clock.now, stream(1, "store"))
        self.kube = InProcessKube(self.store, "system:admin")
        self.services = LocalServices(stream(1, "services"))
        self.clock = clock
        self.tasks: list[asyncio.Task[None]] = []

    async def node(self, name: str, *sizes: int) -> None:
        gpus = [SharedGpu(n, f"GPU-{name}{n}", size) for n, size in enumerate(sizes)]
        annotations = {names.NODE_GPUS: gpus_text(gpus)} if sizes else {}
        amounts = {names.MEMORY_RESOURCE: str(sum(sizes)), "cpu": "8", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts}
        await self.kube.create(NODES, {"metadata": {"name": name, "annotations": annotations}, "status": status})

    async def pod(self, name: str, memory: int) -> dict[str, Any]:
        limits = {"limits": {names.MEMORY_RESOURCE: str(memory)}}
        spec = {"containers": [{"name": "c", "image": "x", "resources": limits}]}
        return dict(await self.kube.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default"))

    async def replica(self, kube: Any = None) -> Fence:
        fence = Fence()
        context = Context(kube or self.kube, self.clock, stream(1, "x"), logging.getLogger("test"))
        made = GpuShareExtender(context, GpuShareConfig(), self.services.port("x", fence))
        self.tasks.append(asyncio.create_task(made.run()))
        await asyncio.sleep(1.0)
        return fence

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        reply = await self.services.call("x", method, f"/gpushare-scheduler{path}", json.dumps(body).encode())
        return reply.status, json.loads(reply.body)

    async def bind(self, pod: str, node: str) -> tuple[int, Any]:
        return await self.call("POST", "/bind", {"PodName": pod, "PodNamespace": "default", "PodUID": "", "Node": node})


def on(work: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        bench = Bench()
        try:
            await work(bench)
        finally:
            for task in bench.tasks:
                task.cancel()
            await asyncio.gather(*bench.tasks, return_exceptions=True)

    run_virtual(main)


def test_filter_takes_names_and_nodes_and_keys_of_either_case() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8, 8)
        await bench.node("plain")
        await bench.replica()
        pod = await bench.pod("p", 9)
        small = await bench.pod("q", 8)
        why = {
            "a": "Insufficient GPU Memory in one device",
            "plain": "The node plain is not for GPU share, need skip",
        }
        _, capital = await bench.call("POST", "/filter", {"Pod": pod, "Nodes": None, "NodeNames": ["a", "plain"]})
        assert capital == {"Nodes": None, "NodeNames": [], "FailedNodes": why, "Error": ""}
        _, lower = await bench.call("POST", "/filter", {"pod": small, "nodenames": ["a"]})
        assert lower == {"nodes": None, "nodeNames": ["a"], "failedNodes": {}, "error": ""}
        nodes = {"metadata": {}, "items": (await bench.kube.list(NODES)).items}
        _, whole = await bench.call("POST", "/filter", {"Pod": small, "Nodes": nodes})
        assert [node["metadata"]["name"] for node in whole["Nodes"]["items"]] == ["a"]
        assert whole["NodeNames"] is None
        status, wrong = await bench.call("POST", "/filter", ["nothing"])
        assert (status, wrong["Error"]) == (200, "the body is not a JSON object")

    on(work)


def test_bind_annotates_and_binds_in_one_write_and_a_failed_one_leaves_nothing() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8, 8)
        await bench.replica()
        await bench.pod("p", 5)
        assert await bench.bind("p", "a") == (200, {"Error": ""})
        pod = await bench.kube.get(PODS, "p", namespace="default")
        found = pod["metadata"]["annotations"]
        assert pod["spec"]["nodeName"] == "a"
        assert {key: found[key] for key in (names.INDEX, names.OLD_INDEX, names.POD_MEMORY, names.DEVICE_MEMORY)} == {
            names.INDEX: "0", names.OLD_INDEX: "0", names.POD_MEMORY: "5", names.DEVICE_MEMORY: "8",
        }  # fmt: skip
        assert found[names.ASSIGNED] == "false"
        assert int(found[names.ASSUME_TIME]) > 1e18
        assert await bench.bind("p", "a") == (200, {"Error": ""})  # asked again, as after a lost answer
        await bench.pod("large", 9)
        assert await bench.bind("large", "a") == (500, {"Error": "Insufficient GPU Memory in one device"})
        large = await bench.kube.get(PODS, "large", namespace="default")
        assert "annotations" not in large["metadata"] and "nodeName" not in large["spec"]

    on(work)


def test_a_bind_that_the_api_refuses_gives_the_memory_back() -> None:
    class Refusing:
        def __init__(self, kube: Any) -> None:
            self.kube = kube
            self.refusals = 1

        def __getattr__(self, name: str) -> Any:
            return getattr(self.kube, name)

        async def bind(self, *arguments: Any, **options: Any) -> None:
            if self.refusals:
                self.refusals -= 1
                raise ServerError("no")
            await self.kube.bind(*arguments, **options)

    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        await bench.replica(Refusing(bench.kube))
        await bench.pod("p", 8)
        await bench.pod("q", 8)
        status, answer = await bench.bind("p", "a")
        assert (status, answer["Error"]) == (500, "bind of default/p to a: no")
        assert await bench.bind("q", "a") == (200, {"Error": ""})

    on(work)


@pytest.mark.parametrize("seed", range(12))
def test_two_replicas_that_bind_at_the_same_time_never_give_a_gpu_twice(seed: int) -> None:
    class Slow:
        """Each call takes its time, so that the two replicas' calls fall into one another."""

        def __init__(self, kube: Any, name: str) -> None:
            self.kube, self.rng = kube, stream(seed, name)

        def __getattr__(self, name: str) -> Any:
            method = getattr(self.kube, name)
            if name == "watch":
                return method

            async def late(*arguments: Any, **options: Any) -> Any:
                await asyncio.sleep(self.rng.random())
                answer = await method(*arguments, **options)
                await asyncio.sleep(self.rng.random())
                return answer

            return late

    async def work(bench: Bench) -> None:
        await bench.node("a", 8, 8)
        for name in ("one", "two"):
            await bench.replica(Slow(bench.kube, name))
        await asyncio.sleep(10.0)
        for number in range(6):
            await bench.pod(f"p{number}", 5)
        answers = await asyncio.gather(*(bench.bind(f"p{number}", "a") for number in range(6)))
        assert sorted(status for status, _ in answers) == [200, 200, 500, 500, 500, 500]
        pods = (await bench.kube.list(PODS)).items
        placed = [pod["metadata"]["annotations"][names.INDEX] for pod in pods if pod["spec"].get("nodeName")]
        assert sorted(placed) == ["0", "1"]

    on(work)


def test_state_is_rebuilt_from_annotations_where_there_is_no_ledger() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        fence = await bench.replica()
        await bench.pod("p", 5)
        await bench.bind("p", "a")
        fence.cut()
        await bench.kube.delete(CONFIGMAPS, f"{names.LEDGER_PREFIX}a", namespace="kube-system")
        await bench.replica()
        await bench.pod("q", 5)
        assert (await bench.bind("q", "a"))[0] == 500

    on(work)


def test_inspect_shows_who_has_what_and_knows_no_unknown_node() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 10, 20)
        await bench.replica()
        await bench.pod("p", 18)
        await bench.bind("p", "a")
        await asyncio.sleep(1.0)
        pods = [{"name": "p", "namespace": "default", "usedGPU": 18}]
        devices = [
            {"id": 0, "totalGPU": 10, "usedGPU": 0, "pods": []},
            {"id": 1, "totalGPU": 20, "usedGPU": 18, "pods": pods},
        ]
        expected = {"nodes": [{"name": "a", "totalGPU": 30, "usedGPU": 18, "devs": devices}]}
        assert await bench.call("GET", "/inspect") == (200, expected)
        assert await bench.call("GET", "/inspect/a") == (200, expected)
        assert (await bench.call("GET", "/inspect/nobody"))[0] == 404
        assert (await bench.call("GET", "/version"))[0] == 200
        reply = await bench.services.call("x", "GET", "/metrics")
        assert b'gpushare_binds_total{result="bound"} 1' in reply.body
        nodes = shares((await bench.kube.list(NODES)).items, (await bench.kube.list(PODS)).items)
        table = summary_text(nodes).splitlines()
        assert table[0].split() == [
            "NAME",
            "IPADDRESS",
            "GPU0(Allocated/Total)",
            "GPU1(Allocated/Total)",
            "GPU",
            "Memory(GiB)",
        ]
        assert table[1].split() == ["a", "unknown", "0/10", "18/20", "18/30"]
        assert table[-2:] == ["Allocated/Total GPU Memory In Cluster:", "18/30 (60%)"]
        assert "p     default    0                18" in details_text(nodes)
        with pytest.raises(LookupError, match='nodes "nobody" not found'):
            await inspected(bench.kube, parse(["nobody"]))

    on(work)


def test_pods_of_a_drained_node_are_counted_no_more() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        await bench.replica()
        await bench.pod("p", 5)
        await bench.bind("p", "a")
        await bench.kube.evict("default", "p", options=DeleteOptions(grace_period_s=0))
        await asyncio.sleep(1.0)
        _, found = await bench.call("GET", "/inspect/a")
        assert [device["usedGPU"] for device in found["nodes"][0]["devs"]] == [0]
        await bench.pod("q", 8)
        assert await bench.bind("q", "a") == (200, {"Error": ""})

    on(work)


@pytest.mark.parametrize("words", [["-x"], ["a", "b"], ["--name"]])
def test_arguments_that_are_none_are_refused_in_one_line(words: list[str]) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        parse(words)


@pytest.mark.parametrize("text", [None, "{", "clusters: []\n"], ids=["none", "not YAML", "of nothing"])
def test_a_kubeconfig_that_cannot_be_used_is_one_line_for_mews_and_for_kubectl(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    words = ["--kubeconfig", str(file)]
    assert exit_code(["inspect", "gpushare", *words]) == 2
    monkeypatch.setattr("sys.argv", ["kubectl-inspect_gpushare", *words])
    assert main() == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": kubeconfig ")[0] for line in lines] == [
        "mews inspect gpushare",
        "kubectl inspect-gpushare",
    ]
    assert all(str(file) in line for line in lines)
