"""The kubelet's folders and sockets over gRPC (contract kubelet.md sections 2 and 6)."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.emulated.kubelet.devices import FileCheckpoint
from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder
from tests.kube.emulated.kubelet.devices.stand import FakePlugin, Stand, a_pod, container, eight, until

pytestmark = pytest.mark.wall


def on_disk(case: Callable[[Stand, Path], Awaitable[None]]) -> None:
    """A device manager whose folders are real, below a short path."""

    async def main() -> None:
        top = Path(tempfile.mkdtemp(prefix="mews-"))
        plugins, pods = top / "plugins", top / "pods"
        folder = GrpcKubeletFolder(plugins, pods, dial_deadline_s=5.0)
        plugins.mkdir()
        stand = Stand(FileCheckpoint(plugins), folder=folder, new_link=lambda: GrpcLink(plugins, poll_s=0.02))
        await stand.start()
        try:
            await case(stand, top)
        finally:
            await stand.stop()
            for endpoint in stand.endpoints:
                await endpoint.close()
            shutil.rmtree(top)

    asyncio.run(main())


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


def test_folders_and_files_have_the_modes_of_a_real_node() -> None:
    async def case(stand: Stand, top: Path) -> None:
        await stand.plug(FakePlugin(eight()))
        assert mode(top / "plugins" / "kubelet_internal_checkpoint") == "0o600"
        assert mode(top / "pods") == "0o750"
        for socket in ("plugins/kubelet.sock", "pods/kubelet.sock"):
            assert (top / socket).is_socket()

    on_disk(case)


def test_a_kubelet_removes_all_sockets_when_it_starts_and_no_other_file_and_none_when_it_stops() -> None:
    async def case(stand: Stand, top: Path) -> None:
        await stand.plug(FakePlugin(eight()), endpoint="mine.sock")
        (top / "plugins" / "notes.txt").write_text("kept")
        await stand.stop()
        assert (top / "plugins" / "mine.sock").is_socket()
        assert (top / "plugins" / "kubelet.sock").exists()
        await stand.start()
        assert not (top / "plugins" / "mine.sock").exists()
        assert (top / "plugins" / "notes.txt").read_text() == "kept"
        assert (top / "plugins" / "kubelet_internal_checkpoint").exists()

    on_disk(case)


def test_a_plugin_whose_socket_file_is_deleted_is_called_over_its_open_connection() -> None:
    async def case(stand: Stand, top: Path) -> None:
        plugin = FakePlugin(eight())
        await stand.plug(plugin, endpoint="mine.sock")
        (top / "plugins" / "mine.sock").unlink()
        (top / "plugins" / "kubelet.sock").unlink()
        await stand.run(a_pod("a", container("main", 2)))
        await stand.manager.pre_start("uid-a", "main")
        assert plugin.summary() == ["P(8, [], 2)", "A(d0 d1)", "S(d0 d1)"]
        plugin.show(eight()[:3])
        await until(lambda: stand.manager.node_resources()["example.com/res"] == (3, 3))
        assert not (top / "plugins" / "kubelet.sock").exists()
        await stand.restart()
        assert (top / "plugins" / "kubelet.sock").is_socket()

    on_disk(case)


def test_pod_resources_over_its_socket_list_active_pods_and_name_what_is_not_known() -> None:
    async def case(stand: Stand, top: Path) -> None:
        await stand.plug(FakePlugin(eight()))
        await stand.run(a_pod("a", container("main", 1)))
        resources = GrpcPodResources(top / "pods" / "kubelet.sock")
        try:
            listed = await resources.list()
            assert [type(pod) for pod in listed] == [PodDevices]
            assert [(name, [d.device_ids for d in held]) for name, held in listed[0].containers] == [
                ("main", [("d0",)])
            ]
            with pytest.raises(Exception, match="pod nothing in namespace default not found"):
                await resources.get("nothing", "default")
            assert len(await resources.allocatable()) == 8
        finally:
            await resources.close()

    on_disk(case)
