"""Tells the emulated host which devices a container's process uses while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from mews.kube.api.objects import Object, annotations_of, name_of, uid_of
from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question
from mews.kube.emulated.kubelet.load import LOAD, REASON, load_of
from mews.kube.emulated.kubelet.runtime import Launch, Log, Process, Runtime
from mews.kube.emulated.streaming.standard_streams import StandardStreams


class DeviceUsers(Protocol):
    """Who is told which processes use devices; its methods must not wait."""

    def check(self, load: Any) -> None:
        """Raises ValueError for what ``begin`` would not take as a load."""
        ...

    def begin(
        self, key: str, uuids: Sequence[str], *, pid: int, name: str, load: Any = None, cgroup: str = "/"
    ) -> None:
        """A process has opened devices, on which it works as ``load`` says (None: not at all)."""
        ...

    def end(self, key: str) -> None:
        """The process has ended, and its devices are closed."""
        ...


class ReportingRuntime:
    """A Runtime whose containers are told of: which devices they use is known of the launch, or else stands in one of
    the variables ``uuid_envs``. Traces of loads are files in ``traces``."""

    def __init__(
        self, runtime: Runtime, users: DeviceUsers, uuid_envs: Sequence[str], traces: Path | None = None
    ) -> None:
        self._runtime = runtime
        self._traces = traces
        self._users = users
        self._uuid_envs = tuple(uuid_envs)

    async def start(self, launch: Launch) -> Process:
        """Start one container, and report the devices that it uses.

        Raises StartError.
        """
        uuids = list(launch.gpus or ())
        if launch.gpus is None:
            uuids = [uuid for env in self._uuid_envs for uuid in launch.env.get(env, "").split(",") if uuid]
        load = self._load(launch) if uuids else None
        process = await self._runtime.start(launch)
        if not uuids:
            return process
        key = f"pod/{uid_of(launch.pod)}/{launch.container}/{launch.attempt}"
        # A simulated process has no number of its own: one that no process of a Linux machine can have.
        pid = getattr(process, "pid", 0) or 0x400000 + crc32(key.encode()) % 0x3FFFFF
        name = f"{name_of(launch.pod)}/{launch.container}"
        self._users.begin(key, uuids, pid=pid, name=name, load=load, cgroup=_cgroup(launch.pod, key))
        return _ReportingProcess(process, self._users, key)

    def _load(self, launch: Launch) -> Any:
        load = load_of(launch, self._traces)
        if load is None:
            return None
        try:
            self._users.check(load)
        except ValueError as error:
            where = f"annotation {LOAD}" if LOAD in annotations_of(launch.pod) else f"image {launch.image.name}"
            raise StartError(REASON, f"{where}: {error}") from error
        return load

    def forget(self, uid: str) -> None:
        """The pod's sandbox is down."""
        self._runtime.forget(uid)

    async def close(self) -> None:
        """End every container."""
        await self._runtime.close()


def _cgroup(pod: Object, key: str) -> str:
    """Return it as a kubelet has it with cgroup v2 and the driver cgroupfs; a guaranteed pod has no folder of its
    class."""
    quality = str((pod.get("status") or {}).get("qosClass", "BestEffort")).lower()
    above = "/kubepods" if quality == "guaranteed" else f"/kubepods/{quality}"
    return f"{above}/pod{uid_of(pod)}/{sha256(key.encode()).hexdigest()}"


class _ReportingProcess:
    """A process whose end is told."""

    def __init__(self, process: Process, users: DeviceUsers, key: str) -> None:
        self._process = process
        self._users = users
        self._key = key

    @property
    def log(self) -> Log:
        return self._process.log

    @property
    def pid(self) -> int:
        return int(getattr(self._process, "pid", 0))

    async def wait(self) -> int:
        code = await self._process.wait()
        self._users.end(self._key)
        return code

    async def stop(self, grace_s: float) -> None:
        await self._process.stop(grace_s)

    async def exec(self, command: Sequence[str]) -> ExecResult:
        return await self._process.exec(command)

    async def run(self, command: Sequence[str], streams: StandardStreams) -> int:
        return await self._process.run(command, streams)

    async def attach(self, streams: StandardStreams) -> int:
        return await self._process.attach(streams)

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._process.dial(ip, port)

    async def ask(self, question: Question) -> HandlerResult:
        return await self._process.ask(question)
