"""What ``/stats/summary`` says (k8s.io/kubelet/pkg/apis/stats/v1alpha1)."""

from __future__ import annotations

from typing import Any

from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.summary import only_cpu_and_memory, summary
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage

MIB = 1 << 20
SPEC = NodeSpec("host-1", memory_mib=100, ephemeral_storage_kib=10 * 1024)
POD = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": []}}
USED = {"c": ContainerUsage(250_000_000, 3 * MIB, 2.5, 90.0), "d": ContainerUsage(1, MIB, 0.5, 95.0)}
AT = "1970-01-01T00:01:40Z"


def found(files: Any) -> dict[str, Any]:
    return summary(
        SPEC, ContainerUsage(260_000_000, 64 * MIB, 3.5, 80.0), [PodUsage(POD, USED, 10.0)], files, now=100.0
    )


def cpu(nano: int, core_nano: int) -> dict[str, Any]:
    return {"time": AT, "usageNanoCores": nano, "usageCoreNanoSeconds": core_nano}


def memory(used: int) -> dict[str, Any]:
    return {"time": AT, "usageBytes": used, "workingSetBytes": used}


def test_node_and_pods_are_the_sums_of_what_is_in_them() -> None:
    whole = found({"u": {"b": MIB, "a": 2 * MIB}})
    disk = {"time": AT, "availableBytes": 7 * MIB, "capacityBytes": 10 * MIB}
    assert whole["node"] == {
        "nodeName": "host-1", "startTime": "1970-01-01T00:01:20Z", "cpu": cpu(260_000_000, 3_500_000_000),
        "memory": {**memory(64 * MIB), "availableBytes": 36 * MIB}, "fs": {**disk, "usedBytes": 3 * MIB},
    }  # fmt: skip
    [pod] = whole["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "n", "uid": "u"}
    assert (pod["startTime"], pod["cpu"], pod["memory"]) == (
        "1970-01-01T00:01:30Z", cpu(250_000_001, 3_000_000_000), memory(4 * MIB)
    )  # fmt: skip
    assert [each["name"] for each in pod["containers"]] == ["c", "d"]
    assert pod["containers"][1]["cpu"] == cpu(1, 500_000_000)
    assert pod["volume"] == [{"name": "a", **disk, "usedBytes": 2 * MIB}, {"name": "b", **disk, "usedBytes": MIB}]
    assert pod["ephemeral-storage"] == {**disk, "usedBytes": 3 * MIB}


def test_what_nobody_measures_is_left_out() -> None:
    whole = found({})
    assert whole["pods"][0].keys() == {"podRef", "startTime", "cpu", "memory", "containers"}
    short = only_cpu_and_memory(found({"u": {"a": MIB}}))
    assert short["node"].keys() == {"nodeName", "startTime", "cpu", "memory"}
    assert short["pods"] == whole["pods"]
