"""What koordlet's runtime hook makes of containers: environment, devices and mounts follow the pod's annotation."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.deviceplugin.port import DeviceNode, Mount
from mews.kube.runtimehook.port import HookedContainer, HookError, HookRequest
from mews.kube.system.facility import ContainerExtras
from mews.systems.koordinator import names
from mews.systems.koordinator.hook import HookedNode, answer
from mews.systems.koordinator.host_devices import HostDevice
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.visible import IndexedGpu
from tests.systems.koordinator.node_bench import NodeBench

NODE = tuple(IndexedGpu(n, n, f"GPU-{n}") for n in range(4))
SHIFTED = (IndexedGpu(0, 1, "GPU-1"), IndexedGpu(1, 2, "GPU-2"))
VISIBLE = names.VISIBLE


def asked(
    allocated: Any, container: HookedContainer | None = None, *, node: HookedNode | None = None, **labels: str
) -> HookedContainer:
    note = allocated if isinstance(allocated, str) else json.dumps(allocated)
    request = HookRequest(
        "default", "a", "uid", "main",
        pod_annotations={names.ALLOCATED: note},
        pod_labels={names.DOMAIN + key.replace("_", "-"): value for key, value in labels.items()},
        asked=container or HookedContainer(),
    )  # fmt: skip
    return answer(request, node or HookedNode(NODE))


def gpu(minor: int, id_: str = "", **resources: Any) -> dict[str, Any]:
    found = {"minor": minor, "resources": {f"koordinator.sh/gpu-{k}": str(v) for k, v in resources.items()}}
    return {**found, "id": id_} if id_ else found


@pytest.mark.parametrize(
    ("allocated", "node", "text"),
    [
        ({"gpu": [gpu(0)]}, NODE, "0"),
        ({"gpu": [gpu(1, "GPU-1"), gpu(3, "GPU-3")]}, NODE, "1,3"),
        ({"gpu": [gpu(1, "GPU-1")]}, SHIFTED, "GPU-1"),
        ({"gpu": [gpu(2)]}, SHIFTED, "GPU-2"),
        ({"gpu": [gpu(0, "GPU-2")]}, NODE, "2"),  # the driver numbered it anew: the UUID is what was meant
        ({"gpu": [gpu(5, "GPU-9")]}, SHIFTED, "GPU-9"),
        ({"gpu": [{"resouurces": {"kubernetes.io/gpu-core": 100}}]}, NODE, "0"),  # the seed's tags, minor left out
    ],
)
def test_the_variable_names_the_gpus_of_the_annotation(allocated: Any, node: tuple[IndexedGpu, ...], text: str) -> None:
    assert asked(allocated, node=HookedNode(node)).env[VISIBLE] == text


def test_the_annotation_covers_the_device_plugin_s_variable_and_the_rest_stays() -> None:
    container = HookedContainer(env={VISIBLE: "GPU-0", "OTHER": "1"}, args=("train",))
    found = asked({"gpu": [gpu(2, "GPU-2")]}, container)
    assert (dict(found.env), found.args) == ({VISIBLE: "2", "OTHER": "1"}, ("train",))


def test_a_pod_without_annotation_is_made_as_it_was_asked_for() -> None:
    container = HookedContainer(env={VISIBLE: "all"}, args=("x",))
    assert answer(HookRequest("default", "a", "uid", "main", asked=container), HookedNode(NODE)) == container


def test_device_nodes_mounts_and_cdi_names_of_a_plugin_follow() -> None:
    container = HookedContainer(
        env={VISIBLE: "/var/run/nvidia-container-devices"},
        mounts=(Mount("/var/run/nvidia-container-devices/GPU-0", "/dev/null"), Mount("/data", "/data")),
        devices=(DeviceNode("/dev/nvidia0", "/dev/nvidia0"), DeviceNode("/dev/nvidiactl", "/dev/nvidiactl")),
        annotations={"cdi.k8s.io/plugin": "nvidia.com/gpu=0,example.com/nic=1", "other": "nvidia.com/gpu=0"},
        cdi_devices=("nvidia.com/gpu=GPU-0", "example.com/nic=1"),
    )
    found = asked({"gpu": [gpu(2, "GPU-2"), gpu(3, "GPU-3")]}, container)
    assert {mount.container_path for mount in found.mounts} == {
        "/data",
        "/var/run/nvidia-container-devices/GPU-2",
        "/var/run/nvidia-container-devices/GPU-3",
    }
    assert [device.host_path for device in found.devices] == ["/dev/nvidiactl", "/dev/nvidia2", "/dev/nvidia3"]
    assert found.cdi_devices == ("example.com/nic=1", "nvidia.com/gpu=GPU-2", "nvidia.com/gpu=GPU-3")
    assert found.annotations == {
        "cdi.k8s.io/plugin": "example.com/nic=1,nvidia.com/gpu=GPU-2,nvidia.com/gpu=GPU-3",
        "other": "nvidia.com/gpu=0",
    }


def test_a_container_gets_what_every_container_with_a_gpu_needs() -> None:
    extras = ContainerExtras({"LD_LIBRARY_PATH": "/lib"}, (Mount("/lib", "/host/lib"),))
    found = asked({"gpu": [gpu(0)]}, node=HookedNode(NODE, extras=extras))
    assert (found.env["LD_LIBRARY_PATH"], found.mounts) == ("/lib", extras.mounts)


def test_an_adapter_s_device_nodes_come_with_it() -> None:
    one = HostDevice("0000:01:00.0", nodes=("/dev/infiniband/umad3", "/dev/infiniband/uverbs3"))
    other = HostDevice("0000:02:00.0", nodes=("/dev/infiniband/uverbs0",))
    rdma = {"minor": 1, "resources": {"koordinator.sh/rdma": "100"}}
    found = asked({"rdma": [rdma]}, node=HookedNode(NODE, {("rdma", 1): one, ("rdma", 0): other}))
    assert [device.host_path for device in found.devices] == [
        "/dev/infiniband/umad3",
        "/dev/infiniband/uverbs3",
        "/dev/infiniband/rdma_cm",
    ]
    assert VISIBLE not in found.env


def test_device_nodes_that_are_files_of_an_emulated_host_are_mounted() -> None:
    one = HostDevice("0000:01:00.0", nodes=("/dev/infiniband/uverbs3",))
    node = HookedNode(NODE, {("rdma", 1): one}, device_folder="/hosts/this")
    found = asked({"rdma": [{"minor": 1, "resources": {"koordinator.sh/rdma": "100"}}]}, node=node)
    assert found.devices == ()
    assert found.mounts == (
        Mount("/dev/infiniband/uverbs3", "/hosts/this/dev/infiniband/uverbs3"),
        Mount("/dev/infiniband/rdma_cm", "/hosts/this/dev/infiniband/rdma_cm"),
    )


HALF = gpu(1, "GPU-1", core=50, memory="4Gi", **{"memory-ratio": 50})


def test_hami_core_is_told_its_share_in_bytes_and_hundredths() -> None:
    env = asked({"gpu": [HALF]}, gpu_isolation_provider="HAMi-core").env
    assert (env["CUDA_DEVICE_MEMORY_LIMIT"], env["CUDA_DEVICE_SM_LIMIT"]) == (str(4 * 1024**3), "50")


@pytest.mark.parametrize(
    ("allocated", "labels"),
    [
        (HALF, {}),
        (HALF, {"gpu_isolation_provider": "other"}),
        (gpu(1, core=100, memory="8Gi", **{"memory-ratio": 100}), {"gpu_isolation_provider": "HAMi-core"}),
    ],
)
def test_no_limit_without_the_label_or_of_a_whole_gpu(allocated: Any, labels: dict[str, str]) -> None:
    assert not [name for name in asked({"gpu": [allocated]}, **labels).env if name.startswith("CUDA")]


@pytest.mark.parametrize(
    ("note", "text"),
    [
        ("{", "must be JSON"),
        ("[]", "must be {type:"),
        ('{"gpu": [{"minor": "x"}]}', r"gpu\[0\].minor: 'x'"),
        ('{"gpu": [{"minor": 7}]}', "gpu minor 7: this node has 0, 1, 2, 3"),
    ],
)
def test_an_annotation_that_cannot_be_followed_is_an_error_of_one_line(note: str, text: str) -> None:
    with pytest.raises(HookError, match=text):
        asked(note)


# Alive


def test_koordlet_answers_once_it_has_looked_and_nobody_does_while_it_is_dead() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            pod = await bench.pod("a", allocated={"gpu": [gpu(2, "GPU-four-2")]})
            assert (await bench.ask(pod, OTHER="1")).env == {"OTHER": "1", VISIBLE: "2"}
        with pytest.raises(HookError, match="Unavailable"):
            await bench.ask(pod)
        async with bench.running():
            await asyncio.sleep(2)
            assert (await bench.ask(pod)).env == {VISIBLE: "2"}

    run_virtual(main)


def test_after_a_hot_plug_numbers_that_are_no_indexes_are_uuids() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=2.0))
        async with bench.running():
            await asyncio.sleep(2)
            bench.hosts.release("four", "nvml/koordlet")
            await bench.operate(do="remove", bdf=bench.bdf("GPU-four-1"))
            await asyncio.sleep(3)
            pod = await bench.pod("a", allocated={"gpu": [gpu(2, "GPU-four-2")]})
            assert (await bench.ask(pod)).env[VISIBLE] == "GPU-four-2"

    run_virtual(main)


def test_a_virtual_function_s_device_nodes_come_in_place_of_its_adapter_s() -> None:
    async def main() -> None:
        bench = NodeBench("rdma-fpga", KoordletConfig(report_s=2.0))
        async with bench.running():
            await asyncio.sleep(2)
            path = f"sys/bus/pci/devices/{bench.bdf('NIC-rdma-fpga-0')}/sriov_numvfs"
            await bench.operate(do="write", path=path, text="2")
            await asyncio.sleep(2)
            rdma = {"minor": 0, "resources": {"koordinator.sh/rdma": "50"}, "extension": {"vfs": [{"minor": 1}]}}
            one = await bench.pod("a", allocated={"rdma": [rdma]})
            whole = await bench.pod("b", allocated={"rdma": [{**rdma, "extension": {}}]})
            found = [[device.host_path for device in (await bench.ask(pod)).devices] for pod in (one, whole)]
            assert found == [
                ["/dev/infiniband/umad2", "/dev/infiniband/uverbs2", "/dev/infiniband/rdma_cm"],
                ["/dev/infiniband/umad0", "/dev/infiniband/uverbs0", "/dev/infiniband/rdma_cm"],
            ]

    run_virtual(main)


def test_a_container_that_a_hook_was_asked_about_is_adopted_though_the_runtime_lists_none() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=2.0))
        async with bench.running():
            await asyncio.sleep(2)
            pod = await bench.pod("bare")
            assert (await bench.ask(pod, NVIDIA_VISIBLE_DEVICES="1")).env == {VISIBLE: "1"}
            await asyncio.sleep(3)
            assert [entry.ids for entry in (await bench.report()).found] == [("GPU-four-1",)]
            await bench.phase(pod, "Failed")
            await asyncio.sleep(3)
            assert (await bench.report()).found == ()

    run_virtual(main)


def test_an_update_is_answered_like_a_creation() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            note = json.dumps({"gpu": [gpu(3, "GPU-four-3")]})
            request = HookRequest(
                "default", "a", "uid", "main",
                pod_annotations={names.ALLOCATED: note},
                asked=HookedContainer(env={VISIBLE: "0"}),
            )  # fmt: skip
            assert (await bench.hooks.pre_update(request)).env == {VISIBLE: "3"}

    run_virtual(main)
