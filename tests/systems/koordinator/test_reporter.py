"""What koordlet reports: the Device object, the node's resources and labels, after hot-plug and restarts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.emulator.host.joints import host_report
from mews.harness.clock import run_virtual
from mews.kube.api.errors import NotFoundError
from mews.kube.api.quantities import whole
from mews.kube.api.resources import NODES
from mews.systems.koordinator import names
from mews.systems.koordinator.device_kinds import DeviceKind, kinds_of
from mews.systems.koordinator.devices import DevicePlace, NodeDevice
from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.reporter import node_amounts, node_resources
from tests.systems.koordinator.node_bench import NodeBench

GIB = 1024**3


def gpus(*health: bool, memory: int = 8 * GIB) -> list[NodeDevice]:
    whole_gpu = {names.CORE: 100, names.MEMORY: memory, names.RATIO: 100}
    return [NodeDevice("gpu", n, f"GPU-{n}", healthy, whole_gpu) for n, healthy in enumerate(health)]


def test_the_seed_s_node_of_four_gpus_has_its_numbers() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(seed_names=True))
        async with bench.running():
            await asyncio.sleep(2)
            for part in ("capacity", "allocatable"):
                assert await bench.resources(part) == {
                    "koordinator.sh/gpu": "400",
                    "koordinator.sh/gpu.shared": "400",
                    "koordinator.sh/gpu-core": "400",
                    "koordinator.sh/gpu-memory": "32Gi",
                    "koordinator.sh/gpu-memory-ratio": "400",
                    "kubernetes.io/gpu": "400",
                    "kubernetes.io/gpu-core": "400",
                    "kubernetes.io/gpu-memory": "32Gi",
                    "kubernetes.io/gpu-memory-ratio": "400",
                }
            device = await bench.device()
            first = device["spec"]["devices"][0]
            assert first == {
                "type": "gpu",
                "id": "GPU-four-0",
                "minor": 0,
                "health": True,
                "resources": {
                    "koordinator.sh/gpu-core": "100",
                    "koordinator.sh/gpu-memory": "8Gi",
                    "koordinator.sh/gpu-memory-ratio": "100",
                },
                "topology": {"socketID": -1, "nodeID": 0, "pcieID": "0000:01:00.0", "busID": "0000:03:00.0"},
            }
            node = await bench.kube.get(NODES, "four")
            assert device["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

    run_virtual(main)


def test_names_of_the_seed_are_not_published_unasked_and_nvidia_s_never() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            found = await bench.resources()
            assert set(found) == {names.WHOLE, names.CORE, names.MEMORY, names.RATIO, names.SHARED}

    run_virtual(main)


def test_labels_name_vendor_model_driver_and_product() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            driver = bench.hosts.hosts.host("four").spec.driver
            wanted = {
                "node.koordinator.sh/gpu-vendor": "nvidia",
                "node.koordinator.sh/gpu-model": "Tesla-V100-PCIE-16GB",
                "node.koordinator.sh/gpu-driver-version": driver,
                "nvidia.com/gpu.product": "Tesla-V100-PCIE-16GB",
            }
            labels = (await bench.kube.get(NODES, "four"))["metadata"]["labels"]
            assert {key: labels[key] for key in wanted} == wanted
            assert (await bench.device())["metadata"]["labels"] == wanted

    run_virtual(main)


def test_an_adapter_and_an_fpga_are_a_hundred_each() -> None:
    async def main() -> None:
        bench = NodeBench("rdma-fpga")
        async with bench.running():
            await asyncio.sleep(2)
            assert await bench.resources() == {"koordinator.sh/rdma": "100", "koordinator.sh/fpga": "100"}
            found = {device.type: device for device in (await bench.report()).devices}
            assert set(found) == {"rdma", "fpga"}
            assert (found["rdma"].id, found["rdma"].minor) == ("NIC-rdma-fpga-0", 0)
            assert found["rdma"].place == DevicePlace(-1, 0, "pci0000:00", "0000:01:00.0")
            assert found["fpga"].resources == {"koordinator.sh/fpga": 100}

    run_virtual(main)


def test_virtual_functions_stand_below_their_adapter_and_are_no_devices() -> None:
    async def main() -> None:
        bench = NodeBench("rdma-fpga")
        async with bench.running():
            await asyncio.sleep(2)
            path = f"sys/bus/pci/devices/{bench.bdf('NIC-rdma-fpga-0')}/sriov_numvfs"
            await bench.operate(do="write", path=path, text="3")
            await asyncio.sleep(2)
            rdma = (await bench.report()).of_type("rdma")
            assert len(rdma) == 1
            assert [(each.minor, each.bus) for each in rdma[0].functions] == [
                (0, "0000:01:00.1"),
                (1, "0000:01:00.2"),
                (2, "0000:01:00.3"),
            ]
            assert (await bench.resources())["koordinator.sh/rdma"] == "100"

    run_virtual(main)


@pytest.mark.parametrize("host", ["four", "cube-mesh", "nvswitch"])
def test_links_are_the_host_s_own_pair_by_pair(host: str) -> None:
    async def main() -> None:
        bench = NodeBench(host)
        async with bench.running():
            await asyncio.sleep(2)
            said = host_report(bench.hosts.hosts.host(host))
            found = await bench.report()
            ids = {device.minor: device.id for device in found.of_type("gpu")}
            pairs = {frozenset(ids[minor] for minor in link.minors): link.bandwidth for link in found.links}
            bandwidth: Any = said["bandwidth_gb_s"]
            for one, others in bandwidth.items():
                for other, gb_s in others.items():
                    assert pairs[frozenset((one, other))] == pytest.approx(gb_s * 1000, abs=1.0)

    run_virtual(main)


def test_gpus_and_adapters_below_one_switch_share_their_pcie() -> None:
    async def main() -> None:
        for host in ("cube-mesh", "nvswitch"):
            bench = NodeBench(host)
            async with bench.running():
                await asyncio.sleep(2)
                report = await bench.report()
                gpu = {device.id[-1]: device.place.pcie for device in report.of_type("gpu")}
                rdma = {device.id[-1]: device.place.pcie for device in report.of_type("rdma")}
                assert gpu["0"] == gpu["1"] == rdma["0"] != gpu["2"] == gpu["3"]
                assert len(set(gpu.values())) == 4

    run_virtual(main)


def test_a_kind_that_is_new_needs_a_rule_and_no_code() -> None:
    async def main() -> None:
        kinds = kinds_of([{"type": "xpu", "vendor": "0x10ee", "pci_class": "0x1200"}])
        bench = NodeBench("rdma-fpga", KoordletConfig(kinds=kinds))
        async with bench.running():
            await asyncio.sleep(2)
            assert await bench.resources() == {"koordinator.sh/rdma": "100", "koordinator.sh/xpu": "100"}
            assert [device.id for device in (await bench.report()).of_type("xpu")] == ["FPGA-rdma-fpga-0"]

    run_virtual(main)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([{"type": "gpu", "vendor": "0x1"}], r"kinds\[0\].type: 'gpu'"),
        ([{"type": "xpu"}], r"kinds\[0\]: must say pci_class, vendor, driver or device_class"),
        ([{"type": "xpu", "vendor": "0x1", "colour": "red"}], r"kinds\[0\]: must be a mapping of type"),
        (["xpu"], r"kinds\[0\]: must be a mapping of type"),
    ],
)
def test_a_rule_that_says_too_little_or_too_much_is_one_line(given: list[Any], text: str) -> None:
    with pytest.raises(KoordinatorConfigError, match=text):
        kinds_of(given)


# Sums


def test_the_node_has_what_its_healthy_gpus_have() -> None:
    assert node_amounts(gpus(True, False, True, True)) == {
        names.WHOLE: 300,
        names.SHARED: 300,
        names.CORE: 300,
        names.MEMORY: 24 * GIB,
        names.RATIO: 300,
    }
    assert node_amounts(gpus(False)) == {
        names.WHOLE: 0,
        names.CORE: 0,
        names.MEMORY: 0,
        names.RATIO: 0,
        names.SHARED: 0,
    }
    assert node_amounts([]) == {}


def test_what_the_node_shows_of_ours_and_has_no_more_is_nothing() -> None:
    there = {names.CORE: "400", "koordinator.sh/xpu": "100", "cpu": "8", "nvidia.com/gpu": "4"}
    kinds = (DeviceKind("xpu", vendor="0x1"),)
    found = node_resources({names.RDMA_RESOURCE: 100}, there, kinds, seed_names=False)
    assert found == {names.CORE: "0", "koordinator.sh/xpu": "0", names.RDMA_RESOURCE: "100"}


# Life


def test_an_xid_of_its_hardware_breaks_a_gpu_until_its_driver_is_bound_anew() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            xid(bench, "GPU-four-1", 48)
            await asyncio.sleep(2)
            report = await bench.report()
            assert [device.health for device in report.devices] == [True, False, True, True]
            assert report.devices[1].resources[names.CORE] == 100
            assert (await bench.resources())[names.MEMORY] == "24Gi"
        async with bench.running():  # the next incarnation knows it from the object
            await asyncio.sleep(2)
            assert [device.health for device in (await bench.report()).devices] == [True, False, True, True]
            bdf = bench.bdf("GPU-four-1")
            bench.hosts.release("four", "nvml/koordlet")
            await bench.operate(do="unbind", bdf=bdf, driver="nvidia")
            await asyncio.sleep(3)
            await bench.operate(do="bind", bdf=bdf, driver="nvidia")
            await asyncio.sleep(3)
            assert [device.health for device in (await bench.report()).devices] == [True] * 4
            assert (await bench.resources())[names.CORE] == "400"

    run_virtual(main)


def test_an_xid_that_a_program_causes_breaks_nothing() -> None:
    async def main() -> None:
        bench = NodeBench("four")
        async with bench.running():
            await asyncio.sleep(2)
            for number in (13, 31, 43, 45, 68, 109):
                xid(bench, "GPU-four-1", number)
            await asyncio.sleep(2)
            assert [device.health for device in (await bench.report()).devices] == [True] * 4

    run_virtual(main)


def xid(bench: NodeBench, uuid: str, number: int) -> None:
    host = bench.hosts.hosts.host(bench.name)
    host.events.xid(next(f for f in host.bus.functions() if f.device.uuid == uuid), number)
    bench.hosts.stirred()


def test_a_gpu_that_goes_is_unhealthy_first_and_then_gone_and_minors_stay() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=5.0))
        async with bench.running():
            await asyncio.sleep(2)
            bdf = bench.bdf("GPU-four-1")
            bench.hosts.release("four", "nvml/koordlet")
            await bench.operate(do="remove", bdf=bdf)
            seen = []
            for _ in range(10):
                await asyncio.sleep(1)
                seen.append([(d.minor, d.id, d.health) for d in (await bench.report()).devices])
            others = [(n, f"GPU-four-{n}", True) for n in (0, 2, 3)]
            assert [others[0], (1, "GPU-four-1", False), *others[1:]] in seen
            assert seen[-1] == others
            assert (await bench.resources())[names.CORE] == "300"
            await bench.operate(do="rescan")
            await asyncio.sleep(3)
            assert [(d.minor, d.id, d.health) for d in (await bench.report()).devices] == [
                (n, f"GPU-four-{n}", True) for n in range(4)
            ]
            assert (await bench.resources())[names.CORE] == "400"

    run_virtual(main)


def test_a_gpu_that_is_gone_stays_unhealthy_while_a_pod_holds_it() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=2.0))
        async with bench.running():
            await asyncio.sleep(2)
            entry = {"minor": 1, "id": "GPU-four-1", "resources": {names.CORE: "100"}}
            pod = await bench.pod("a", allocated={"gpu": [entry]}, scheduler=names.SCHEDULER)
            bench.hosts.release("four", "nvml/koordlet")
            await bench.operate(do="remove", bdf=bench.bdf("GPU-four-1"))
            await asyncio.sleep(10)
            assert [d.health for d in (await bench.report()).devices] == [True, False, True, True]
            await bench.phase(pod, "Succeeded")
            await asyncio.sleep(5)
            assert [d.minor for d in (await bench.report()).devices] == [0, 2, 3]

    run_virtual(main)


def test_minors_that_no_driver_gives_stay_over_restarts_of_koordlet() -> None:
    async def main() -> None:
        bench = NodeBench("cube-mesh", KoordletConfig(report_s=1.0))
        async with bench.running():
            await asyncio.sleep(2)
            before = {d.id: d.minor for d in (await bench.report()).of_type("rdma")}
            assert sorted(before.values()) == [0, 1, 2, 3]
            await bench.operate(do="remove", bdf=bench.bdf("NIC-cube-mesh-0"))
            await asyncio.sleep(6)
            left = {d.id: d.minor for d in (await bench.report()).of_type("rdma")}
            assert left == {uuid: minor for uuid, minor in before.items() if uuid != "NIC-cube-mesh-0"}
        async with bench.running():
            await bench.operate(do="rescan")
            await asyncio.sleep(4)
            assert {d.id: d.minor for d in (await bench.report()).of_type("rdma")} == before

    run_virtual(main)


def test_a_kubelet_that_resets_the_node_s_status_is_corrected_at_once() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=600.0))
        async with bench.running():
            await asyncio.sleep(2)
            zero = {part: {names.CORE: "0", names.MEMORY: "0"} for part in ("capacity", "allocatable")}
            await bench.kube.patch(NODES, "four", {"status": zero}, subresource="status")
            await asyncio.sleep(1)
            assert (await bench.resources())[names.CORE] == "400"
            await bench.kube.delete(NODES, "four")
            await asyncio.sleep(1)
            await bench.node()
            await asyncio.sleep(1)
            assert whole((await bench.resources("capacity"))[names.MEMORY]) == 32 * GIB
            node = await bench.kube.get(NODES, "four")
            assert (await bench.device())["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]

    run_virtual(main)


def test_a_device_object_that_somebody_deletes_is_written_again() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=600.0))
        async with bench.running():
            await asyncio.sleep(2)
            await bench.kube.delete(names.DEVICES, "four")
            with pytest.raises(NotFoundError):
                await bench.device()
            await asyncio.sleep(1)
            assert len((await bench.report()).devices) == 4

    run_virtual(main)


def test_what_others_write_into_the_device_object_stays() -> None:
    async def main() -> None:
        bench = NodeBench("four", KoordletConfig(report_s=1.0))
        async with bench.running():
            await asyncio.sleep(2)
            theirs = {"annotations": {names.PARTITIONS: "{}"}, "labels": {names.PARTITION_POLICY: "Honor"}}
            await bench.kube.patch(names.DEVICES, "four", {"metadata": theirs})
            xid(bench, "GPU-four-1", 48)
            await asyncio.sleep(3)
            metadata = (await bench.device())["metadata"]
            assert metadata["annotations"][names.PARTITIONS] == "{}"
            assert metadata["labels"][names.PARTITION_POLICY] == "Honor"

    run_virtual(main)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def main() -> None:
        bench = NodeBench("cube-mesh", KoordletConfig(report_s=1.0))
        async with bench.running():
            await asyncio.sleep(3)
            before = (await bench.device())["metadata"]["resourceVersion"]
            node = (await bench.kube.get(NODES, "cube-mesh"))["metadata"]["resourceVersion"]
            await asyncio.sleep(60)
            assert (await bench.device())["metadata"]["resourceVersion"] == before
            assert (await bench.kube.get(NODES, "cube-mesh"))["metadata"]["resourceVersion"] == node

    run_virtual(main)
