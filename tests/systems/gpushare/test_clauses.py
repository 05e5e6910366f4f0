"""Clauses of the published design that no scenario shows: sizes of lists, what cannot be run, what containers are told
that get no GPU, XIDs, answers to those who ask wrongly, and the printed tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario
from mews.kube.deviceplugin.port import PluginDevice
from mews.kube.system.nvml import ListedGpu, NvmlReading, ReportedXid
from mews.systems.gpushare import names
from mews.systems.gpushare.health import NodeHealth
from mews.systems.gpushare.inspect import details_text, shares, summary_text
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import decided, gpus_text, ledger_entries, node_gpus, unhealthy_indices
from mews.systems.gpushare.slices import LIST_LIMIT, slices
from tests.systems.gpushare.test_extender import Bench, on

UUID = "GPU-16a0c321-0000-0000-0000-{:012d}"


# The list


def listed(count: int, memory_mib: int) -> list[PluginDevice]:
    return [each for n in range(count) for each in slices(SharedGpu(n, UUID.format(n), memory_mib))]


@pytest.mark.parametrize(
    ("count", "memory_mib", "numa", "size_mib"),
    [(2, 16276, False, 1.87), (4, 16276, False, 3.74), (4, 16276, True, 4.12), (1, 81559, False, 4.73)],
)
def test_a_list_in_mib_is_as_long_as_was_computed(count: int, memory_mib: int, numa: bool, size_mib: float) -> None:
    messages = pytest.importorskip("mews.kube.deviceplugin.messages")
    devices = listed(count, memory_mib)
    if numa:
        devices = [PluginDevice(each.id, each.health, (1,)) for each in devices]
    assert messages.list_message(devices).ByteSize() / 2**20 == pytest.approx(size_mib, abs=0.06)


def test_slices_have_no_topology() -> None:
    assert {each.numa_nodes for each in listed(1, 100)} == {()}


def run(hardware: str, stack: str, steps: str) -> Run:
    text = f"""
apiVersion: mews/v1
kind: Scenario
metadata: {{name: x}}
hardware: {hardware}
stack: {{kubecomp: null, gpushare: {stack}}}
steps:
{steps}
"""
    return Engine(RunOptions()).run(parse_scenario(text, Path("x.yaml")))


def box(*sizes_mib: int, model: str = "V100-16GB") -> str:
    devices = [
        {"id": f"{n}", "uuid": UUID.format(n), "model": model, "memory_mib": mib} for n, mib in enumerate(sizes_mib)
    ]
    chassis = [{"name": "A", "ports": {"1": None}, "devices": []}]
    return json.dumps({"metadata": {"name": "box"}, "hosts": [{"name": "box", "devices": devices}], "chassis": chassis})


def pod(name: str, *amounts: int, **spec: Any) -> str:
    containers = [
        {"name": f"c{n}", "image": "mews/gpu-hold", "resources": {"limits": {names.MEMORY_RESOURCE: str(amount)}}}
        for n, amount in enumerate(amounts)
    ]
    document = {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}
    return f"  - apply: {json.dumps(document)}\n"


def announced(amount: int) -> str:
    status = {"allocatable": {names.MEMORY_RESOURCE: str(amount)}}
    wanted = {"kind": "Node", "metadata": {"name": "box"}, "status": status}
    return f"  - wait: {{object: {json.dumps(wanted)}}}\n    timeout: 1m\n"


def started(ended: Run, name: str) -> list[dict[str, str]]:
    lines = [line for line in ended.lines if line.event == "container-started"]
    return [line.fields["env"] for line in lines if line.fields["pod"] == f"default/{name}"]


def test_a_list_that_does_not_fit_is_refused_at_start_in_one_line() -> None:
    ended = run(box(81559, model="H100"), "{unit: MiB}", "  - sleep: 5s")
    (crash,) = [line for line in ended.lines if line.event == "crashed"]
    assert "unit MiB: the device list of 1 GPUs has" in crash.fields["cause"]
    assert f"a kubelet takes {LIST_LIMIT}; must be 256MiB or GiB or auto" in crash.fields["cause"]


def test_a_list_that_does_not_fit_is_an_event_on_the_node() -> None:
    wanted = (
        "{event: {reason: DeviceListTooLong, object: Node/box, type: Warning, "
        'message: {$regex: "GPU memory is not announced: unit MiB: the device list of 8 GPUs"}}}'
    )
    ended = run(box(*[40960] * 8), "{unit: MiB}", f"  - sleep: 5s\n  - assert: {wanted}\n")
    (step,) = [line for line in ended.lines if line.layer == "step" and line.event in ("passed", "failed")][1:2]
    assert step.event == "passed", ended.result.reason


def test_eight_gpus_of_40_gb_are_announced_in_units_that_a_kubelet_takes_by_default() -> None:
    wanted = (
        "{event: {reason: MemoryUnit, object: Node/box, type: Normal, message: {$regex: 'counts units of 256MiB'}}}"
    )
    steps = announced(8 * 160) + pod("p", 160) + "  - wait: {pod: {name: p, phase: Running}}\n    timeout: 1m\n"
    ended = run(box(*[40960] * 8), "{}", f"{steps}  - assert: {wanted}\n")
    assert ended.result.verdict == "passed", ended.result.reason


def test_what_fits_in_mib_is_in_mib_by_default_and_says_nothing() -> None:
    ended = run(box(300), "{}", f"{announced(300)}  - assert: {{event: {{reason: MemoryUnit, count: 0}}}}\n")
    assert ended.result.verdict == "passed", ended.result.reason


@pytest.mark.parametrize(("unit", "amount"), [("MiB", 300), ("256MiB", 1), ("GiB", 0)])
def test_memory_is_counted_in_the_unit_that_was_chosen(unit: str, amount: int) -> None:
    ended = run(box(300), f"{{unit: {unit}}}", announced(amount) if amount else "  - sleep: 20s")
    assert ended.result.verdict == "passed", ended.result.reason


def test_auto_counts_a_small_node_in_mib_and_a_large_gpu_in_parts_of_256() -> None:
    for hardware, amount in ((box(300), 300), (box(81559, model="H100"), 81559 // 256)):
        ended = run(hardware, "{unit: auto}", announced(amount))
        assert ended.result.verdict == "passed", ended.result.reason


# Allocate


def test_a_container_is_told_its_gpu_and_its_part() -> None:
    steps = f"{announced(24)}{pod('p', 3, 4)}  - wait: {{pod: {{name: p, phase: Running}}}}\n    timeout: 1m\n"
    first, second = started(run(box(8192, 16384), "{unit: GiB}", steps), "p")
    same = {names.VISIBLE: UUID.format(0), names.INDEX: "0", names.POD_MEMORY: "7", names.DEVICE_MEMORY: "8"}
    assert first == {**same, names.CONTAINER_MEMORY: "3"}
    assert second == {**same, names.CONTAINER_MEMORY: "4"}


def test_by_the_design_s_rule_alone_pods_are_told_the_gpus_of_their_annotations_and_assigned() -> None:
    wanted = "{name: %s, phase: Running, annotations: {ALIYUN_COM_GPU_MEM_IDX: %r, ALIYUN_COM_GPU_MEM_ASSIGNED: %r}}"
    steps = announced(24)
    for name, amount, index in (("p", 16, "1"), ("q", 8, "0")):
        steps += f"{pod(name, amount)}  - wait: {{pod: {wanted % (name, index, 'true')}}}\n    timeout: 1m\n"
    ended = run(box(8192, 16384), "{unit: GiB, match: seed}", steps)
    assert ended.result.verdict == "passed", ended.result.reason
    assert [started(ended, name)[0][names.VISIBLE] for name in "pq"] == [UUID.format(1), UUID.format(0)]


def test_a_pod_past_the_extender_that_fits_on_no_gpu_is_told_so_as_the_public_plugin_says_it() -> None:
    waits = "  - wait: {pod: {name: %s, phase: Running}}\n    timeout: 1m\n"
    steps = announced(16) + "".join(pod(name, 5) + waits % name for name in ("p", "q"))
    steps += pod("r", 6, nodeName="box") + waits % "r"
    ended = run(box(8192, 8192), "{unit: GiB}", steps)
    assert ended.result.verdict == "passed", ended.result.reason
    (env,) = started(ended, "r")
    assert env[names.VISIBLE] == "no-gpu-has-6GiB-to-run"
    assert (env[names.INDEX], env[names.POD_MEMORY], env[names.CONTAINER_MEMORY]) == ("-1", "6", "6")
    assert env[names.DEVICE_MEMORY] == "8"


def test_a_request_above_any_gpu_but_within_the_node_waits_with_the_extenders_text() -> None:
    steps = announced(16) + pod("p", 9)
    text = "{$regex: Insufficient GPU Memory in one device}"
    steps += f"  - wait: {{event: {{reason: FailedScheduling, object: Pod/p, message: {text}}}}}\n    timeout: 1m\n"
    ended = run(box(8192, 8192), "{unit: GiB}", steps)
    assert ended.result.verdict == "passed", ended.result.reason


# Health

GPUS = tuple(ListedGpu(n, f"GPU-{n}", f"0000:0{n}:00.0", n, 8192) for n in range(3))


def health() -> NodeHealth:
    kube: Any = None
    return NodeHealth(kube, "kube-system", "n")


def usable(of: NodeHealth) -> list[int]:
    return [gpu.index for gpu in GPUS if of.usable(gpu)]


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_an_xid_of_a_program_breaks_no_gpu(xid: int) -> None:
    seen = health()
    seen.observe(NvmlReading(GPUS, (ReportedXid("GPU-1", xid),)))
    assert usable(seen) == [0, 1, 2]


@pytest.mark.parametrize("xid", [48, 63, 74, 79, 94])
def test_any_other_xid_does_until_the_driver_is_bound_anew(xid: int) -> None:
    seen = health()
    seen.observe(NvmlReading(GPUS, (ReportedXid("GPU-1", xid),)))
    assert usable(seen) == [0, 2]
    seen.observe(NvmlReading(GPUS))
    assert usable(seen) == [0, 2]
    seen.observe(NvmlReading((GPUS[0], GPUS[2])))
    seen.observe(NvmlReading(GPUS))
    assert usable(seen) == [0, 1, 2]


def test_whoever_writes_an_index_into_the_config_map_marks_a_gpu_by_hand() -> None:
    seen = health()
    seen.marked({"data": {"gpus": "0,2"}})
    seen.observe(NvmlReading(GPUS))
    assert usable(seen) == [1]
    seen.marked({"data": {"gpus": ""}})
    seen.observe(NvmlReading(GPUS))
    assert usable(seen) == [0, 1, 2]


def test_a_mark_by_hand_is_read_leniently() -> None:
    assert unhealthy_indices({"data": {"gpus": " 0,2 ,x,,-1"}}) == {0, 2}
    assert unhealthy_indices({"data": {}}) == unhealthy_indices(None) == frozenset()


# The extender, asked wrongly


def test_wrong_ways_and_wrong_places_are_refused_in_words() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        await bench.replica()
        assert await bench.call("GET", "/filter") == (405, {"Error": "GET /gpushare-scheduler/filter: must be POST"})
        assert await bench.call("GET", "/bind") == (405, {"Error": "GET /gpushare-scheduler/bind: must be POST"})
        assert (await bench.call("POST", "/inspect"))[0] == 405
        assert (await bench.call("GET", "/nothing"))[0] == 404
        assert await bench.call("GET", "/inspect/nobody") == (404, {"Error": 'nodes "nobody" not found'})
        assert await bench.bind("nobody", "a") == (500, {"Error": 'pods "nobody" not found'})
        await bench.pod("p", 5)
        wrong = {"PodName": "p", "PodNamespace": "default", "PodUID": "another", "Node": "a"}
        assert await bench.call("POST", "/bind", wrong) == (500, {"Error": "pod default/p is another one than another"})
        small = {"podname": "p", "podnamespace": "default", "poduid": "", "node": "a"}
        assert await bench.call("POST", "/bind", small) == (200, {"error": ""})
        await bench.node("b", 8)
        assert await bench.bind("p", "b") == (500, {"Error": "pod default/p is on a already"})
        assert await bench.call("POST", "/bind", {"Node": 5}) == (500, {"Error": "PodName: must be a name"})

    on(work)


words = st.sampled_from(
    ("Pod", "Nodes", "NodeNames", "pod", "items", "metadata", "spec", "containers", "resources", "limits", "name",
     "annotations", names.MEMORY_RESOURCE, names.NODE_GPUS, "status", "capacity", "PodName", "PodNamespace", "Node")
)  # fmt: skip
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def test_whatever_is_sent_is_answered() -> None:
    async def work(bench: Bench) -> None:
        await bench.node("a", 8)
        await bench.replica()
        for body in bodies:
            status, answer = await bench.call("POST", "/filter", body)
            assert status == 200
            assert {key.lower() for key in answer} >= {"error", "failednodes"}
            status, answer = await bench.call("POST", "/bind", body)
            assert status == 500
            assert answer["Error"]

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(body=st.dictionaries(words, json_values, max_size=4) | json_values)
    def collect(body: Any) -> None:
        bodies.append(body)

    bodies: list[Any] = [
        {
            "Pod": {"spec": {"containers": [{"resources": {"limits": {names.MEMORY_RESOURCE: "many"}}}]}},
            "NodeNames": [],
        },
        {"Pod": {}, "Nodes": {"items": [None]}},
        {"Pod": {"spec": []}, "NodeNames": ["a"]},
    ]
    collect()
    on(work)


def test_what_cannot_be_read_on_the_api_is_as_if_it_were_not_there() -> None:
    good = {"index": 0, "uuid": "GPU-0", "memory": 8}
    rows = [good, {"index": "x", "uuid": "GPU-1", "memory": 8}, 5, {"index": 1}]
    node = {"metadata": {"name": "n", "annotations": {names.NODE_GPUS: json.dumps(rows)}}}
    assert node_gpus(node, names.MEMORY_RESOURCE, names.COUNT_RESOURCE) == (SharedGpu(0, "GPU-0", 8),)
    node["metadata"]["annotations"] = {names.NODE_GPUS: "no json"}
    assert node_gpus(node, names.MEMORY_RESOURCE, names.COUNT_RESOURCE) == ()
    entry = {**good, "uid": "u", "namespace": "d", "name": "p", "version": "7"}
    assert ledger_entries({"data": {"pods": json.dumps([entry, None])}}) == {}


def test_a_client_without_our_cache_has_the_nodes_it_sends_judged() -> None:
    async def work(bench: Bench) -> None:
        await bench.replica()
        asking = {"spec": {"containers": [{"resources": {"limits": {names.MEMORY_RESOURCE: "9"}}}]}}
        sizes = {"small": [8, 8], "large": [8, 10]}
        items = [
            {
                "metadata": {
                    "name": name,
                    "annotations": {
                        names.NODE_GPUS: gpus_text(SharedGpu(n, f"{name}{n}", mib) for n, mib in enumerate(each))
                    },
                }
            }
            for name, each in sizes.items()
        ]
        _, answer = await bench.call("POST", "/filter", {"Pod": asking, "Nodes": {"items": items}})
        assert [node["metadata"]["name"] for node in answer["Nodes"]["items"]] == ["large"]
        assert answer["FailedNodes"] == {"small": "Insufficient GPU Memory in one device"}

    on(work)


def test_a_node_under_the_public_plugin_has_gpus_of_equal_size() -> None:
    amounts = {names.MEMORY_RESOURCE: "30", names.COUNT_RESOURCE: "2"}
    gpus = node_gpus({"metadata": {"name": "n"}, "status": {"capacity": amounts}}, *amounts)
    assert [(gpu.index, gpu.memory) for gpu in gpus] == [(0, 15), (1, 15)]


# What is printed


def shown() -> list[Any]:
    gpus = [SharedGpu(0, "GPU-0", 15), SharedGpu(1, "GPU-1", 15)]
    address = {"addresses": [{"type": "InternalIP", "address": "192.168.0.7"}]}
    node = {"metadata": {"name": "n1", "annotations": {names.NODE_GPUS: gpus_text(gpus)}}, "status": address}

    def pod_on(name: str, memory: int, gpu: SharedGpu | None) -> dict[str, Any]:
        limits = {"limits": {names.MEMORY_RESOURCE: str(memory)}}
        metadata = {"name": name, "namespace": "default", "annotations": decided(gpu, memory, 1) if gpu else {}}
        return {"metadata": metadata, "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": limits}]}}

    ended = {**pod_on("ended", 9, gpus[0]), "status": {"phase": "Succeeded"}}
    return shares([node], [pod_on("a", 6, gpus[0]), pod_on("b", 3, gpus[1]), ended, pod_on("waits", 2, None)])


def test_the_table_is_that_of_the_public_kubectl_plugin() -> None:
    assert summary_text(shown()) == (
        "NAME  IPADDRESS    GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)\n"
        "n1    192.168.0.7  6/15                   3/15                   2                   11/30\n"
        "----------------------------------------------------------------\n"
        "Allocated/Total GPU Memory In Cluster:\n"
        "11/30 (36%)\n"
    )


def test_the_details_name_each_pod_and_its_gpu() -> None:
    text = details_text(shown())
    assert "NAME:       n1\nIPADDRESS:  192.168.0.7\n\n" in text
    rows = [line.split() for line in text.splitlines() if line.startswith(("a ", "b ", "waits"))]
    assert rows == [
        ["a", "default", "6", "0", "0"],
        ["b", "default", "0", "3", "0"],
        ["waits", "default", "0", "0", "2"],
    ]
    assert "ended" not in text
    assert "Allocated :  11 (36%)\nTotal :      30\n" in text
