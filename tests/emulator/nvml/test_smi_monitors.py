"""What nvidia-smi shows again and again, and the links of NVSwitch systems."""

import re
import subprocess

import pytest

from mews.emulator.hardware.topology import cube_mesh, nvswitch
from mews.emulator.nvml.state import EccCounts, NvmlProcess
from tests.emulator.nvml.hosts import gpu


def test_dmon_prints_a_line_per_gpu_as_often_as_asked(host):
    host.show(gpu(0, "H100", power_mw=123_900, temperature_c=44, utilization_percent=63), gpu(1, "L4"))
    code, text = host.smi("dmon", "-c", "2", "-d", "1")
    lines = text.splitlines()
    assert code == 0 and len(lines) == 2 + 2 * 2
    assert lines[0].split()[:6] == ["#", "gpu", "pwr", "gtemp", "mtemp", "sm"]
    assert lines[2].split()[:5] == ["0", "123", "44", "46", "63"]
    assert lines[3].split()[3] == "-", "an L4 has no temperature of its memory"


def test_dmon_shows_the_groups_that_are_asked_for_of_the_gpus_that_are(host):
    ecc = EccCounts(volatile_corrected=5, volatile_uncorrected=2)
    host.show(gpu(0, "A100"), gpu(1, "A100", ecc=ecc, memory_used_mib=77))
    code, text = host.smi("dmon", "-c", "1", "-s", "me", "-i", "1")
    assert code == 0
    head, _, line = text.splitlines()
    assert head.split()[2:] == ["fb", "bar1", "ccpm", "sbecc", "dbecc", "pci"]
    assert line.split() == ["1", "77", "1", "0", "5", "2", "0"]


@pytest.mark.parametrize("words", [("-s", "q"), ("-c", "0"), ("-d",), ("-c", "x"), ("fast",)])
@pytest.mark.parametrize("command", ["dmon", "pmon"])
def test_a_monitor_refuses_what_it_does_not_know(host, command, words):
    host.show(gpu(0))
    code, text = host.smi(command, *words)
    assert code == 2 and f"Usage: {command}" in text


def test_pmon_names_processes_and_idle_gpus(host):
    host.show(gpu(0, processes=(NvmlProcess(41, "train", 5),)), gpu(1))
    code, text = host.smi("pmon", "-c", "1")
    first, second = (line.split() for line in text.splitlines()[2:])
    assert code == 0 and first[:3] == ["0", "41", "C"] and first[-1] == "train"
    assert second[:3] == ["1", "-", "-"]


@pytest.mark.parametrize("words", [("-l", "1"), ("-lms", "100"), ("--loop=1",)])
def test_l_shows_it_again_until_it_is_ended(host, words):
    host.show(gpu(0))
    command = [str(host.folder / "nvidia-smi"), "--query-gpu=index,name", "--format=csv,noheader", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=host.environment())
    try:
        assert [child.stdout.readline() for _ in range(2)] == ["0, Tesla V100-PCIE-32GB\n"] * 2
    finally:
        child.terminate()
        child.communicate()


@pytest.mark.parametrize("words", [("-l", "0"), ("-l", "often"), ("-lms", "-3")])
def test_a_loop_needs_a_time(host, words):
    host.show(gpu(0))
    assert host.smi(*words)[0] == 2


@pytest.mark.parametrize(
    ("model", "links", "speed"),
    [("A100-SXM4-80GB", 12, "25"), ("H100-SXM", 18, "26.562"), ("H20", 18, "26.562"), ("GB200", 18, "53.125")],
)
@pytest.mark.parametrize("count", [1, 4])
def test_all_links_of_a_gpu_on_switches_are_up_however_many_gpus_there_are(host, model, links, speed, count):
    host.show(*(gpu(n, model) for n in range(count)), topology=nvswitch(count, links), switched=True)
    code, text = host.smi("nvlink", "-s")
    assert code == 0
    assert re.findall(r"Link \d+: (.*)", text) == [f"{speed} GB/s"] * links * count


def test_links_follow_the_matrix_where_gpus_are_joined_to_each_other(host):
    host.show(*(gpu(n) for n in range(8)), topology=cube_mesh())
    assert host.smi("nvlink", "-s", "-i", "3")[1].count("25.781 GB/s") == 6
    host.show(gpu(0), gpu(1))
    assert host.smi("nvlink", "--status")[1].count("Link") == 0
    assert host.smi("nvlink")[0] == 2


FABRIC = """
import pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
info = n.c_nvmlGpuFabricInfoV_t()
n.nvmlDeviceGetGpuFabricInfoV(gpu, n.byref(info))
print(info.state, info.status, info.cliqueId, bytes(info.clusterUuid).hex(), info.healthMask)
old = n.c_nvmlGpuFabricInfo_t()
n.nvmlDeviceGetGpuFabricInfo(gpu, n.byref(old))
print(old.state, old.cliqueId)
"""


NO_FABRIC = """
import pynvml as n
n.nvmlInit()
info = n.c_nvmlGpuFabricInfoV_t()
try:
    n.nvmlDeviceGetGpuFabricInfoV(n.nvmlDeviceGetHandleByIndex(0), n.byref(info))
except n.NVMLError as error:
    print(error)
"""


def test_the_fabric_of_switched_systems_is_told_and_of_others_not(host):
    host.show(gpu(0, "H100-SXM"))
    assert host.python(FABRIC).split() == ["3", "0", "0", "0" * 32, "0", "3", "0"]
    host.show(gpu(0, "GB200"))
    assert host.python(FABRIC).split()[:5] == ["3", "0", "0", "0" * 32, "170"]
    host.show(gpu(0, "L40S"))
    code = (
        "import pynvml as n\nn.nvmlInit()\ninfo = n.c_nvmlGpuFabricInfoV_t()\ntry:\n    n.nvmlDeviceGetGpuFabricInfoV("
    )
    code += "n.nvmlDeviceGetHandleByIndex(0), n.byref(info))\nexcept n.NVMLError as error:\n    print(error)"
    assert host.python(code) == "Not Supported\n"


MODES = """
import pynvml as n
n.nvmlInit()
gpu = n.nvmlDeviceGetHandleByIndex(0)
print(n.nvmlDeviceGetAddressingMode(gpu), n.nvmlDeviceGetModuleId(gpu))
"""


@pytest.mark.parametrize(("model", "told"), [("V100", "0 1"), ("L40S", "1 1"), ("GB200", "2 1")])
def test_the_addressing_mode_is_told(host, model, told):
    host.show(gpu(0, model), driver_version="580.105.08")
    assert host.python(MODES).strip() == told
