"""Containers as real processes of this machine."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mews.kube.clock import Clock, Pace, stream
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.errors import NoSuchContainerError, StartError
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.process import ProcessRuntime
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from tests.kube.emulated.kubelet.bench import pod, until

pytestmark = pytest.mark.wall
log = logging.getLogger(__name__)


@asynccontextmanager
async def daemon(folder: Path) -> AsyncIterator[Containerd]:
    simulated, processes = SimulatedRuntime(Pace()), ProcessRuntime(folder)
    containerd = Containerd(Clock.wall(), stream(1, "c"), simulated=simulated, processes=processes, network="127.9.1")
    try:
        yield containerd
    finally:
        await containerd.close()


def launch(name: str, command: list[str] | None = None, *, image: str = "busybox", **env: str) -> Launch:
    body: dict[str, Any] = pod(name, command, image=image)
    body["metadata"]["uid"] = f"uid-{name}"
    found = load_images().find(image)
    assert found is not None
    return Launch(body, "main", 0, found, tuple(command or ()), (), env)


async def ended(containerd: Containerd, uid: str) -> int:
    sandbox = containerd.sandbox(uid)
    assert sandbox is not None
    await until(lambda: not sandbox.instances["main"][-1].running, 5)
    return sandbox.instances["main"][-1].exit_code or 0


async def text(containerd: Containerd, uid: str, **options: Any) -> str:
    return b"".join([chunk async for chunk in containerd.log(uid, "main", **options)]).decode()


def alive(marker: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line and int(entry.name) != os.getpid():
                found.append(entry.name)
    return found


def test_a_process_sees_its_environment_and_nothing_of_the_user_s(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")

    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("env", ["env"], GREETING="hello")
            containerd.create(start.pod)
            await containerd.start(start)
            assert await ended(containerd, "uid-env") == 0
            shown = await text(containerd, "uid-env")
            assert "GREETING=hello" in shown
            assert "hunter2" not in shown
            names = {line.split("=", 1)[0] for line in shown.splitlines()}
            assert names <= {"GREETING", "PATH", "HOME", "TMPDIR", "PWD", "SHLVL", "_"}

    asyncio.run(main())


def test_gpu_check_prints_exactly_its_uuids_one_per_line(tmp_path: Path) -> None:
    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("gpus", image="mews/gpu-check:1", NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b")
            containerd.create(start.pod)
            await containerd.start(start)
            assert "".join([c.decode() async for c in containerd.log("uid-gpus", "main", follows=True)]) == (
                "GPU-a\nGPU-b\n"
            )
            assert await ended(containerd, "uid-gpus") == 0

    asyncio.run(main())


def test_term_ends_a_process_and_kill_one_that_ignores_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            for name, command, code in (
                ("obeys", "trap 'exit 7' TERM; echo up; while true; do sleep 0.05; done", 7),
                ("ignores", "trap '' TERM; echo up; while true; do sleep 0.05; done", 137),
            ):
                start = launch(name, ["sh", "-c", command])
                containerd.create(start.pod)
                await containerd.start(start)
                chunks = containerd.log(f"uid-{name}", "main", follows=True)
                assert await anext(chunks) == b"up\n"
                await containerd.stop(f"uid-{name}", "main", 0.5)
                assert await ended(containerd, f"uid-{name}") == code

    asyncio.run(main())


def test_close_leaves_no_process_behind(tmp_path: Path) -> None:
    marker = "3571.13"

    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("family", ["sh", "-c", f"sleep {marker} & sleep {marker} & wait"])
            containerd.create(start.pod)
            await containerd.start(start)
            await until(lambda: len(alive(marker)) == 3, 5)
        await until(lambda: not alive(marker), 5)

    asyncio.run(main())


def test_an_images_files_are_refused_where_nothing_can_be_mounted(tmp_path: Path) -> None:
    async def main() -> None:
        start = launch("files", ["true"])
        start = replace(start, image=replace(start.image, files={"/opt/app": str(tmp_path)}))
        with pytest.raises(StartError, match="its files need a mount namespace") as raised:
            await ProcessRuntime(tmp_path).start(start)
        assert raised.value.reason == "CreateContainerConfigError"

    asyncio.run(main())


def test_exec_runs_in_the_container_s_environment(tmp_path: Path) -> None:
    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("busy", ["sleep", "60"], COLOUR="red")
            sandbox = containerd.create(start.pod)
            assert sandbox.ip.startswith("127.9.1.")
            await containerd.start(start)
            result = await containerd.exec("uid-busy", "main", ["sh", "-c", "echo $COLOUR; echo oops >&2; exit 3"])
            assert (result.exit_code, result.stdout, result.stderr) == (3, b"red\n", b"oops\n")
            with pytest.raises(NoSuchContainerError, match='container "other"'):
                await containerd.exec("uid-busy", "other", ["true"])

    asyncio.run(main())


def test_a_program_that_is_not_there_is_a_start_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("typo", ["no-such-program"])
            containerd.create(start.pod)
            with pytest.raises(StartError, match="no-such-program") as raised:
                await containerd.start(start)
            assert raised.value.reason == "RunContainerError"

    asyncio.run(main())


def test_an_argument_that_no_process_can_have_is_a_start_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("odd", ["sleep", "\0"])
            containerd.create(start.pod)
            with pytest.raises(StartError, match="null byte"):
                await containerd.start(start)

    asyncio.run(main())


@pytest.mark.parametrize("end", ["down", "remove", "reboot"])
def test_what_a_pod_shares_is_forgotten_with_its_sandbox(tmp_path: Path, monkeypatch: Any, end: str) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(ProcessRuntime, "forget", lambda self, uid: forgotten.append(uid))

    async def main() -> None:
        async with daemon(tmp_path) as containerd:
            start = launch("shared", ["true"])
            containerd.create(start.pod)
            await containerd.start(start)
            await ended(containerd, "uid-shared")
            assert forgotten == []
            if end == "reboot":
                await containerd.reboot()
            else:
                getattr(containerd, end)("uid-shared")
            assert forgotten == ["uid-shared"]

    asyncio.run(main())
