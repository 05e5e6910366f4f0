"""Paths of the host that pods mount: each node's own, for processes of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.node_folders import placed
from mews.kube.emulated.kubelet.volumes.host_paths import HostPath, NodeHostPaths

POD: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1"}}


def find(folder: Path, path: str, kind: str = "") -> HostPath:
    """With nodes in the folder ``nodes``, and the files of the host in ``host``."""
    (folder / "host" / "sys").mkdir(parents=True, exist_ok=True)
    paths = NodeHostPaths(lambda node: folder / "nodes" / node, lambda host: folder / "host")
    return paths.find(POD, "v", {"path": path, "type": kind})


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/var/lib/kubelet", "/n"),
        ("/var/lib/kubelet/plugins/d.example.com", "/n/plugins/d.example.com"),
        ("/var/lib/kubelet-of-another", None),
        ("/etc/cdi", "/n/etc-cdi"),
        ("/var/run/cdi/a.json", "/n/run-cdi/a.json"),
        ("/run/cdi", "/n/run-cdi"),
        ("/var/lib/kubelet/../../../etc", None),
        ("/etc", None),
    ],
)
def test_the_kubelets_paths_are_in_the_nodes_folder_and_no_others(path: str, there: str | None) -> None:
    assert placed(Path("/n"), path) == (None if there is None else Path(there))


@pytest.mark.parametrize("kind", ["", "DirectoryOrCreate"])
@pytest.mark.parametrize(
    ("path", "there"),
    [("/var/lib/kubelet/plugins/d", "nodes/n1/plugins/d"), ("/data/of/mine", "nodes/n1/rootfs/data/of/mine")],
)
def test_a_folder_of_the_node_is_made_where_its_type_says_so(tmp_path: Path, kind: str, path: str, there: str) -> None:
    assert find(tmp_path, path, kind) == HostPath(tmp_path / there)
    assert (tmp_path / there).is_dir()


def test_the_hosts_own_files_come_before_those_of_this_machine(tmp_path: Path) -> None:
    assert find(tmp_path, "/sys") == HostPath(tmp_path / "host" / "sys")
    assert find(tmp_path, "/usr") == HostPath(Path("/usr"), read_only=True)
    assert find(tmp_path, "/").read_only


def test_what_pods_keep_on_their_node_is_not_kept_on_this_machine(tmp_path: Path) -> None:
    assert Path("/var/log").is_dir()
    assert find(tmp_path, "/var/log") == HostPath(tmp_path / "nodes" / "n1" / "rootfs" / "var" / "log")


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("/var/lib/kubelet/plugins", "Directory", "/var/lib/kubelet/plugins does not exist"),
        ("/data/none", "File", "/data/none does not exist"),
        ("/usr", "File", "/usr is not a file"),
        ("/usr", "Socket", "/usr is not a socket"),
        ("/etc/passwd", "Directory", "/etc/passwd is not a directory"),
    ],
)
def test_a_path_that_is_not_what_its_type_says_is_refused_as_on_a_node(
    tmp_path: Path, path: str, kind: str, text: str
) -> None:
    with pytest.raises(StartError) as caught:
        find(tmp_path, path, kind)
    assert caught.value.message == f'MountVolume.SetUp failed for volume "v" : hostPath type check failed: {text}'


def test_an_empty_file_is_made_where_its_type_says_so(tmp_path: Path) -> None:
    assert find(tmp_path, "/data/f", "FileOrCreate").path.read_bytes() == b""


def test_no_path_leads_out_of_the_nodes_folder(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r'must not contain "\.\."'):
        find(tmp_path, "/data/../../../etc")
