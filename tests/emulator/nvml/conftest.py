"""The fixtures of a host's folder, and of a captured command line."""

import os
from pathlib import Path

import pytest

from mews.emulator.nvml.state import NvmlHost, write_state
from tests.emulator.nvml.hosts import Host
from tests.emulator.nvml.reader import Reader


@pytest.fixture
def host(tmp_path):
    """A host without a state yet."""
    return Host(tmp_path / "host")


@pytest.fixture
def read(host, monkeypatch):
    """The library in this process, initialised, on a host without GPUs yet."""
    monkeypatch.setenv("MEWS_NVML_STATE", str(host.state))
    monkeypatch.delenv("NVIDIA_VISIBLE_DEVICES", raising=False)
    write_state(host.state, NvmlHost())
    found = Reader(host)
    assert found.calls.nvmlInit_v2() == 0
    yield found
    found.calls.nvmlShutdown()


@pytest.fixture(scope="session")
def captured():
    """Part of the captured command line of an H100 -> its lines."""
    folder = os.environ.get("MEWS_DATA_DIR")
    if not folder:
        pytest.skip("needs the measured data: set MEWS_DATA_DIR to the data directory")
    text = (Path(folder) / "nvidia-smi" / "cli-h100-590.48.01.txt").read_text()
    return {part.partition("\n")[0]: part.partition("\n")[2].splitlines() for part in text.split("\n## ")[1:]}
