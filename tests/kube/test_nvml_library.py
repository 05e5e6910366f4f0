"""The library, loaded as any client loads it, describes a host as the host describes itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mews.emulator.host.nvml_view import nvml_host
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml import library
from mews.emulator.nvml.state import state_beside, write_state
from mews.harness.clock import run_virtual
from mews.harness.ports.hosts import LocalHosts
from mews.harness.ports.nvml import LocalNvml
from mews.kube.clock import Pace
from mews.kube.nvml_library import NvmlLibrary
from mews.kube.system.nvml import NvmlDescription

HARDWARE = load_hardware(Path(__file__).parents[2] / "fixtures" / "hardware" / "seed-004.yaml")


@pytest.mark.wall
@pytest.mark.skipif(not library.available(), reason="no compiler for the library")
@pytest.mark.parametrize("host", [spec.name for spec in HARDWARE.hosts])
def test_driver_names_slots_and_joints_are_the_host_s(host: str, tmp_path: Path) -> None:
    found: list[NvmlDescription] = []

    async def in_process() -> None:
        hosts = LocalHosts(HARDWARE, pace=Pace(), seed=1, listener=lambda event: None)
        hosts.begin()
        found.append(await LocalNvml(hosts, host, "x").describe())
        library.install_copies(tmp_path)
        write_state(state_beside(tmp_path), nvml_host(hosts.hosts.host(host)))

    run_virtual(in_process)

    async def loaded() -> None:
        nvml = NvmlLibrary(str(tmp_path / "libnvidia-ml.so.1"))
        try:
            found.append(await nvml.describe())
        finally:
            await nvml.close()

    asyncio.run(loaded())
    assert found[0] == found[1]
    assert len(found[0].gpus) == len(found[0].matrix) == sum(d.kind == "GPU" for d in _host(host).devices)


def _host(name: str):
    return next(spec for spec in HARDWARE.hosts if spec.name == name)
