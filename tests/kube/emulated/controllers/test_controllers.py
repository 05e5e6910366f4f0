"""A node whose kubelet falls silent and comes back, evictions, garbage; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import condition_of, seconds
from mews.kube.api.resources import CONFIGMAPS, EVENTS, LEASES, NAMESPACES, NODES, PODS
from mews.kube.clock import stream
from mews.kube.component import Context, Runnable
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.namespaces import NamespaceDeletion
from mews.kube.emulated.controllers.taints import bears_s
from tests.kube.emulated.kubelet.bench import NODE, Bench, until


@asynccontextmanager
async def running(component: Runnable) -> AsyncIterator[None]:
    task = asyncio.create_task(component.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def context(bench: Bench) -> Context:
    return Context(bench.kube, bench.clock, stream(bench.seed, "controllers"), logging.getLogger("controllers"))


def controllers(bench: Bench) -> ControllerManager:
    return ControllerManager(context(bench), bench.pace)


async def watch_node(bench: Bench, seen: list[tuple[float, str, list[str]]]) -> None:
    async for event in bench.kube.watch(NODES):
        node, now_s = event.object, asyncio.get_running_loop().time()
        taints = [f"{taint['key'].split('/')[1]}:{taint['effect']}" for taint in node["spec"].get("taints", ())]
        seen.append((now_s, condition_of(node, "Ready")["status"], taints))


def test_a_new_node_loses_its_taint_right_after_it_is_ready() -> None:
    async def main() -> None:
        bench, seen = Bench(), []
        async with running(controllers(bench)):
            watching = asyncio.create_task(watch_node(bench, seen))
            async with bench.running():
                await until(lambda: bool(seen) and not seen[-1][2], 10)
            watching.cancel()
        changes = [(ready, taints) for _, ready, taints in seen]
        assert changes == [("False", ["not-ready:NoSchedule"]), ("True", ["not-ready:NoSchedule"]), ("True", [])]
        assert 0.25 <= seen[1][0] - seen[0][0] <= 0.29
        assert 0.008 <= seen[2][0] - seen[1][0] <= 0.076
        events = (await bench.kube.list(EVENTS, namespace="default")).items
        text = f"Node {NODE} event: Registered Node {NODE} in Controller"
        assert text in [event["message"] for event in events if event["source"]["component"] == "node-controller"]

    run_virtual(main)


@pytest.mark.parametrize("seed", range(3))
def test_a_silent_kubelet_is_unknown_50_to_55_s_after_its_last_renewal_and_taken_back_at_once(seed: int) -> None:
    async def main() -> None:
        bench, seen, loop = Bench(seed), [], asyncio.get_running_loop()
        async with running(controllers(bench)):
            async with bench.running():
                await asyncio.sleep(40 + seed)
                await bench.pod("a", ["sleep", "3600"])
                await bench.phase("a", "Running")
            lease = await bench.kube.get(LEASES, NODE, namespace="kube-node-lease")
            watching = asyncio.create_task(watch_node(bench, seen))
            await until(lambda: bool(seen) and len(seen[-1][2]) == 2, 100)
            silent_s = seen[-3][0] + bench.clock.now() - loop.time() - seconds(lease["spec"]["renewTime"])
            assert 50.0 <= silent_s <= 55.2
            assert [(ready, taints) for _, ready, taints in seen[-3:]] == [
                ("Unknown", []),
                ("Unknown", ["unreachable:NoSchedule"]),
                ("Unknown", ["unreachable:NoSchedule", "unreachable:NoExecute"]),
            ]
            pod = await bench.until("a", lambda pod: condition_of(pod, "Ready")["status"] == "False", 1)
            assert pod["status"]["phase"] == "Running"
            assert "reason" not in condition_of(pod, "Ready")
            assert condition_of(pod, "ContainersReady")["status"] == "True"
            assert ("Warning", "NodeNotReady", "Node is not ready", 1) in await bench.events("a")
            before = len(seen)
            async with bench.running():
                back_s = loop.time()
                await until(lambda: not seen[-1][2], 20)
                assert [(ready, taints) for _, ready, taints in seen[before:]] == [
                    ("True", ["unreachable:NoSchedule", "unreachable:NoExecute"]),
                    ("True", ["unreachable:NoExecute"]),
                    ("True", []),
                ]
                assert 0.4 <= seen[before][0] - back_s <= 0.9
                assert seen[-1][0] - seen[before][0] <= 5.1
                await bench.until("a", lambda pod: condition_of(pod, "Ready")["status"] == "True", 3)
            watching.cancel()
        await bench.containerd.close()

    run_virtual(main)


def test_a_pod_is_evicted_when_its_toleration_ends_and_stays_until_the_kubelet_is_back() -> None:
    async def main() -> None:
        bench, loop = Bench(), asyncio.get_running_loop()
        tolerations = [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
            | {"tolerationSeconds": 20}
        ]
        async with running(controllers(bench)):
            async with bench.running():
                await asyncio.sleep(20)
                annotations = {"mews.dev/ignores-term": "true"}
                await bench.pod("a", ["sleep", "9999"], tolerations=tolerations, annotations=annotations, grace_s=1)
                await bench.phase("a", "Running")
            while True:
                node = await bench.kube.get(NODES, NODE)
                if any(taint["effect"] == "NoExecute" for taint in node["spec"].get("taints", ())):
                    break
                await asyncio.sleep(0.01)
            tainted_s = loop.time()
            pod = await bench.until("a", lambda pod: "deletionTimestamp" in pod["metadata"], 60)
            assert 20.0 <= loop.time() - tainted_s <= 20.1
            assert condition_of(pod, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
            assert ("Normal", "TaintManagerEviction", "Marking for deletion Pod default/a", 1) in await bench.events(
                "a"
            )
            await asyncio.sleep(600)
            assert (await bench.get("a"))["status"]["phase"] == "Running"
            async with bench.running():
                failed = await bench.phase("a", "Failed", 7)
                assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
                assert failed["status"]["conditions"][0]["type"] == "DisruptionTarget"
                await asyncio.sleep(2)
                with pytest.raises(NotFoundError):
                    await bench.get("a")
        await bench.containerd.close()

    run_virtual(main)


def test_how_long_a_pod_bears_a_taint() -> None:
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    exists: dict[str, Any] = {"key": taint["key"], "operator": "Exists", "effect": "NoExecute"}
    assert bears_s({"spec": {}}, [taint]) == 0
    assert bears_s({"spec": {"tolerations": [{**exists, "tolerationSeconds": 300}]}}, [taint]) == 300
    assert bears_s({"spec": {"tolerations": [exists]}}, [taint]) == float("inf")
    assert bears_s({"spec": {"tolerations": [exists]}}, [taint, {"key": "mine", "effect": "NoExecute"}]) == 0


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    async def main() -> None:
        bench, seen = Bench(), []
        async with running(controllers(bench)), bench.running():
            await asyncio.sleep(5)
            watching = asyncio.create_task(watch_node(bench, seen))
            await bench.kube.patch(NODES, NODE, {"spec": {"unschedulable": True}})
            await until(lambda: bool(seen) and seen[-1][2] == ["unschedulable:NoSchedule"], 1)
            await bench.kube.patch(NODES, NODE, {"spec": {"unschedulable": None}})
            await until(lambda: not seen[-1][2], 1)
            watching.cancel()

    run_virtual(main)


def test_what_a_deleted_owner_leaves_is_collected_and_nothing_else() -> None:
    async def main() -> None:
        bench = Bench()
        async with running(controllers(bench)), bench.running():
            await asyncio.sleep(5)
            owner = await bench.pod("owner", ["sleep", "10000"])
            for name, uid in (("owned", owner["metadata"]["uid"]), ("stale", "another-uid"), ("free", "")):
                reference = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": uid}
                metadata = {"name": name, "namespace": "default", "ownerReferences": [reference] if uid else []}
                await bench.kube.create(CONFIGMAPS, {"metadata": metadata}, namespace="default")

            async def names() -> list[str]:
                found = (await bench.kube.list(CONFIGMAPS, namespace="default")).items
                return [obj["metadata"]["name"] for obj in found if not obj["metadata"]["name"].startswith("kube-")]

            await asyncio.sleep(25)
            assert await names() == ["free", "owned"]
            await bench.kube.delete(PODS, "owner", namespace="default")
            await asyncio.sleep(60)
            assert await names() == ["free"]
            assert (await bench.kube.get(LEASES, NODE, namespace="kube-node-lease"))["spec"]["holderIdentity"] == NODE
        await bench.containerd.close()

    run_virtual(main)


def test_pods_and_the_lease_of_a_deleted_node_are_collected() -> None:
    async def main() -> None:
        bench = Bench()
        async with running(controllers(bench)):
            async with bench.running():
                await asyncio.sleep(5)
                await bench.pod("a", ["sleep", "10000"])
                await bench.phase("a", "Running")
            await bench.kube.delete(NODES, NODE)
            await asyncio.sleep(5)
            with pytest.raises(NotFoundError):
                await bench.kube.get(LEASES, NODE, namespace="kube-node-lease")
            await asyncio.sleep(20)
            assert await bench.get("a")
            await asyncio.sleep(40)
            with pytest.raises(NotFoundError):
                await bench.get("a")
        await bench.containerd.close()

    run_virtual(main)


def test_a_deleted_namespace_is_emptied_and_goes() -> None:
    async def main() -> None:
        bench = Bench()
        async with running(NamespaceDeletion(context(bench), bench.pace)):
            await bench.kube.create(NAMESPACES, {"metadata": {"name": "team"}})
            await bench.kube.create(CONFIGMAPS, {"metadata": {"name": "a"}}, namespace="team")
            await bench.kube.delete(NAMESPACES, "team")
            await asyncio.sleep(5)
            with pytest.raises(NotFoundError):
                await bench.kube.get(NAMESPACES, "team")

    run_virtual(main)
