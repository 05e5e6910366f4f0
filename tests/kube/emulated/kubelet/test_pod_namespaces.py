"""Process IDs and IPC objects of containers that are processes: their own, their pod's, or this machine's."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.mount_namespace import lacking
from mews.kube.emulated.kubelet.process import ProcessRuntime, RealProcess
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.unseen_volumes import shared_namespaces
from tests.kube.emulated.kubelet.bench import until
from tests.kube.emulated.kubelet.test_pod_roots import runtime_in

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(bool(lacking("pid")), reason=f"no process IDs of their own: {lacking('pid')}"),
]

NUMBERS = "echo /proc/[0-9]*"
TRAPPED = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.1; done"


def launch(name: str, script: str, *, among: tuple[str, ...] = ("main",), uid: str = "u", **spec: Any) -> Launch:
    """A start of that container, of a pod with all those that it is among."""
    containers = [{"name": each, "image": "team/app"} for each in among]
    pod = {
        "metadata": {"name": "p", "namespace": "ns", "uid": uid},
        "spec": {"nodeName": "n1", "containers": containers, **spec},
    }
    return Launch(pod, name, 0, Image("team/app", ("sh",)), ("sh", "-c", script), (), {}, ip="127.9.9.9")


def played(folder: Path, play: Callable[[ProcessRuntime], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        runtime = runtime_in(folder)
        try:
            async with asyncio.timeout(30):
                return await play(runtime)
        finally:
            await runtime.close()

    return asyncio.run(main())


async def said(process: RealProcess) -> list[str]:
    await process.wait()
    return process.log.read().decode().splitlines()


async def ready(process: RealProcess) -> None:
    await process.log.grown(0)


def test_a_container_is_number_one_and_sees_itself_alone(tmp_path: Path) -> None:
    async def play(runtime: ProcessRuntime) -> None:
        look = f"echo $$; {NUMBERS}; readlink /proc/self/ns/pid"
        found = await said(await runtime.start(launch("main", look)))
        assert found[0] == "1"
        assert set(found[1].split()) == {"/proc/1"}
        assert found[2] != os.readlink("/proc/self/ns/pid")

    played(tmp_path, play)


def test_commands_are_among_the_processes_of_their_container(tmp_path: Path) -> None:
    async def play(runtime: ProcessRuntime) -> None:
        process = await runtime.start(launch("main", TRAPPED))
        await ready(process)
        done = await process.exec(["sh", "-c", "tr '\\0' ' ' < /proc/1/cmdline; echo; kill -TERM 1; exit 7"])
        assert done.stdout.decode().startswith("sh -c trap"), done
        assert done.exit_code == 7
        assert await process.wait() == 3
        killed = await runtime.start(launch("main", "sleep 30"))
        assert (await killed.exec(["sh", "-c", "kill -9 $$"])).exit_code == 137

    played(tmp_path, play)


@pytest.mark.parametrize(("share", "code", "at_least_s"), [(False, 137, 1.0), (True, 143, 0.0)])
def test_the_first_process_ignores_term_unless_it_handles_it(
    tmp_path: Path, share: bool, code: int, at_least_s: float
) -> None:
    """As the kernel treats the init of a PID namespace (pid_namespaces(7)); below a pause there is no such thing."""

    async def play(runtime: ProcessRuntime) -> None:
        process = await runtime.start(launch("main", "echo ready; exec sleep 30", shareProcessNamespace=share))
        await ready(process)
        began = time.monotonic()
        await process.stop(1.0)
        assert await process.wait() == code
        assert at_least_s <= time.monotonic() - began < at_least_s + 0.9
        handles = await runtime.start(launch("main", TRAPPED, uid="v", shareProcessNamespace=share))
        await ready(handles)
        await handles.stop(20.0)
        assert await handles.wait() == 3

    played(tmp_path, play)


def test_only_the_first_process_is_told_to_end(tmp_path: Path) -> None:
    """What it has started is its own business, until it ends."""

    async def play(runtime: ProcessRuntime) -> None:
        script = "(sleep 0.5; echo whole) & trap 'wait; exit 3' TERM; echo ready; while :; do sleep 0.1; done"
        process = await runtime.start(launch("main", script))
        await ready(process)
        await process.stop(20.0)
        assert await said(process) == ["ready", "whole"]

    played(tmp_path, play)


def test_nothing_of_a_container_outlives_it(tmp_path: Path) -> None:
    """Not even what left its process group."""
    mark = f"mews-daemon-{os.getpid()}"

    async def play(runtime: ProcessRuntime) -> None:
        start = launch("main", f"setsid sh -c 'echo ready; sleep 987; :' {mark} & wait")
        process = await runtime.start(start)
        await ready(process)
        assert named(mark)
        await process.stop(0.0)
        await process.wait()
        await until(lambda: not named(mark), 20)

    played(tmp_path, play)


def named(word: str) -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(line)
    return found


SPACES = "readlink /proc/self/ns/ipc; readlink /proc/self/ns/pid; id -u"


def test_containers_of_a_pod_share_ipc_and_each_has_its_processes(tmp_path: Path) -> None:
    """Whatever they call their users, and also after the first of them has ended."""

    async def play(runtime: ProcessRuntime) -> None:
        both: Mapping[str, Any] = {"among": ("one", "two")}
        first = await said(await runtime.start(launch("one", SPACES, **both, securityContext={"runAsUser": 7})))
        second = await runtime.start(launch("two", f"{SPACES}; {NUMBERS}; sleep 30", **both))
        await until(lambda: len(second.log.read().splitlines()) > 3, 20)
        found = second.log.read().decode().splitlines()
        assert (found[0], first[2], found[2]) == (first[0], "7", str(os.getuid()))
        assert first[1] != found[1]
        assert found[3] == "/proc/1"
        done = await second.exec(["sh", "-c", SPACES])
        assert done.stdout.decode().splitlines() == found[:3]
        runtime.forget("u")
        after = await said(await runtime.start(launch("one", SPACES, **both)))
        assert after[0] not in (found[0], os.readlink("/proc/self/ns/ipc"))

    played(tmp_path, play)


def test_containers_see_each_other_where_the_pod_says_so(tmp_path: Path) -> None:
    async def play(runtime: ProcessRuntime) -> None:
        shared: dict[str, Any] = {"among": ("one", "two"), "shareProcessNamespace": True}
        one = await runtime.start(launch("one", "(sleep 0.1 &); echo ready; exec sleep 31", **shared))
        await ready(one)
        user = {"securityContext": {"runAsUser": 1234}}
        two = await runtime.start(launch("two", "echo ready; exec sleep 32", **shared, **user))
        await ready(two)
        await asyncio.sleep(0.3)
        look = "id -u; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; cat $p/comm; done"
        done = (await two.exec(["sh", "-c", look])).stdout.decode().splitlines()
        assert done[0] == "1234"
        assert sorted(line for line in done if line.startswith("sleep")) == ["sleep 31 sleep", "sleep 32 sleep"], done
        assert [line for line in done if line.endswith(" pause")], done
        assert not any("defunct" in line for line in done)
        assert (await two.exec(["sh", "-c", "kill $(pgrep -fx 'sleep 31')"])).exit_code == 0
        assert await one.wait() == 143
        runtime.forget("u")
        assert await two.wait() == 137

    played(tmp_path, play)


@pytest.mark.parametrize(("field", "kind", "other"), [("hostPID", "pid", "ipc"), ("hostIPC", "ipc", "pid")])
def test_pods_may_have_the_machines(tmp_path: Path, field: str, kind: str, other: str) -> None:
    async def play(runtime: ProcessRuntime) -> None:
        look = f"readlink /proc/self/ns/{kind}; readlink /proc/self/ns/{other}"
        found = await said(await runtime.start(launch("main", look, **{field: True})))
        assert found[0] == os.readlink(f"/proc/self/ns/{kind}")
        assert found[1] != os.readlink(f"/proc/self/ns/{other}")

    played(tmp_path, play)


def test_an_ephemeral_container_sees_its_target(tmp_path: Path) -> None:
    debugger = {"name": "debugger", "image": "team/app", "targetContainerName": "two"}

    async def play(runtime: ProcessRuntime) -> None:
        both: dict[str, Any] = {"among": ("one", "two"), "ephemeralContainers": [debugger]}
        with pytest.raises(StartError, match="unable to find target container two"):
            await runtime.start(launch("debugger", "true", **both))
        await runtime.start(launch("one", "sleep 31", **both))
        two = await runtime.start(launch("two", "exec sleep 32", **both))
        look = "tr '\\0' ' ' < /proc/1/cmdline; echo; echo $(($$ > 1))"
        assert await said(await runtime.start(launch("debugger", look, **both))) == ["sleep 32 ", "1"]
        await two.stop(0.0)
        with pytest.raises(StartError, match="target container two is not running"):
            await runtime.start(launch("debugger", "true", **both))

    played(tmp_path, play)


def test_programs_ignore_no_signal(tmp_path: Path) -> None:
    """Python ignores some, as do those whom a shell started in the background: what takes their place must not.

    The C library keeps 32 and 33 to itself (glibc's internal-signals.h): whoever inherits them ignored cannot tell.
    """

    async def play(runtime: ProcessRuntime) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            found = await said(await runtime.start(launch("main", "grep SigIgn /proc/self/status")))
        finally:
            signal.signal(signal.SIGHUP, before)
        ignored = int(found[0].split()[1], 16)
        assert [number for number in signal.valid_signals() if ignored >> (number - 1) & 1] == []

    played(tmp_path, play)


LACKS = """
from mews.kube.emulated.kubelet.mount_namespace import lacking
print(lacking("ipc")); print(lacking("pid"))
"""


def test_where_parts_of_proc_are_covered_process_ids_are_the_machines() -> None:
    """As in Docker's containers, whose user may make no /proc (mount_too_revealing of fs/namespace.c)."""
    if os.getuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("not root, or no unshare")
    cover = f"mount -t tmpfs none /proc/bus && exec {sys.executable} -c '{LACKS}'"
    words = ["unshare", "--mount", "sh", "-c", cover]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "mount(proc, /proc, proc): Operation not permitted"]


@pytest.mark.parametrize(
    ("spec", "lacks", "text"),
    [
        ({}, {}, ""),
        ({}, {"pid": "no"}, "Containers share the process IDs of this machine: no"),
        ({"hostPID": True}, {"pid": "no"}, ""),
        ({}, {"pid": "no", "ipc": "nor"}, "Containers share the process IDs and IPC objects of this machine: no"),
    ],
)
def test_what_is_shared_against_the_pods_will_is_said(spec: Any, lacks: Any, text: str) -> None:
    assert shared_namespaces({"spec": spec}, lambda kind: lacks.get(kind, "")) == text
