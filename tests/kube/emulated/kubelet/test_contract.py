"""Clauses of the kubelet's contract that no other test shows, in virtual time on a whole node."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.objects import Object, condition_of
from mews.kube.api.resources import EVENTS, LEASES, NODES, PODS
from mews.kube.deviceplugin.port import PluginError
from tests.kube.emulated.kubelet.bench import NODE, Bench, pod, until
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, R, Stand, a_pod, container, eight
from tests.kube.emulated.kubelet.test_machine import GPU, Node

LOG = "Continue after failing to read checkpoint file. Device allocation info may NOT be up-to-date"


def on_a_node(case: Callable[[Node, asyncio.Task[None]], Awaitable[None]]) -> None:
    """A node whose plugin comes back after each start of the kubelet, until the case cancels it."""

    async def main() -> None:
        node = Node()
        plugin = asyncio.create_task(node.serve_plugin())
        await case(node, plugin)
        plugin.cancel()
        await node.machine.containerd.close()
        await asyncio.gather(plugin, return_exceptions=True)

    run_virtual(main)


async def got(node: Node, name: str) -> Object:
    return await node.kube.get(PODS, name, namespace="default")


async def restarted(node: Node, name: str, times: int) -> Object:
    async with asyncio.timeout(300):
        while (found := (await got(node, name))["status"])["containerStatuses"][0]["restartCount"] < times:  # noqa: ASYNC110
            await asyncio.sleep(1)
    return found


# 1. Registration


@pytest.mark.parametrize("version", ["", "v1alpha"])
def test_another_version_of_the_interface_is_refused_at_once_and_by_name(version: str) -> None:
    async def main() -> None:
        stand = await Stand().start()
        began = asyncio.get_running_loop().time()
        with pytest.raises(PluginError) as refused:
            await stand.manager.register("nobody.sock", R, version=version)
        assert asyncio.get_running_loop().time() == began
        assert (refused.value.code, refused.value.desc) == (
            "Unknown",
            f'requested API version "{version}" is not supported by kubelet. Supported version is ["v1beta1"]',
        )
        await stand.stop()

    run_virtual(main)


# 2. Node status


def test_without_its_checkpoint_a_restarted_kubelet_leaves_the_node_s_numbers_until_the_plugin_registers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def case(node: Node, plugin: asyncio.Task[None]) -> None:
        async with node.kubelet():
            await node.until_shown("4/4")
        plugin.cancel()
        node.machine.checkpoint.spoil("checkpoint is corrupted")  # type: ignore[attr-defined]
        with caplog.at_level(logging.INFO, "kubelet"):
            async with node.kubelet():
                for _ in range(60):
                    await asyncio.sleep(1)
                    assert await node.shown() == "4/4"
        assert LOG in caplog.text
        assert "checkpoint is corrupted" in caplog.text

    on_a_node(case)


# 3. Admission and calls


def test_nothing_is_remembered_of_a_pod_that_is_created_again() -> None:
    async def main() -> None:
        stand, plugin = await Stand().start(), FakePlugin(eight())
        await stand.plug(plugin)
        for uid in ("first", "second"):
            again = a_pod("a", container("main", 8))
            again["metadata"]["uid"] = uid
            await stand.run(again)
            await stand.manager.pre_start(uid, "main")
            del stand.pods["a"]
        every = " ".join(eight())
        assert plugin.summary() == ["P(8, [], 8)", f"A({every})", f"S({every})"] * 2
        await stand.stop()

    run_virtual(main)


def test_in_a_crash_loop_devices_are_given_once_and_prepared_before_each_start() -> None:
    async def case(node: Node, plugin: asyncio.Task[None]) -> None:
        async with node.kubelet():
            await node.until_shown("4/4")
            await node.run_pod("a", 2, ["sh", "-c", "sleep 1; exit 3"], policy="Always")
            held = (await restarted(node, "a", 3))["containerStatuses"][0]
            assert held["allocatedResources"] == {GPU: "2"}
            assert node.plugin.starts == [("1-000100", "1-000101")] * 4
        assert [event for event, _ in node.notes].count("allocated") == 1

    on_a_node(case)


# 5. A device changes under a running pod


def test_a_dead_plugin_changes_nothing_of_the_pod_and_its_status_names_no_health() -> None:
    async def case(node: Node, plugin: asyncio.Task[None]) -> None:
        async with node.kubelet() as process:
            await node.until_shown("4/4")
            before = await node.run_pod("a", 2, ["sleep", "9999"])
            plugin.cancel()
            await asyncio.gather(plugin, return_exceptions=True)
            assert process.devices is not None
            process.devices._ledger.gone(GPU)
            await node.until_shown("4/0")
            after = await got(node, "a")
            assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
            assert "allocatedResourcesStatus" not in after["status"]["containerStatuses"][0]

    on_a_node(case)


# 8. Kubelet restart


def test_a_container_that_restarts_before_its_plugin_is_back_starts_unprepared_on_its_old_devices() -> None:
    async def case(node: Node, plugin: asyncio.Task[None]) -> None:
        async with node.kubelet():
            await node.until_shown("4/4")
            await node.run_pod("a", 2, ["sh", "-c", "sleep 60; exit 3"], policy="Always")
        plugin.cancel()
        async with node.kubelet():
            again = await restarted(node, "a", 1)
            assert again["phase"] == "Running"
            assert node.plugin.starts == [("1-000100", "1-000101")]
            uid = (await got(node, "a"))["metadata"]["uid"]
            process = node.machine.containerd.sandbox(uid)
            assert process is not None
            assert process.instances["main"][-1].attempt == 1

    on_a_node(case)


def test_a_pod_deleted_while_its_kubelet_is_down_is_ended_by_the_next_one_and_frees_its_devices() -> None:
    async def case(node: Node, plugin: asyncio.Task[None]) -> None:
        async with node.kubelet():
            await node.until_shown("4/4")
            await node.run_pod("a", 4, ["sleep", "9999"])
        await node.kube.delete(PODS, "a", namespace="default")
        await asyncio.sleep(20)
        assert "deletionTimestamp" in (await got(node, "a"))["metadata"]
        async with node.kubelet():
            began = asyncio.get_running_loop().time()
            async with asyncio.timeout(60):
                while (await node.kube.list(PODS)).items:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert 1.0 < asyncio.get_running_loop().time() - began < 6.0
            await node.until_shown("4/4")
            given = await node.run_pod("b", 4, ["sleep", "9"])
            assert given["status"]["phase"] == "Running"

    on_a_node(case)


# 10. Pod life


def test_restarts_back_off_longer_and_longer_up_to_five_minutes() -> None:
    async def main() -> None:
        bench = Bench()
        starts: list[float] = []

        def started(uid: str) -> None:
            sandbox = bench.containerd.sandbox(uid)
            if sandbox and sandbox.instances.get("main", ())[-1:] and sandbox.instances["main"][-1].running:
                starts.append(asyncio.get_running_loop().time())

        bench.containerd.listen(started)
        async with bench.running():
            made = await bench.pod("a", ["sh", "-c", "sleep 1; exit 3"], policy="Always")
            await until(lambda: len(starts) >= 9, 3600)
            gaps = [later - earlier - 1 for earlier, later in pairwise(starts)]
            for gap, least in zip(gaps[1:], (10, 20, 40, 80, 160, 300, 300), strict=True):
                assert least <= gap <= least + 20
            assert made["metadata"]["name"] == "a"
        await bench.containerd.close()

    run_virtual(main)


def test_a_container_that_failed_tells_its_last_lines_where_it_wants_to() -> None:
    async def main() -> None:
        bench = Bench()
        async with bench.running():
            words = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo one; echo two; exit 4"]}
            await bench.pod("told", containers=[{**words, "terminationMessagePolicy": "FallbackToLogsOnError"}])
            await bench.pod("silent", containers=[words])
            told, silent = await bench.phase("told", "Failed"), await bench.phase("silent", "Failed")
            ends = [pod["status"]["containerStatuses"][0]["state"]["terminated"] for pod in (told, silent)]
            assert [end.get("message") for end in ends] == ["one\ntwo\n", None]
        await bench.containerd.close()

    run_virtual(main)


# 11. Node life

BIRTH = Path(os.environ.get("MEWS_DATA_DIR", "/nowhere")) / "kubelet-1.34" / "node-birth"
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "renewTime")
ABOUT_THE_MACHINE = {"CgroupV1"}


def measured(name: str, node: str) -> Iterator[Object]:
    for line in (BIRTH / f"{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        obj = record["object"]
        if (
            node in (obj["metadata"]["name"], obj.get("involvedObject", {}).get("name"))
            and record["type"] != "MODIFIED"
        ):
            yield obj


def plain(obj: Any, names: tuple[str, str]) -> Any:
    if isinstance(obj, dict):
        return {key: plain(value, names) for key, value in obj.items() if key not in VOLATILE}
    if isinstance(obj, list):
        return [plain(value, names) for value in obj]
    return obj.replace(*names) if isinstance(obj, str) else obj


@pytest.mark.skipif(not BIRTH.is_dir(), reason="MEWS_DATA_DIR is not set: no measured birth of a node here")
def test_a_node_is_born_with_the_conditions_the_lease_and_the_events_of_a_real_one() -> None:
    seen: list[Object] = []

    async def main() -> tuple[list[Object], Object]:
        node = Node()

        async def watch() -> None:
            async for event in node.kube.watch(NODES):
                seen.append(event.object)

        watching = asyncio.create_task(watch())
        async with node.kubelet():
            await asyncio.sleep(30)
            events = (await node.kube.list(EVENTS, namespace="default")).items
            lease = await node.kube.get(LEASES, NODE, namespace="kube-node-lease")
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        return [event for event in events if event["involvedObject"]["kind"] == "Node"], lease

    events, lease = run_virtual(main)
    names = ("kdm-worker", NODE)
    real = next(measured("nodes", "kdm-worker"))

    def verdicts(obj: Object) -> list[tuple[str, ...]]:
        return [tuple(c[key] for key in ("type", "status", "reason")) for c in obj["status"]["conditions"]]

    assert verdicts(seen[0]) == verdicts(real)
    assert set(real["status"]) - {"images", "runtimeHandlers", "features"} == set(seen[0]["status"])
    assert condition_of(seen[-1], "Ready") is not None
    assert (condition_of(seen[-1], "Ready") or {})["message"] == "kubelet is posting ready status"

    def told(found: list[Object]) -> set[tuple[str, str, str]]:
        mine = [event for event in found if event["reason"] not in ABOUT_THE_MACHINE]
        return {(event["type"], event["reason"], plain(event["message"], names)) for event in mine}

    theirs = [e for e in measured("events", "kdm-worker") if e.get("source", {}).get("component") == "kubelet"]
    assert told(events) == told(theirs)
    assert all(e["involvedObject"] == {"kind": "Node", "name": NODE, "uid": NODE} for e in events)
    real_lease = next(measured("leases", "kdm-worker"))
    assert plain(lease["spec"], names) == plain(real_lease["spec"], names)
    assert [o["kind"] for o in lease["metadata"]["ownerReferences"]] == ["Node"]


def test_what_reaches_a_pod_from_outside_is_its_own_env_first() -> None:
    async def main() -> None:
        bench = Bench()
        bench.devices.envs = {"SHARED": "plugin", "ONLY": "plugin"}
        async with bench.running():
            main = {"name": "main", "image": "busybox", "command": ["printenv", "SHARED", "ONLY"]}
            body = pod("a", containers=[{**main, "env": [{"name": "SHARED", "value": "pod"}]}])
            made = await bench.kube.create(PODS, body, namespace="default")
            await bench.kube.bind("default", "a", NODE)
            await bench.phase("a", "Succeeded")
            chunks = [chunk async for chunk in bench.containerd.log(made["metadata"]["uid"], "main")]
            assert b"".join(chunks) == b"pod\nplugin\n"
        await bench.containerd.close()

    run_virtual(main)
