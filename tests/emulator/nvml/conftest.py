"""The fixture of a host's folder."""

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
