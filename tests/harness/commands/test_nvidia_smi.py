"""``mews nvidia-smi``."""

import json
import os
from pathlib import Path

import pytest

from mews.emulator.nvml.library import available, install
from mews.emulator.nvml.state import NvmlHost, state_beside, write_state
from mews.harness.cli import exit_code
from mews.harness.commands import instances
from tests.emulator.nvml.hosts import gpu

DEMO = str(Path(__file__).resolve().parents[3] / "fixtures" / "hardware" / "demo.yaml")


@pytest.fixture(autouse=True)
def compiled(monkeypatch, tmp_path):
    if not available():
        pytest.skip("the library is not compiled, and there is no C compiler")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))


def smi(*arguments):
    return exit_code(["nvidia-smi", *arguments])


def test_it_shows_a_host_of_a_hardware_file(capfd):
    assert smi("--hardware", DEMO, "--host", "host-2", "-L") == 0
    told = capfd.readouterr().out
    assert told.splitlines()[0] == "GPU 0: Tesla V100-PCIE-32GB (UUID: GPU-e2b2733f-7147-7e5b-47ff-9c6ec3261944)"
    assert len(told.splitlines()) == 4


def test_its_own_options_and_codes_pass_through(capfd):
    arguments = ("--query-gpu=index,persistence_mode", "--format=csv,noheader", "-i", "3")
    assert smi("--hardware", DEMO, *arguments) == 0
    assert capfd.readouterr().out == "3, Disabled\n"
    assert smi("--hardware", DEMO, "-i", "9") == 6
    assert smi("--hardware", DEMO, "drain", "-p", "nonsense", "-q") == 2


def test_it_shows_a_host_of_a_running_cluster(capfd, tmp_path):
    install(tmp_path / "nvml")
    write_state(state_beside(tmp_path / "nvml"), NvmlHost(gpus=(gpu(0), gpu(1))))
    ready = {"nodes": {"host-1": {"env": {"LD_LIBRARY_PATH": str(tmp_path / "nvml")}}, "host-2": {"env": {}}}}
    (tmp_path / "ready.json").write_text(json.dumps(ready))
    instances.record(instances.UpInstance("lab", os.getpid(), instances.born(os.getpid()), str(tmp_path)))
    assert smi("--name", "lab", "--query-gpu=count", "--format=csv,noheader", "-i", "0") == 0
    assert capfd.readouterr().out == "2\n"
    assert smi("--name", "lab", "--host", "host-2") == 3
    assert smi("--name", "lab", "--host", "host-9") == 2
    assert "must be one of host-1, host-2" in capfd.readouterr().err


def test_what_is_not_there_is_named(capfd):
    assert smi("-L") == 2
    assert "no `mews up` of that name runs" in capfd.readouterr().err
    assert smi("--hardware", DEMO, "--host", "host-7", "-L") == 2
    assert "host 'host-7': must be one of host-1, host-2, host-3" in capfd.readouterr().err
    assert smi("--hardware", "nowhere.yaml", "-L") == 2
