"""Folders of the kubelet that pods mount: each node's own, for processes of this machine."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.host_mounts import host_mounts
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from mews.kube.emulated.kubelet.node_folders import placed
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch


def pod(path: str, mounted_at: str, kind: str = "", **mount: str) -> dict[str, Any]:
    """One that mounts a path of its host."""
    container = {"name": "main", "volumeMounts": [{"name": "v", "mountPath": mounted_at, **mount}]}
    spec = {"nodeName": "n1", "containers": [container]}
    spec["volumes"] = [{"name": "v", "hostPath": {"path": path, "type": kind}}, {"name": "other", "emptyDir": {}}]
    return {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec}


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
def test_a_folder_is_made_where_its_type_says_so(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "plugins" / "d"
    assert list(host_mounts(pod("/var/lib/kubelet/plugins/d", "/d", kind), "main", tmp_path)) == [(folder, "/d")]
    assert folder.is_dir()


def test_a_folder_that_must_be_there_is_missed_as_on_a_node(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r'volume "v" : hostPath type check failed: .*/plugins does not exist'):
        list(host_mounts(pod("/var/lib/kubelet/plugins", "/d", "Directory"), "main", tmp_path))


def test_a_path_below_a_volume_stays_in_it(tmp_path: Path) -> None:
    below = pod("/var/lib/kubelet", "/d", subPath="plugins")
    assert list(host_mounts(below, "main", tmp_path)) == [(tmp_path / "plugins", "/d")]
    assert list(host_mounts(pod("/var/lib/kubelet", "/d", subPath="../.."), "main", tmp_path)) == []


def test_other_paths_of_the_machine_are_not_mounted(tmp_path: Path) -> None:
    assert list(host_mounts(pod("/var/log", "/log"), "main", tmp_path)) == []


LISTENER = "import socket, sys, time; s = socket.create_server((sys.argv[1], int(sys.argv[2]))); time.sleep(30)"


@pytest.mark.wall
@pytest.mark.parametrize("mounted_at", ["/mews-test-cdi", "/var/lib/kubelet/plugins_registry"])
def test_processes_and_commands_find_the_nodes_folder_where_they_mount_it(tmp_path: Path, mounted_at: str) -> None:
    """Also below /, where nothing can be made without a root of one's own."""
    if namespaces_lacking():
        pytest.skip(f"no mount namespaces here: {namespaces_lacking()}")

    async def main() -> None:
        image = load_images().find("busybox")
        assert image is not None
        runtime = ProcessRuntime(tmp_path / "pods", nodes=lambda name: tmp_path / name)
        words = ("sh", "-c", f"echo main > {mounted_at}/main; sleep 30")
        try:
            process = await runtime.start(Launch(pod("/var/run/cdi", mounted_at), "main", 0, image, words, (), {}))
            done = await process.exec(["sh", "-c", f"echo command > {mounted_at}/command; ls /"])
            assert done.exit_code == 0
            assert {b"proc", b"tmp", b"usr"} <= set(done.stdout.split())
            texts = {path.name: path.read_text() for path in (tmp_path / "n1" / "run-cdi").iterdir()}
            assert texts == {"main": "main\n", "command": "command\n"}
        finally:
            await runtime.close()

    asyncio.run(main())
    assert not Path("/mews-test-cdi").exists()  # on the machine itself nothing changed


@pytest.mark.wall
def test_what_a_command_listens_on_is_forwarded(tmp_path: Path) -> None:
    """As in a pod, whose commands share its network."""
    python = shutil.which("python3")
    if namespaces_lacking() or python is None:
        pytest.skip(f"no mount namespaces here, or no python3: {namespaces_lacking()}")

    async def main() -> None:
        image = load_images().find("busybox")
        assert image is not None
        runtime = ProcessRuntime(tmp_path / "pods", nodes=lambda name: tmp_path / name)
        try:
            start = Launch(pod("/var/run/cdi", "/var/run/cdi"), "main", 0, image, ("sleep", "30"), (), {})
            process = await runtime.start(start)
            command = asyncio.create_task(process.exec([python, "-c", LISTENER, "127.79.0.9", "9371"]))
            async with asyncio.timeout(20):
                while True:
                    try:
                        _, writer = await process.dial("127.79.0.1", 9371)
                    except ConnectionRefusedError:
                        await asyncio.sleep(0.05)
                        continue
                    break
            assert writer.get_extra_info("peername")[0] == "127.79.0.9"
            writer.close()
            command.cancel()
            await asyncio.gather(command, return_exceptions=True)
        finally:
            await runtime.close()

    asyncio.run(main())
