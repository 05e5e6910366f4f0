"""Containers as processes of this machine: own process group, clean environment, own working folder and log file.

Nothing of the user's environment leaks in; mounts and device nodes of an allocation are not made (no root is asked
for), only its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mews.kube.api.objects import uid_of
from mews.kube.client.port import ExecResult
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.grpc_health import check
from mews.kube.emulated.kubelet.handlers import Exec, GrpcCheck, HandlerResult, HttpGet, Question, TcpSocket, timed_out
from mews.kube.emulated.kubelet.network import connect, get
from mews.kube.emulated.kubelet.programs import environment_of
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch
from mews.kube.system.program import FindProgram, no_program

_POLL_S = 0.1
_OUTPUT = 10 * 1024
"""So much of what a probe prints is kept."""


class FileLog:
    """A log in a file, written by the process itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ended = False

    def read(self, offset: int = 0) -> bytes:
        """All bytes from that offset on."""
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read()

    async def grown(self, offset: int) -> None:
        """Poll until there is more or the process has ended."""
        while not self.ended and self.path.stat().st_size <= offset:
            await rest(_POLL_S)


class RealProcess:
    """A container that runs as a group of processes on this machine."""

    def __init__(self, process: asyncio.subprocess.Process, log: FileLog, env: dict[str, str], folder: Path) -> None:
        self.log = log
        self._process = process
        self._env = env
        self._folder = folder

    @property
    def pid(self) -> int:
        """The first process of the group."""
        return self._process.pid

    async def wait(self) -> int:
        """Its exit code; 128 + n when signal n ended it."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # as in a container: with its first process all others end
        self.log.ended = True
        return code if code >= 0 else 128 - code

    async def stop(self, grace_s: float) -> None:
        """TERM to the group, KILL after the grace; real seconds, since the process lives in them."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), grace_s)
            except TimeoutError:
                self._signal(signal.SIGKILL)
                await self._process.wait()
        self._signal(signal.SIGKILL)

    async def exec(self, command: Sequence[str]) -> ExecResult:
        """Run a command in the container's environment and folder."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._env,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            return ExecResult(127, b"", f"exec {command[0]}: {error.strerror}\n".encode())
        try:
            stdout, stderr = await process.communicate()
        finally:
            _kill(process.pid)
            await process.wait()
        code = process.returncode or 0
        return ExecResult(code if code >= 0 else 128 - code, stdout, stderr)

    async def ask(self, question: Question) -> HandlerResult:
        """Do a probe's or a hook's action; its time is real, since the process lives in it."""
        match question.action:
            case HttpGet() as action:
                return await get(action, question.timeout_s)
            case TcpSocket() as action:
                return await connect(action, question.timeout_s)
            case GrpcCheck() as action:
                return await check(action, question.timeout_s)
            case Exec(command) as action:
                try:
                    async with asyncio.timeout(question.timeout_s):
                        done = await self.exec(command)
                except TimeoutError:
                    return HandlerResult(False, timed_out(action))
                text = (done.stdout + done.stderr)[:_OUTPUT].decode("utf-8", "replace")
                return HandlerResult(done.exit_code == 0, text, done.exit_code)
            case _:
                return HandlerResult(True)

    def _signal(self, number: int) -> None:
        _kill(self._process.pid, number)


class ProcessRuntime:
    """Starts containers as processes below a run folder, ``<pod uid>/<container>/<attempt>.log``; ``close`` removes it
    where it was made here. ``env`` is what the machine gives to every process; those of ``programs`` take
    as long as their annotations say, ``speed`` emulated seconds in each real one."""

    def __init__(
        self,
        folder: Path | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        *,
        speed: float = 1.0,
        programs: FindProgram = no_program,
    ) -> None:
        self._env = dict(env)
        self._speed = speed
        self._programs = programs
        self._own = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="mews-pods-"))
        self._running: list[RealProcess] = []

    async def start(self, launch: Launch) -> RealProcess:
        """Start one container as a process.

        Raises StartError (``RunContainerError``) when the program is not there.
        """
        folder = self._folder / uid_of(launch.pod) / launch.container
        work = _make(folder / "work")
        log = FileLog(folder / f"{launch.attempt}.log")
        given = {**self._env, **environment_of(launch, self._programs, self._speed), **launch.env}
        env = {"PATH": SEARCH_PATH, "HOME": str(work), "TMPDIR": str(work), **given}
        where = _existing(launch.working_dir) or work
        argv = _argv(launch)
        try:
            with log.path.open("wb") as file:
                process = await asyncio.create_subprocess_exec(
                    *argv, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file, env=env, cwd=where,
                    start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise StartError("RunContainerError", f"exec: {argv[0]!r}: {error.strerror}") from error
        except ValueError as error:  # a null byte, or half a surrogate pair, among arguments or variables
            raise StartError("RunContainerError", f"exec: {argv[0]!r}: {error}") from error
        self._running = [one for one in self._running if one._process.returncode is None]
        started = RealProcess(process, log, env, where)
        self._running.append(started)
        return started

    async def close(self) -> None:
        """Kill what still runs; nothing is left behind."""
        for process in self._running:
            await process.stop(0.0)
        self._running.clear()
        if self._own:
            shutil.rmtree(self._folder, ignore_errors=True)


def _make(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _existing(folder: str) -> Path | None:
    return Path(folder) if folder and Path(folder).is_dir() else None


def _kill(group: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _argv(launch: Launch) -> tuple[str, ...]:
    if launch.command:
        return (*launch.command, *launch.args)
    return (*(launch.image.process or ()), *launch.args)
