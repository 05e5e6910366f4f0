"""The fixture of a host's folder."""

import pytest

from tests.emulator.nvml.hosts import Host


@pytest.fixture
def host(tmp_path):
    """A host without a state yet."""
    return Host(tmp_path / "host")
