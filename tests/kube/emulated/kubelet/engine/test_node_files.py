"""A node's devices and driver in a container that has a root of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mews.kube.deviceplugin.port import ContainerHook, DeviceNode, Mount
from mews.kube.emulated.kubelet.engine.node_files import additions_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.oci.edits import ContainerEdits
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/dev").mkdir(parents=True)
    (tmp_path / "root/dev/nvidia3").touch()
    (tmp_path / "root/usr/lib").mkdir(parents=True)
    (tmp_path / "root/usr/lib/libnvidia-ml.so.570.1").touch()
    (tmp_path / "state").mkdir()
    (tmp_path / "state/nvml.state").touch()
    (tmp_path / "root/usr/lib/nvml.state").symlink_to(tmp_path / "state/nvml.state")
    return tmp_path / "root"


def hook(*args: str) -> ContainerHook:
    return ContainerHook("createContainer", "/usr/bin/nvidia-cdi-hook", ("nvidia-cdi-hook", *args))


def test_a_nodes_devices_are_mounts_of_its_files_and_this_machines_are_devices(root: Path) -> None:
    devices = (DeviceNode("/dev/nvidia0", "/dev/nvidia3"), DeviceNode("/dev/null", "/dev/null", "r"))
    added = additions_of(ContainerEdits(devices=devices), NodeDriver(root))
    assert added.mounts == (Mount("/dev/nvidia0", str(root / "dev/nvidia3")),)
    assert added.devices == (devices[1],)
    assert added.env["MEWS_NVML_DEV"] == "/dev"
    with pytest.raises(StartError, match=r'lstat "/dev/nvidia9": no such file'):
        additions_of(ContainerEdits(devices=(DeviceNode("/dev/nvidia0", "/dev/nvidia9"),)), NodeDriver(root))


def test_a_library_is_found_by_its_short_name_and_finds_its_state(root: Path) -> None:
    library = "/usr/lib/libnvidia-ml.so.570.1"
    edits = ContainerEdits(
        mounts=(Mount(library, library, read_only=True),), hooks=(hook("update-ldcache", "--folder", "/usr/lib"),)
    )
    added = additions_of(edits, NodeDriver(root))
    places = {mount.container_path: mount.host_path for mount in added.mounts}
    assert places["/usr/lib/libnvidia-ml.so.1"] == places[library] == f"{root}{library}"
    state = root.parent / "state"
    assert places[str(state)] == str(state)
    assert added.env == {"LD_LIBRARY_PATH": "/usr/lib", "MEWS_NVML_STATE": str(state / "nvml.state")}


def test_links_that_a_hook_makes_are_mounts_of_what_they_lead_to(root: Path) -> None:
    library = "/usr/lib/libnvidia-ml.so.570.1"
    link = hook("create-symlinks", "--link", "../lib/libnvidia-ml.so.570.1::/usr/lib/ml.so")
    added = additions_of(ContainerEdits(mounts=(Mount(library, library),), hooks=(link,)), NodeDriver(root))
    assert Mount("/usr/lib/ml.so", f"{root}{library}") in added.mounts
    with pytest.raises(StartError, match="hook /usr/bin/nvidia-cdi-hook burn: cannot be played"):
        additions_of(ContainerEdits(hooks=(hook("burn"),)), NodeDriver(root))


def test_what_the_links_of_a_mounted_folder_lead_to_is_mounted_where_they_point(tmp_path: Path, root: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "elsewhere").touch()
    (tmp_path / "given/out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "given/in").symlink_to(tmp_path / "given/out")
    (tmp_path / "given/broken").symlink_to(tmp_path / "nothing")
    given = Mount("/opt/given", str(tmp_path / "given"), read_only=True)
    added = additions_of(ContainerEdits(mounts=(given,)), NodeDriver(root))
    outside = str(tmp_path / "elsewhere")
    assert added.mounts == (Mount(outside, outside, read_only=True), given)
