"""What the calls say, through NVIDIA's own Python bindings."""

import re
import time

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.hardware.topology import cube_mesh, nvswitch
from mews.emulator.nvml.state import EccCounts, NvmlProcess
from tests.emulator.nvml.hosts import SRC, gpu

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed; pip install 'falcon-mews[test]' brings it")

HEAD = """
import pynvml as p
p.nvmlInit()
def told(call, *arguments, **more):
    try:
        return getattr(p, call)(*arguments, **more)
    except p.NVMLError as error:
        return type(error).__name__.removeprefix("NVMLError_")
h = [p.nvmlDeviceGetHandleByIndex(i) for i in range(p.nvmlDeviceGetCount())]
def both(call, *arguments):
    return [told(call, one, *arguments) for one in h[:2]]
"""


def ask(host, *expressions):
    """The values of Python expressions, in order."""
    lines = "".join(f"print(repr({expression}))\n" for expression in expressions)
    return [eval(line) for line in host.python(HEAD + lines).splitlines()]


@pytest.fixture
def pair(host):
    """A V100 that works and a GeForce that does not."""
    worker = gpu(
        0,
        utilization_percent=100,
        memory_used_mib=1000,
        energy_mj=5000,
        numa_node=1,
        cpus="2,64-65",
        persistence=True,
        ecc=EccCounts(1, 2, 3, 4),
        processes=(NvmlProcess(11, "a", 600), NvmlProcess(12, "b", 400), NvmlProcess(13, "c", 1, "G")),
    )
    host.show(worker, gpu(1, "RTX 3090", pcie_width=8))
    return host


def test_energy_grows_from_where_it_is_as_power_has_it(pair):
    before = time.monotonic_ns()
    [(worker, other)] = ask(pair, "both('nvmlDeviceGetTotalEnergyConsumption')")
    passed_s = (time.monotonic_ns() - before) / 1e9 + 60
    assert 5000 < worker <= 5000 + 250_000 * passed_s
    assert other / 22 == pytest.approx((worker - 5000) / 250, rel=0.2)


def test_load_heat_and_power(pair):
    assert ask(
        pair,
        "[(u.gpu, u.memory) for u in both('nvmlDeviceGetUtilizationRates')]",
        "both('nvmlDeviceGetTemperature', 0)",
        "[both('nvmlDeviceGetTemperatureThreshold', kind) for kind in (0, 1, 3, 2, 5)]",
        "both('nvmlDeviceGetPowerUsage')",
        "both('nvmlDeviceGetEnforcedPowerLimit')",
        "both('nvmlDeviceGetPowerManagementLimitConstraints')",
        "both('nvmlDeviceGetFanSpeed')",
        "both('nvmlDeviceGetFanSpeed_v2', 1)",
        "both('nvmlDeviceGetPerformanceState')",
        "[both('nvmlDeviceGetClockInfo', kind) for kind in range(4)]",
        "both('nvmlDeviceGetMaxClockInfo', 1)",
        "both('nvmlDeviceGetApplicationsClock', 0)",
        "both('nvmlDeviceGetCurrentClocksEventReasons')",
    ) == [
        [(100, 50), (0, 0)],
        [62, 36],
        [[90, 98], [87, 95], [83, 91], [85, "NotSupported"], ["NotSupported", 83]],
        [250000, 22000],
        [250000, 350000],
        [[100000, 250000], [100000, 400000]],
        ["NotSupported", 30],
        ["NotSupported", 30],
        [0, 8],
        [[1380, 210], [1380, 210], [877, 405], [1237, 555]],
        [1380, 2100],
        [1380, "NotSupported"],
        [4, 1],
    ]


def test_memory_and_its_errors(pair):
    total = 32768
    assert ask(
        pair,
        "[x >> 20 for x in (lambda m: (m.total, m.free, m.used))(p.nvmlDeviceGetMemoryInfo(h[0]))]",
        "[x >> 20 for x in (lambda m: (m.total, m.reserved, m.free, m.used))"
        "(p.nvmlDeviceGetMemoryInfo(h[0], version=p.nvmlMemory_v2))]",
        "told('nvmlDeviceGetMemoryInfo', h[0], version=0x3000028)",
        "both('nvmlDeviceGetEccMode')",
        "[told('nvmlDeviceGetTotalEccErrors', h[0], error, counter) for error in (0, 1) for counter in (0, 1)]",
        "told('nvmlDeviceGetTotalEccErrors', h[1], 0, 0)",
        "[told('nvmlDeviceGetMemoryErrorCounter', h[0], 1, 0, place) for place in (2, 3)]",
        "[told('nvmlDeviceGetRemappedRows', h[0]), list(told('nvmlDeviceGetRetiredPages', h[0], 0))]",
    ) == [
        [total, total - 258 - 1000, 1258],
        [total, 258, total - 258 - 1000, 1000],
        "ArgumentVersionMismatch",
        [[1, 1], "NotSupported"],
        [1, 3, 2, 4],
        "NotSupported",
        [2, 0],
        ["NotSupported", []],
    ]


def test_processes(pair):
    assert ask(
        pair,
        "[(x.pid, x.usedGpuMemory >> 20) for x in p.nvmlDeviceGetComputeRunningProcesses(h[0])]",
        "[(x.pid, x.usedGpuMemory >> 20) for x in p.nvmlDeviceGetGraphicsRunningProcesses(h[0])]",
        "[(x.pid, x.usedGpuMemory >> 20) for x in p.nvmlDeviceGetComputeRunningProcesses_v2(h[0])]",
        "[p.nvmlSystemGetProcessName(11), told('nvmlSystemGetProcessName', 4194305)]",
        "[(x.pid, x.smUtil) for x in p.nvmlDeviceGetProcessUtilization(h[0], 0)]",
        "told('nvmlDeviceGetProcessUtilization', h[1], 0)",
        "both('nvmlDeviceGetComputeMode')",
    ) == [
        [(11, 600), (12, 400)],
        [(13, 1)],
        [(11, 600), (12, 400)],
        ["a", "NotFound"],
        [(11, 33), (12, 33), (13, 33)],
        "NotFound",
        [0, 0],
    ]


def test_identity_and_the_link(pair):
    assert ask(
        pair,
        "both('nvmlDeviceGetSerial')",
        "both('nvmlDeviceGetCudaComputeCapability')",
        "both('nvmlDeviceGetBrand')",
        "both('nvmlDeviceGetPersistenceMode')",
        "both('nvmlDeviceGetMigMode')",
        "both('nvmlDeviceGetCurrPcieLinkWidth')",
        "both('nvmlDeviceGetMaxPcieLinkGeneration')",
        "(lambda i: (i.busIdLegacy, i.busId, i.domain, i.bus, hex(i.pciDeviceId), hex(i.pciSubSystemId)))"
        "(p.nvmlDeviceGetPciInfo(h[1]))",
        "(lambda i: told('nvmlDeviceGetPciInfoExt', h[0], p.byref(i)) or (i.baseClass, i.subClass, i.busId))"
        "(p.nvmlPciInfoExt_v1_t(version=p.nvmlPciInfoExt_v1))",
        "told('nvmlDeviceGetPciInfoExt', h[0], p.byref(p.nvmlPciInfoExt_v1_t(version=7)))",
        "[p.nvmlDeviceGetIndex(p.nvmlDeviceGetHandleByPciBusId(x)) for x in ('0000:11:00.0', '00000000:11:00.0')]",
        "[told('nvmlDeviceGetHandleByPciBusId', '0000:99:00.0'), told('nvmlDeviceGetHandleByUUID', 'GPU-9')]",
        "told('nvmlDeviceGetHandleByIndex', 2)",
        "p.nvmlDeviceGetCpuAffinity(h[0], 2)[:2]",
        "[told('nvmlDeviceGetNumaNodeId', h[0]), p.nvmlDeviceGetMemoryAffinity(h[0], 1, 0)[0]]",
    ) == [
        ["1320100000000", "1320100000001"],
        [(7, 0), (8, 6)],
        [2, 5],
        [1, 0],
        ["NotSupported", "NotSupported"],
        [16, 8],
        [3, 4],
        ("0000:11:00.0", "00000000:11:00.0", 0, 0x11, "0x220410de", "0x145410de"),
        (3, 2, "00000000:10:00.0"),
        "ArgumentVersionMismatch",
        [1, 1],
        ["NotFound", "NotFound"],
        "InvalidArgument",
        [4, 3],
        ["NotSupported", 2],
    ]


def test_field_values_carry_their_own_results(pair):
    [told] = ask(
        pair, "[(v.nvmlReturn, v.value.uiVal) for v in p.nvmlDeviceGetFieldValues(h[0], [82, 1, 83, 91, 142])]"
    )
    assert [told[0], told[1], told[3]] == [(0, 64), (0, 1), (0, 0)]
    assert told[2][0] == 0
    assert told[2][1] > 5000
    assert told[4][0] == 3


def test_the_graph_of_nvlinks(host):
    host.show(*(gpu(n, numa_node=n // 4) for n in range(8)), topology=cube_mesh())
    assert ask(
        host,
        "[p.nvmlDeviceGetNvLinkRemotePciInfo(h[0], link).bus for link in range(6)]",
        "[told('nvmlDeviceGetNvLinkState', h[0], link) for link in (5, 6)]",
        "p.nvmlDeviceGetNvLinkVersion(h[0], 0)",
        "[p.nvmlDeviceGetTopologyCommonAncestor(h[0], h[n]) for n in (1, 4, 7)]",
        "[p.nvmlDeviceGetP2PStatus(h[0], h[n], p.NVML_P2P_CAPS_INDEX_NVLINK) for n in (1, 7)]",
        "[p.nvmlDeviceGetIndex(one) for one in p.nvmlDeviceGetTopologyNearestGpus(h[5], p.NVML_TOPOLOGY_NODE)]",
        "len(p.nvmlSystemGetTopologyGpuSet(3))",
    ) == [[0x11, 0x12, 0x13, 0x13, 0x14, 0x14], [1, "InvalidArgument"], 2, [40, 50, 50], [0, 5], [4, 6, 7], 8]


def test_switches_are_at_the_ends_of_their_links(host):
    host.show(*(gpu(n, "H100") for n in range(2)), topology=nvswitch(2, 18), switched=True)
    assert ask(
        host,
        "[p.nvmlDeviceGetNvLinkRemoteDeviceType(h[0], link) for link in (0, 17)]",
        "hex(p.nvmlDeviceGetNvLinkRemotePciInfo(h[0], 0).pciDeviceId)",
        "p.nvmlDeviceGetNvLinkVersion(h[0], 0)",
        "p.nvmlDeviceGetFieldValues(h[0], [91])[0].value.uiVal",
    ) == [[2, 2], "0x1af110de", 4, 18]


@pytest.mark.parametrize("model", list(PROFILES))
def test_every_model_says_what_its_profile_says(host, model):
    profile = PROFILES[model]
    host.show(gpu(0, model))
    assert ask(
        host,
        "p.nvmlDeviceGetName(h[0])",
        "p.nvmlDeviceGetMemoryInfo(h[0]).total",
        "p.nvmlDeviceGetArchitecture(h[0])",
        "p.nvmlDeviceGetNumGpuCores(h[0])",
        "p.nvmlDeviceGetVbiosVersion(h[0])",
        "[p.nvmlDeviceGetSupportedMemoryClocks(h[0])[0], p.nvmlDeviceGetSupportedGraphicsClocks(h[0], "
        f"{profile.memory_clock_mhz})[0]]",
        "told('nvmlDeviceGetMigDeviceHandleByIndex', h[0], 0)",
    ) == [
        profile.name,
        profile.memory_bytes,
        profile.architecture,
        profile.cores,
        profile.vbios,
        [profile.memory_clock_mhz, profile.sm_clock_mhz],
        "NotFound",
    ]


def test_the_example_of_the_documentation_works(host, tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", (SRC.parent / "docs" / "nvml.md").read_text(), re.DOTALL)
    before_it_is_gone = code.rpartition("write_state(")[0]
    told = host.python(
        f"import os; os.chdir({str(tmp_path)!r})\n{before_it_is_gone}\n"
        "import subprocess\n"
        "print(subprocess.run(['somewhere/nvidia-smi', '-L'], capture_output=True, text=True).stdout)\n"
    )
    assert told.strip() == "GPU 0: NVIDIA H100 PCIe (UUID: GPU-1)"
