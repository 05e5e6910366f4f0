"""A Go program on NVIDIA's own bindings (go-nvml), which load the library with dlopen."""

import subprocess
from pathlib import Path

import pytest

from mews.emulator.nvml.state import NvmlEvent
from tests.emulator.nvml.gobuild import built
from tests.emulator.nvml.hosts import gpu, uuid_of

SOURCE = Path(__file__).parent / "goclient"


@pytest.mark.wall
def test_nvidias_own_example_lists_the_gpus_unmodified(host):
    program = built(SOURCE, "github.com/NVIDIA/go-nvml/examples/devices")
    host.show(gpu(0), gpu(1, "GB200"))
    assert host.run(str(program)).split() == [uuid_of(0), uuid_of(1)]


@pytest.mark.wall
def test_a_go_program_lists_the_gpus_and_sees_an_xid(host):
    program = built(SOURCE)
    host.show(gpu(0), gpu(1, "H100"))
    child = subprocess.Popen([program], stdout=subprocess.PIPE, text=True, env=host.environment())
    with child, child.stdout as told:
        try:
            assert told.readline() == f"{uuid_of(0)} Tesla V100-PCIE-32GB 32768 7.0 0:10 0 mig=Not Supported\n"
            assert told.readline() == f"{uuid_of(1)} NVIDIA H100 PCIe 81559 9.0 0:11 1 mig=Success\n"
            assert told.readline() == "mig device: Not Found\n"
            assert told.readline() == "waiting\n"
            host.show(gpu(0, lost=True), gpu(1, "H100"), events=(NvmlEvent(1, "xid", gpu(0).bus_id, 79),))
            assert told.readline() == f"xid 79 on {uuid_of(0)}\n"
            assert child.wait(10) == 0
        finally:
            child.kill()
