"""Programs of other people, unmodified, on hosts of ours."""

import importlib.util
import os
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


MEASURE = """
import sys, time
from codecarbon import OfflineEmissionsTracker
tracker = OfflineEmissionsTracker(
    country_iso_code="DEU", measure_power_secs=1, save_to_file=False, log_level="critical", tracking_mode="machine"
)
tracker.start()
begin = time.monotonic()
time.sleep(3)
tracker.stop()
print(tracker.final_emissions_data.gpu_energy, time.monotonic() - begin)
"""


def test_codecarbon_measures_their_energy(pair):
    """In kWh, by its own measurement: the difference of two looks at NVML's counter. It looks only where it finds an
    nvidia-smi, as pods have it on their PATH."""
    needs("codecarbon", "codecarbon")
    environment = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    environment["PATH"] = f"{pair.folder}:{os.environ['PATH']}"
    kwh, seconds = map(float, pair.python(MEASURE, **environment).splitlines()[-1].split())
    drawn_w = 25 + 187
    assert kwh * 3.6e6 / drawn_w == pytest.approx(seconds, abs=1.5)
    assert kwh > 0
