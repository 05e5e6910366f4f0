"""GPU Share in wall-clock time: the unmodified kube-scheduler calls the extender, and NVML is the library."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.host.fleet import Hosts
from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.inventory.reading import parse_hardware
from mews.emulator.nvml import library
from mews.emulator.nvml.state import state_beside, write_state
from mews.harness.clusters.programs.finding import SCHEDULER, find
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.kube.nvml_library import NvmlLibrary
from mews.kube.system.nvml import NvmlError

FOLDER = Path(__file__).parents[3] / "scenarios" / "gpushare"
pytestmark = pytest.mark.wall


@pytest.mark.skipif(find(SCHEDULER) is None, reason="kube-scheduler is neither in KUBEBUILDER_ASSETS nor on PATH")
def test_kube_scheduler_binds_by_our_extender() -> None:
    run = Engine(RunOptions(time="wall")).run(load_scenario(FOLDER / "extender-143-two-containers.yaml"))
    assert run.result.verdict == "passed", run.result.reason
    ours = [line for line in run.lines if line.actor == "default-scheduler" and line.event == "assumed"]
    assert ours == []  # a record that our own scheduler writes for each pod


@pytest.mark.skipif(not library.available(), reason="no compiler for the library")
def test_the_library_lists_gpus_with_their_own_sizes(tmp_path: Path) -> None:
    devices = [
        {"id": str(n), "uuid": f"GPU-{n}", "model": "P100-16GB", "memory_mib": size}
        for n, size in enumerate((8192, 16276))
    ]
    document = {
        "apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "x"},
        "hosts": [{"name": "h", "devices": devices}], "chassis": [{"name": "A", "ports": {"1": None}}],
    }  # fmt: skip
    hosts = Hosts(parse_hardware(document, "x"), EmulationContext(1))
    hosts.begin(0.0)
    library.install_copies(tmp_path)
    write_state(state_beside(tmp_path), nvml_host(hosts.host("h")))
    nvml = NvmlLibrary(str(tmp_path / "libnvidia-ml.so.1"))

    async def read() -> list[tuple[int, str, int]]:
        try:
            return [(gpu.index, gpu.uuid, gpu.memory_mib) for gpu in (await nvml.read()).gpus]
        finally:
            await nvml.close()

    assert asyncio.run(read()) == [(0, "GPU-0", 8192), (1, "GPU-1", 16276)]


def test_a_library_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(NvmlError, match="cannot be loaded"):
        asyncio.run(NvmlLibrary(str(tmp_path / "none.so")).read())
