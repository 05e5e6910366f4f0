"""What a node's host puts where containers find it."""

import shutil
import subprocess

import pytest
from msgspec.structs import replace

from mews.emulator.hardware.emulation_context import BY_DEFAULT
from mews.emulator.inventory_file import load_hardware
from mews.emulator.nvml import library
from mews.harness.catalogue.files import shipped
from mews.harness.clusters.real import host as agent


def test_this_names_whichever_host_the_node_is_now(tmp_path):
    agent.point(tmp_path / "this", "host-1")
    agent.point(tmp_path / "this", "host-2")
    assert (tmp_path / "this").readlink().name == "host-2"
    assert [path.name for path in tmp_path.iterdir()] == ["this"]


@pytest.mark.wall
def test_the_library_is_no_link_that_leads_nowhere_elsewhere(tmp_path):
    if not library.available():
        pytest.skip("no C compiler here")
    agent.bring(tmp_path / "host-1")
    moved = tmp_path / "mounted"
    shutil.copytree(tmp_path / "host-1", moved, symlinks=True)
    shutil.rmtree(tmp_path / "host-1")
    assert (moved / "libnvidia-ml.so").resolve() == moved / "libnvidia-ml.so.1"
    done = subprocess.run([moved / "nvidia-smi", "--help"], env={"LD_LIBRARY_PATH": str(moved)}, capture_output=True)
    assert done.returncode == 0


@pytest.mark.wall
def test_a_host_alone_follows_a_chassis_that_has_others_on_its_ports(tmp_path):

    from mews.emulator.host.fleet import Hosts

    hardware = load_hardware(shipped("hardware", "demo"))
    hosts = Hosts(replace(hardware, hosts=hardware.hosts[:1]), BY_DEFAULT)
    hosts.begin(0.0)
    device = hardware.chassis[0].devices[4].id
    hosts.on_event("A", 1, "table-changed", {"device": device, "old_port": "2", "new_port": None}, 1.0)
    hosts.on_event("A", 2, "table-changed", {"device": device, "old_port": None, "new_port": "1"}, 2.0)
    assert device in {function.device.id for function in hosts.host("host-1").bus.functions()}
