"""Go programs: on NVIDIA's own bindings (go-nvml), which load the library with dlopen, and on nvidia-smi."""

import os
import subprocess
from pathlib import Path

import pytest

from mews.emulator.nvml.state import NvmlEvent, NvmlProcess
from tests.emulator.nvml.gobuild import built
from tests.emulator.nvml.hosts import gpu, uuid_of

SOURCE = Path(__file__).parent / "goclient"
TELEGRAF = Path(__file__).parent / "telegraf"


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


@pytest.mark.wall
@pytest.mark.nightly
def test_telegrafs_input_gathers_gpus_and_processes_unmodified(host):
    program = built(TELEGRAF)
    train = NvmlProcess(1, "train", 1234)
    host.show(gpu(0), gpu(1, "H100-SXM", utilization_percent=50, memory_used_mib=1234, processes=(train,)))
    lines = host.run(str(program), PATH=f"{host.folder}:{os.environ['PATH']}").splitlines()
    told = [dict(word.split("=", 1) for word in line.partition(" ")[2].split(";")) for line in lines]
    assert [line.partition(" ")[0] for line in lines] == ["nvidia_smi", "nvidia_smi", "nvidia_smi_process"]
    assert [(each["uuid"], each["arch"]) for each in told[:2]] == [(uuid_of(0), "Volta"), (uuid_of(1), "Hopper")]
    busy = told[1]
    assert (busy["utilization_gpu"], busy["memory_used"], busy["power_draw"]) == ("50", "1234", "420")
    assert told[2] == {"name": "train", "type": "C", "pid": "1", "used_memory": "1234"}
