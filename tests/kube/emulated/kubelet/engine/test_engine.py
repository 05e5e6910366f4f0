"""Containers of a real image on an emulated kubelet, by the Docker engine of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.objects import uid_of
from mews.kube.api.resources import CONFIGMAPS
from mews.kube.clock import stream
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.engine.client import ContainerEngine, remove_containers
from mews.kube.emulated.kubelet.engine.runtime import EngineRuntime
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.oci.node_driver import NodeDriver
from mews.kube.emulated.kubelet.oci.runtime import EditingRuntime
from mews.kube.emulated.kubelet.runtime import EnginePort
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.emulated.streaming.standard_streams import StartRefusedError, StreamOptions, TerminalSize
from tests.containers import built_image, containers_of_owner
from tests.kube.emulated.kubelet.bench import Bench

pytestmark = pytest.mark.wall

LONG_S = 300.0
"""A loaded machine's engine takes many seconds for one container."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with built_image(tmp_path_factory.mktemp("image")) as reference:
        yield reference


class EngineBench(Bench):
    """A node with the real engine, in wall-clock time."""

    def __init__(self, engine: ContainerEngine, folder: Path) -> None:
        super().__init__()
        self.engine = engine
        self.owner = str(folder)
        runtime = EngineRuntime(engine, NodeDriver(folder / "node"), folder / "engine", kube=lambda: self.kube)
        self.containerd = Containerd(
            self.clock,
            stream(1, "containerd"),
            simulated=SimulatedRuntime(self.pace),
            engine=EnginePort(EditingRuntime(runtime, None), engine),
            network="127.9.3",
        )
        self.images = load_images(unknown="container")

    async def log(self, name: str, container: str = "main") -> str:
        uid = uid_of(await self.get(name))
        return b"".join([chunk async for chunk in self.containerd.log(uid, container)]).decode()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[EngineBench]:
    bench = EngineBench(await asyncio.to_thread(ContainerEngine.connect, str(folder)), folder)
    try:
        async with bench.running():
            yield bench
    finally:
        await bench.containerd.close()
        await bench.engine.close()
    assert containers_of_owner(bench.owner) == []


def terminated(pod: Any) -> dict[str, Any]:
    found: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return found


def main_of(image: str, *args: str, **parts: Any) -> list[dict[str, Any]]:
    return [{"name": "main", "image": image, "imagePullPolicy": "Never", "args": list(args), **parts}]


def test_containers_run_to_their_exit_codes_with_what_their_pods_give_them(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as bench:
            await bench.kube.create(
                CONFIGMAPS, {"metadata": {"name": "conf"}, "data": {"a": "alpha\n"}}, namespace="default"
            )
            conf = {"volumeMounts": [{"name": "conf", "mountPath": "/conf"}], "imagePullPolicy": "Never"}
            own = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "some"}]
            await bench.pod(
                "a",
                inits=[{"name": "first", "image": image, "args": ["file", "/conf/a"], **conf}],
                containers=[
                    {"name": "shows", "image": image, "imagePullPolicy": "Never", "env": own},
                    {"name": "fails", "image": image, "imagePullPolicy": "Never", "args": ["exit", "3"]},
                    {"name": "given", "image": image, "imagePullPolicy": "Never", "args": ["env", "GIVEN"]},
                    {"name": "hosts", "image": image, "imagePullPolicy": "Never", "args": ["file", "/etc/hosts"]},
                    {"name": "quiet", "image": image, "imagePullPolicy": "Never", "args": ["whisper"]},
                ],
                volumes=[{"name": "conf", "configMap": {"name": "conf"}}],
            )
            pod = await bench.phase("a", "Failed", LONG_S)
            codes = {
                each["name"]: each["state"]["terminated"]["exitCode"] for each in pod["status"]["containerStatuses"]
            }
            assert codes == {"shows": 0, "fails": 3, "given": 0, "hosts": 0, "quiet": 6}
            assert await bench.log("a", "first") == "alpha\n"
            assert (await bench.log("a", "shows")).splitlines()[0] == "visible some"
            assert await bench.log("a", "fails") == "fails\n", "standard error, too"
            assert await bench.log("a", "given") == "image\n", "the image's own variables stay"
            assert f"{pod['status']['podIP']}\ta\n" in await bench.log("a", "hosts")
            assert await bench.log("a", "quiet") == "quiet\n", "a program may close its streams before it ends"

    asyncio.run(main())


def test_a_container_is_told_to_end_and_killed_after_its_grace(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as bench:
            await bench.pod("polite", containers=main_of(image, "wait"), activeDeadlineSeconds=3)
            await bench.pod("stubborn", containers=main_of(image, "stubborn"), activeDeadlineSeconds=3, grace_s=1)
            polite = await bench.phase("polite", "Failed", LONG_S)
            stubborn = await bench.phase("stubborn", "Failed", LONG_S)
            assert terminated(polite)["exitCode"] == 7
            assert (await bench.log("polite")).endswith("leaves\n")
            assert terminated(stubborn)["exitCode"] == 137

    asyncio.run(main())


def test_a_container_that_fails_is_started_again(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as bench:
            await bench.pod("a", containers=main_of(image, "exit", "3"), policy="OnFailure")
            pod = await bench.until(
                "a",
                lambda pod: (pod.get("status") or {}).get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1,
                LONG_S,
            )
            assert pod["status"]["phase"] == "Running"

    asyncio.run(main())


class Client:
    """A client's end of the streams of a command."""

    def __init__(self, sent: bytes = b"", **options: bool) -> None:
        self.options = StreamOptions(**options)
        self.written: dict[int, bytes] = {1: b"", 2: b""}
        self._sent = [sent] if sent else []

    async def read(self) -> bytes:
        return self._sent.pop() if self._sent else b""

    async def write(self, stream: int, data: bytes) -> None:
        self.written[stream] += data

    async def resized(self) -> TerminalSize | None:
        return None


def test_commands_run_in_a_container_with_input_and_on_a_terminal(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as bench:
            probe = {"exec": {"command": ["/program", "exit", "0"]}, "timeoutSeconds": 60}
            await bench.pod("a", containers=main_of(image, "wait", readinessProbe=probe))
            pod = await bench.until("a", ready, LONG_S)
            container = bench.containerd.running(uid_of(pod), "main")
            done = await container.exec(["/program", "exit", "5"])
            assert (done.exit_code, done.stdout, done.stderr) == (5, b"", b"fails\n")
            client = Client(b"hello\n", stdin=True)
            assert await container.run(["/program", "cat"], client) == 0
            assert client.written == {1: b"hello\n", 2: b""}
            client = Client(stdin=True, tty=True)
            assert await container.run(["/program", "terminal"], client) == 0
            assert client.written[1] == b"terminal 1\r\n"
            with pytest.raises(StartRefusedError, match="no such file"):
                await container.run(["/nothing"], Client())
            assert (await container.exec(["/nothing"])).exit_code in (126, 127)

    asyncio.run(main())


def ready(pod: Any) -> bool:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return bool(statuses[0].get("ready"))


def test_what_cannot_be_started_is_said_in_the_engines_words(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as bench:
            await bench.pod("a", containers=main_of(image, command=["/nothing"]))
            pod = await bench.until("a", lambda pod: waits_for(pod) == "RunContainerError", LONG_S)
            assert "/nothing" in pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
            share = {"name": "x", "nfs": {"server": "files", "path": "/"}}
            mounts = [{"name": "x", "mountPath": "/x"}]
            await bench.pod("b", containers=main_of(image, volumeMounts=mounts), volumes=[share])
            await bench.until("b", lambda pod: waits_for(pod) == "CreateContainerConfigError", LONG_S)

    asyncio.run(main())


def waits_for(pod: Any) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return str((statuses[0].get("state", {}).get("waiting") or {}).get("reason"))


def test_what_a_killed_run_left_is_removed_by_its_owners_name(image: str, tmp_path: Path) -> None:
    async def main() -> None:
        bench = EngineBench(await asyncio.to_thread(ContainerEngine.connect, str(tmp_path)), tmp_path)
        async with bench.running():
            await bench.pod("a", containers=main_of(image, "wait"))
            await bench.phase("a", "Running", LONG_S)
        assert len(containers_of_owner(bench.owner)) == 1
        await asyncio.to_thread(remove_containers, "somebody else".__eq__)
        assert len(containers_of_owner(bench.owner)) == 1
        await asyncio.to_thread(remove_containers, bench.owner.__eq__)
        assert containers_of_owner(bench.owner) == []
        await bench.containerd.close()
        await bench.engine.close()

    asyncio.run(main())
