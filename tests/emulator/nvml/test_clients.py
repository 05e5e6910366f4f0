"""Programs of other people, unmodified, on hosts of ours."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from mews.emulator.nvml.state import NvmlProcess
from tests.emulator.nvml.hosts import gpu, uuid_of

BIN = Path(sys.executable).parent


def program(name):
    found = BIN / name
    if not found.exists() and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed; pip install 'falcon-mews[test]' brings it")
    return str(found) if found.exists() else shutil.which(name)


def needs(module, source="'falcon-mews[test]'"):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"the module {module} is not installed; pip install {source} brings it")


@pytest.fixture
def pair(host):
    """A host with two unlike GPUs; the second one works."""
    busy = gpu(1, "A100", utilization_percent=50, memory_used_mib=1234, processes=(NvmlProcess(1, "train", 1234),))
    host.show(gpu(0), busy)
    return host


def test_gpustat_shows_them(pair):
    told = pair.run(program("gpustat"), "--no-color", "--no-header", "-cpP")
    assert "[0] Tesla V100-PCIE-32GB" in told
    assert "33°C,   0 %,   25 / 250 W" in told
    assert "[1] NVIDIA A100 80GB PCIe | 48°C,  50 %" in told
    assert "/1(1234M)" in told


def test_nvitop_shows_them(pair):
    told = pair.run(program("nvitop"), "--once", "--ascii", TERM="xterm", COLUMNS="120")
    assert "Driver Version: 570.86.15" in told
    assert "1234MiB / 80.00GiB" in told
    assert "50%" in told


def test_nvisel_selects_by_free_memory(pair):
    told = pair.run(program("nvisel"), "--min-free-memory", "40GiB", "--format", "uuid")
    assert uuid_of(1) in told
    assert uuid_of(0) not in told


def test_py3smi_shows_them(pair):
    needs("py3nvml")
    told = pair.run(program("py3smi"))
    assert "Driver Version: 570.86.15" in told
    assert "258MiB / 32768MiB" in told
    assert "50%" in told


def test_the_gpu_plugin_of_glances_shows_them(pair):
    needs("glances")
    told = pair.python(
        "from glances.plugins.gpu.cards.nvidia import NvidiaGPU\n"
        "cards = NvidiaGPU()\n"
        "for card in cards.get_device_stats():\n"
        "    print(card['gpu_id'], card['name'], card['proc'], card['temperature'], round(card['mem']))\n"
        "cards.exit()\n"
    )
    assert told.splitlines() == ["nvidia0 Tesla V100-PCIE-32GB 0 33 1", "nvidia1 NVIDIA A100 80GB PCIe 50 48 2"]


def test_codecarbon_meters_their_energy(pair):
    needs("codecarbon", "codecarbon")
    told = pair.python(
        "from codecarbon.core.gpu import AllGPUDevices\n"
        "print([round(one['power_usage']) for one in AllGPUDevices().get_gpu_details()])\n"
    )
    assert told.splitlines()[-1] == "[25, 187]"
