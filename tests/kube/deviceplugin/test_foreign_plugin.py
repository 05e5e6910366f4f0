"""An unmodified plugin of someone else's, in its own process, meets our kubelet over real gRPC."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mews.kube.deviceplugin.port import Allocation, ContainerDevices, DeviceNode, Mount
from mews.kube.emulated.kubelet.devices import AdmissionRejectedError, FileCheckpoint
from tests.kube.emulated.kubelet.devices.stand import Stand, a_pod, container, until

pytestmark = pytest.mark.wall

HERE = Path(__file__).parent
PROTO = HERE.parents[2] / "kube" / "deviceplugin" / "pb" / "deviceplugin_v1beta1.proto"
BOARD = "example.com/board"


class Foreign:
    """The process, with what it has told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.heard: list[dict[str, Any]] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self.heard.append(json.loads(line))

    def events(self) -> list[str]:
        return [line["event"] for line in self.heard]

    async def emit(self, line: str) -> None:
        """Until it has done so."""
        assert self.process.stdin is not None
        word = line.split()[0]
        already = self.events().count(word)
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()
        await until(lambda: self.events().count(word) > already)

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reading


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where ``foreign_pb2`` is, made by protoc from the published text."""
    protoc = pytest.importorskip("grpc_tools.protoc", reason="needs grpcio-tools to compile the .proto")
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "foreign.proto").write_text(PROTO.read_text())
    assert protoc.main(["protoc", f"-I{folder}", f"--python_out={folder}", f"{folder}/foreign.proto"]) == 0
    return folder


@contextlib.asynccontextmanager
async def plugin_process(folder: Path, compiled: Path, count: int) -> AsyncIterator[Foreign]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "foreign_plugin.py"),
        str(folder),
        BOARD,
        str(count),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(compiled), "GRPC_VERBOSITY": "ERROR"},
    )
    foreign = Foreign(process)
    try:
        yield foreign
    finally:
        await foreign.kill()


@contextlib.asynccontextmanager
async def node(top: Path) -> AsyncIterator[Stand]:
    from mews.kube.emulated.kubelet.grpc_server import GrpcKubeletFolder

    folder = GrpcKubeletFolder(top / "plugins", top / "pods")
    (top / "plugins").mkdir()
    stand = Stand(FileCheckpoint(top / "plugins"), folder=folder, new_link=lambda: pytest.fail("not used"))
    await stand.start()
    try:
        yield stand
    finally:
        await stand.stop()


def test_a_foreign_plugin_registers_serves_pods_survives_a_kubelet_restart_and_dies(compiled, tmp_path):
    from mews.kube.deviceplugin.grpc_client import GrpcPodResources

    async def main() -> None:
        async with node(tmp_path) as stand, plugin_process(tmp_path / "plugins", compiled, 4) as foreign:
            await until(lambda: stand.manager.node_resources() == {BOARD: (4, 4)}, 10.0)
            await stand.run(a_pod("p", container("main", 2, BOARD)))
            await stand.manager.pre_start("uid-p", "main")
            assert stand.manager.container_allocation("uid-p", "main") == Allocation(
                {"BOARDS": "board-2,board-3"},
                (Mount("/opt/boards", "/etc", True),),
                (DeviceNode("/dev/board0", "/dev/null", "rw"),),
                {"example.com/slot": "3"},
                ("example.com/board=b7",),
            )
            resources = GrpcPodResources(tmp_path / "pods" / "kubelet.sock")
            shown = await resources.get("p", "default")
            assert [name for name, _ in shown.containers] == ["main"]
            assert sorted(shown.containers[0][1], key=lambda devices: devices.device_ids) == [
                ContainerDevices(BOARD, ("board-2",), (0,)),
                ContainerDevices(BOARD, ("board-3",), (0,)),
            ]
            await resources.close()

            await foreign.emit("break board-0")
            await until(lambda: stand.manager.node_resources() == {BOARD: (4, 3)})

            await stand.restart()
            assert stand.manager.node_resources() == {BOARD: (0, 0)}
            assert stand.held("p") == {"main": ["board-2", "board-3"]}
            await until(lambda: stand.manager.node_resources() == {BOARD: (4, 3)}, 10.0)

            await foreign.kill()
            await until(lambda: stand.manager.node_resources() == {BOARD: (4, 0)})
            with pytest.raises(AdmissionRejectedError, match="no healthy devices present"):
                await stand.run(a_pod("late", container("main", 1, BOARD)))
            assert Counter(foreign.events()) == {
                "GetDevicePluginOptions": 2,
                "registered": 2,
                "ListAndWatch": 2,
                "ListAndWatch ended": 1,
                "GetPreferredAllocation": 1,
                "Allocate": 1,
                "PreStartContainer": 1,
                "break": 1,
            }

    asyncio.run(main())


def test_a_foreign_plugin_killed_inside_allocate_is_told_as_an_eof(compiled, tmp_path):
    async def main() -> None:
        async with node(tmp_path) as stand, plugin_process(tmp_path / "plugins", compiled, 1) as foreign:
            await until(lambda: stand.manager.node_resources() == {BOARD: (1, 1)}, 10.0)
            await foreign.emit("break allocate")
            admission = asyncio.create_task(stand.run(a_pod("p", container("main", 1, BOARD))))
            await until(lambda: "Allocate" in foreign.events())
            await foreign.kill()
            with pytest.raises(AdmissionRejectedError) as rejected:
                await admission
            assert rejected.value.message == (
                "Pod was rejected: Allocate failed due to rpc error: code = Unavailable "
                "desc = error reading from server: EOF, which is unexpected"
            )

    asyncio.run(main())
