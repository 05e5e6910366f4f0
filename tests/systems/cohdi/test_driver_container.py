"""What the driver's container does beside its mounts, which the life cycle shows."""

import threading

import pytest

from mews.systems.cohdi.driver_container import ELSEWHERE, DeviceNodes, is_there, without_hypervisor

PARTS = ("usr/bin/nvidia-smi", "dev", "sys", "proc/driver/nvidia")


def test_the_flag_of_a_virtual_machine_is_left_out_of_cpuinfo():
    text = "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\nbugs\t\t: none of a hypervisor\n"
    assert without_hypervisor(text) == "processor\t: 0\nflags\t\t: fpu lahf_lm\nbugs\t\t: none of a hypervisor\n"


def test_device_nodes_come_and_go_with_those_of_the_node(tmp_path):
    node, container = tmp_path / "node", tmp_path / "container"
    node.mkdir(), container.mkdir()
    nodes = DeviceNodes(node, container)
    (node / "nvidia0").touch()
    (node / "null").touch()
    nodes.follow()
    assert [path.name for path in container.iterdir()] == ["nvidia0"]
    assert (container / "nvidia0").resolve() == node / "nvidia0"
    (node / "nvidia0").unlink()
    nodes.follow()
    assert list(container.iterdir()) == []


def test_a_node_that_a_command_removes_is_removed_from_the_host(tmp_path):
    node, container = tmp_path / "node", tmp_path / "container"
    node.mkdir(), container.mkdir()
    for name in ("nvidia0", "nvidia1"):
        (node / name).touch()
    nodes = DeviceNodes(node, container)
    nodes.follow()
    (container / "nvidia1").unlink()
    nodes.follow()
    assert [path.name for path in node.iterdir()] == ["nvidia0"]
    nodes.follow()
    assert [path.name for path in container.iterdir()] == ["nvidia0"]


@pytest.mark.parametrize("last", PARTS)
def test_on_a_real_node_the_driver_root_is_waited_for_until_all_of_it_is_there(last, tmp_path, monkeypatch):
    for part in PARTS:
        if part != last:
            (tmp_path / part).mkdir(parents=True)
    ended = threading.Event()
    assert not is_there(tmp_path, ended), "where nodes are emulated it is there, or never comes"
    monkeypatch.setenv(ELSEWHERE, str(tmp_path))
    threading.Timer(0.2, (tmp_path / last).mkdir, kwargs={"parents": True}).start()
    assert is_there(tmp_path, ended)


def test_it_is_waited_for_no_longer_once_the_container_is_to_end(tmp_path, monkeypatch):
    monkeypatch.setenv(ELSEWHERE, str(tmp_path))
    ended = threading.Event()
    ended.set()
    assert not is_there(tmp_path, ended)
