"""What others gave is adopted: by the kubelet's own checkpoint, and by environments of containers."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from mews.harness.clock import run_virtual
from mews.kube.api.resources import PODS
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.devices.checkpoint import Checkpoint, to_text
from mews.kube.emulated.kubelet.devices.holdings import Holding
from mews.kube.runtimehook.port import HookedContainer, HookRequest
from mews.systems.koordinator import names
from mews.systems.koordinator.checkpoint import CheckpointFormatError, adopted, read_checkpoint
from mews.systems.koordinator.devices import CheckpointEntry
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.visible import IndexedGpu, visible_ids, visible_text
from tests.systems.koordinator.node_bench import NodeBench

DATA = os.environ.get("MEWS_DATA_DIR")
UID = "fa8983dc-bb76-4eeb-8dcc-556fbd44d7ce"
SOON = KoordletConfig(report_s=2.0)


def holding(uid: str, *ids: str, resource: str = names.NVIDIA, container: str = "main") -> Holding:
    return Holding(uid, container, resource, {-1: ids}, Allocation(envs={names.VISIBLE: ",".join(ids)}))


# The file


@pytest.mark.skipif(not DATA, reason="MEWS_DATA_DIR is not set: no measured data")
def test_a_real_kubelet_s_checkpoint_is_read() -> None:
    text = (Path(DATA or "") / "kubelet-1.34" / "kubelet_internal_checkpoint").read_text()
    found = read_checkpoint(text)
    assert [(entry.container, entry.resource, entry.ids) for entry in found] == [
        ("main", "example.com/res", (f"dev-{n}",)) for n in range(4)
    ]
    assert found[0].pod_uid == "cd336da0-dd4f-426b-b1dd-7ee1b2f239b6"
    assert found[0].response == "ChQKD1JFU1BPTlNFX05VTUJFUhIBMAodChRURVNUX1ZJU0lCTEVfREVWSUNFUxIFZGV2LTA="


def test_devices_by_numa_node_are_one_list_in_order_of_nodes() -> None:
    entry = {"PodUID": UID, "ContainerName": "c", "ResourceName": names.NVIDIA}
    entry["DeviceIDs"] = {"1": ["GPU-b"], "10": ["GPU-d"], "0": ["GPU-a"], "2": None}
    text = json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": {}}, "Checksum": 1})
    assert read_checkpoint(text) == (CheckpointEntry(UID, "c", names.NVIDIA, ("GPU-a", "GPU-b", "GPU-d")),)


def test_our_kubelet_s_own_file_is_read_and_an_empty_one_too() -> None:
    held = holding("u", "GPU-1", "GPU-2")
    found = read_checkpoint(to_text(Checkpoint((held,), {names.NVIDIA: ("GPU-1",)})))
    assert [(each.pod_uid, each.ids) for each in found] == [("u", ("GPU-1", "GPU-2"))]
    assert found[0].response
    assert read_checkpoint(to_text(Checkpoint((), {}))) == ()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"Data": {"PodDeviceEntries": [{}]}}', '{"Data": 1}'])
def test_a_file_that_is_none_is_one_line(text: str) -> None:
    with pytest.raises(CheckpointFormatError, match=r"must be a checkpoint of kubelet 1\.34"):
        read_checkpoint(text)


def pod(uid: str, *, scheduler: str = "default-scheduler", phase: str = "Running", note: bool = False) -> dict:
    annotations = {names.ALLOCATED: "{}"} if note else {}
    return {
        "metadata": {"uid": uid, "name": uid, "annotations": annotations},
        "spec": {"schedulerName": scheduler},
        "status": {"phase": phase},
    }


@pytest.mark.parametrize(
    ("pods", "resources", "kept"),
    [
        ([pod("u")], (names.NVIDIA,), True),
        ([pod("u", phase="Pending")], (names.NVIDIA,), True),
        ([pod("u", phase="Succeeded")], (names.NVIDIA,), False),
        ([pod("u", phase="Failed")], (names.NVIDIA,), False),
        ([], (names.NVIDIA,), False),
        ([pod("other")], (names.NVIDIA,), False),
        ([pod("u", scheduler=names.SCHEDULER)], (names.NVIDIA,), False),
        ([pod("u", note=True)], (names.NVIDIA,), False),
        ([pod("u")], ("example.com/gpu",), False),
        ([pod("u")], ("nvidia.com/*",), True),
    ],
)
def test_entries_of_live_pods_of_others_are_adopted(pods: list[dict], resources: tuple[str, ...], kept: bool) -> None:
    entry = CheckpointEntry("u", "main", names.NVIDIA, ("GPU-1",))
    assert adopted([entry], pods, scheduler=names.SCHEDULER, resources=resources) == ((entry,) if kept else ())


def test_the_checkpoint_stands_in_the_device_object_until_its_pod_ends() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs, ours = await bench.pod("theirs"), await bench.pod("ours", scheduler=names.SCHEDULER)
            held = [holding(each["metadata"]["uid"], f"GPU-four-{n}") for n, each in enumerate((theirs, ours))]
            bench.checkpoint.save(Checkpoint(tuple(held), {}))
            await asyncio.sleep(3)
            text = (await bench.device())["metadata"]["annotations"]["node.koordinator.sh/devices-checkpoints"]
            (entry,) = json.loads(text)
            assert {**entry, "allocResp": ""} == {
                "podUID": theirs["metadata"]["uid"],
                "containerName": "main",
                "resourceName": "nvidia.com/gpu",
                "deviceIDs": ["GPU-four-0"],
                "allocResp": "",
            }
            assert entry["allocResp"]
            await bench.phase(theirs, "Succeeded")  # the kubelet's file keeps the entry
            await asyncio.sleep(3)
            assert names.CHECKPOINTS not in ((await bench.device())["metadata"].get("annotations") or {})

    run_virtual(main)


def test_a_checkpoint_that_cannot_be_read_leaves_what_was_read_before() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs = await bench.pod("theirs")
            bench.checkpoint.save(Checkpoint((holding(theirs["metadata"]["uid"], "GPU-four-0"),), {}))
            await asyncio.sleep(3)
            bench.checkpoint.text = lambda: "half a fi"  # type: ignore[method-assign]
            await asyncio.sleep(5)
            assert [entry.ids for entry in (await bench.report()).held] == [("GPU-four-0",)]

    run_virtual(main)


def test_an_id_that_the_node_does_not_have_is_kept_as_in_the_seed_s_example() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs = await bench.pod("theirs")
            uuid = "GPU-36b27e44-b086-46f7-f2dc-73c36dc65991"
            bench.checkpoint.save(Checkpoint((holding(theirs["metadata"]["uid"], uuid),), {}))
            await asyncio.sleep(3)
            assert [entry.ids for entry in (await bench.report()).held] == [(uuid,)]

    run_virtual(main)


def test_an_older_koordlet_s_annotation_is_taken_away() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            old = {names.OLD_CHECKPOINTS: json.dumps([{"podUID": UID, "deviceIDs": ["GPU-four-0"]}])}
            await bench.kube.patch(names.DEVICES, "four", {"metadata": {"annotations": old}})
            await asyncio.sleep(3)
            assert (await bench.report()).held == ()

    run_virtual(main)


# Environments

NODE = tuple(IndexedGpu(n, n, f"GPU-{n}") for n in range(4))
SHIFTED = (IndexedGpu(0, 1, "GPU-1"), IndexedGpu(1, 2, "GPU-2"))


@pytest.mark.parametrize(
    ("text", "node", "ids"),
    [
        ("0,2", NODE, ("GPU-0", "GPU-2")),
        ("2, 0", NODE, ("GPU-2", "GPU-0")),
        ("0", SHIFTED, ("GPU-1",)),
        ("GPU-3", NODE, ("GPU-3",)),
        ("gpu-3", NODE, ("GPU-3",)),
        ("GPU-9", NODE, ("GPU-9",)),
        ("all", SHIFTED, ("GPU-1", "GPU-2")),
        ("none", NODE, ()),
        ("void", NODE, ()),
        ("", NODE, ()),
        ("7", NODE, ()),
        ("1,GPU-1", NODE, ("GPU-1",)),
        ("nonsense", NODE, ()),
    ],
)
def test_a_variable_is_read_as_the_container_runtime_reads_it(
    text: str, node: tuple[IndexedGpu, ...], ids: tuple[str, ...]
) -> None:
    assert visible_ids({names.VISIBLE: text}, node) == ids


def test_minors_are_written_where_they_are_indexes_else_uuids() -> None:
    assert visible_text(NODE[1:3], NODE) == "1,2"
    assert visible_text(SHIFTED[:1], SHIFTED) == "GPU-1"


@pytest.mark.parametrize(
    ("text", "minors"), [("1,2", [1, 2]), ("GPU-four-3", [3]), ("all", [0, 1, 2, 3]), ("none", None)]
)
def test_a_pod_without_annotation_is_adopted_from_its_environment(text: str, minors: list[int] | None) -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs = await bench.pod("theirs")
            bench.runs(theirs, NVIDIA_VISIBLE_DEVICES=text)
            await asyncio.sleep(3)
            report, device = await bench.report(), await bench.device()
            if minors is None:
                assert report.found == () and "status" not in device
                return
            uid = theirs["metadata"]["uid"]
            assert [(entry.pod_uid, entry.container) for entry in report.found] == [(uid, "main")]
            assert report.found[0].ids == tuple(f"GPU-four-{minor}" for minor in minors)
            entry = {"namespace": "default", "name": "theirs", "uuid": uid, "minors": minors}
            assert device["status"]["allocations"] == [{"type": "gpu", "entries": [entry]}]
            bench.environments.clear()
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()

    run_virtual(main)


def test_a_container_that_the_checkpoint_lists_is_adopted_once() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs = await bench.pod("theirs")
            bench.checkpoint.save(Checkpoint((holding(theirs["metadata"]["uid"], "GPU-four-0"),), {}))
            bench.runs(theirs, NVIDIA_VISIBLE_DEVICES="GPU-four-0")
            await asyncio.sleep(3)
            report = await bench.report()
            assert (len(report.held), report.found) == (1, ())

    run_virtual(main)


def test_a_pod_with_an_annotation_is_not_adopted_from_what_its_plugin_gave() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            entry = {"minor": 2, "id": "GPU-four-2", "resources": {names.CORE: "100"}}
            ours = await bench.pod("ours", allocated={"gpu": [entry]})
            bench.runs(ours, NVIDIA_VISIBLE_DEVICES="0")
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()
            (listed,) = (await bench.device())["status"]["allocations"]
            assert [each["minors"] for each in listed["entries"]] == [[2]]

    run_virtual(main)


def test_environments_can_be_left_alone() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=2.0, adopt_env=False))
        async with bench.running():
            await asyncio.sleep(2)
            bench.runs(await bench.pod("theirs"), NVIDIA_VISIBLE_DEVICES="all")
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()

    run_virtual(main)


def test_a_koordlet_that_starts_while_pods_run_has_their_devices_within_one_period() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=5.0))
        async with bench.running():
            await asyncio.sleep(1)
        entry = {"minor": 2, "id": "GPU-four-2", "resources": {names.CORE: "100"}}
        await bench.pod("noted", allocated={"gpu": [entry]}, scheduler=names.SCHEDULER)
        bare = await bench.pod("bare")
        bench.runs(bare, NVIDIA_VISIBLE_DEVICES="0")
        async with bench.running():
            await asyncio.sleep(5)
            (listed,) = (await bench.device())["status"]["allocations"]
            assert [(each["name"], each["minors"]) for each in listed["entries"]] == [("bare", [0]), ("noted", [2])]
            await bench.kube.delete(PODS, "bare", namespace="default")
            bench.environments.clear()
            await asyncio.sleep(6)
            (listed,) = (await bench.device())["status"]["allocations"]
            assert [each["name"] for each in listed["entries"]] == ["noted"]

    run_virtual(main)


@pytest.mark.parametrize(
    ("text", "minors"), [("1,2", [1, 2]), ("GPU-four-3", [3]), ("all", [0, 1, 2, 3]), ("none", None)]
)
def test_what_an_update_shows_is_adopted_and_stands_though_koordlet_and_runtime_start_anew(
    text: str, minors: list[int] | None
) -> None:
    """A pod of before: nobody asked about its containers, until one is updated. The runtime lists nothing."""

    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            old = await bench.pod("old")
            asked = HookedContainer(env={names.VISIBLE: text})
            request = HookRequest("default", "old", old["metadata"]["uid"], "main", asked=asked)
            assert (await bench.hooks.pre_update(request)).env == asked.env
            await asyncio.sleep(3)
            first = (await bench.report()).found
        wanted = () if minors is None else (tuple(f"GPU-four-{minor}" for minor in minors),)
        assert tuple(entry.ids for entry in first) == wanted
        for _ in range(2):
            async with bench.running():
                await asyncio.sleep(5)
                assert (await bench.report()).found == first
        async with bench.running():
            await bench.phase(old, "Succeeded")
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()

    run_virtual(main)


def test_what_was_found_goes_once_the_runtime_lists_its_containers_and_not_that_one() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            bench.runs(await bench.pod("old"), NVIDIA_VISIBLE_DEVICES="1")
            await asyncio.sleep(3)
            assert (await bench.report()).found
        bench.environments.clear()
        bench.runs(await bench.pod("other"), NVIDIA_VISIBLE_DEVICES="none")
        async with bench.running():
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()

    run_virtual(main)


def test_a_checkpoint_that_cannot_be_read_by_a_new_koordlet_is_as_the_one_before_has_read_it() -> None:
    async def main() -> None:
        bench = NodeBench("four", SOON)
        async with bench.running():
            await asyncio.sleep(2)
            theirs = await bench.pod("theirs")
            bench.checkpoint.save(Checkpoint((holding(theirs["metadata"]["uid"], "GPU-four-0"),), {}))
            await asyncio.sleep(3)
            held = (await bench.report()).held
            assert held
        bench.checkpoint.text = broken  # type: ignore[method-assign]
        async with bench.running():
            await asyncio.sleep(5)
            assert (await bench.report()).held == held

    def broken() -> str:
        raise OSError("the disk does not answer")

    run_virtual(main)
