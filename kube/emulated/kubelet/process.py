"""Containers as processes of this machine: own process group, clean environment, own working folder and log file.

Nothing of the user's environment leaks in; mounts and device nodes of an allocation are not made, only its environment.
Where this machine lets its users make namespaces, a container has a root of its own with all its volumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from mews.kube.api.objects import all_containers_of, uid_of
from mews.kube.client.port import ExecResult
from mews.kube.deviceplugin.port import Mount
from mews.kube.emulated.kubelet.cgroups import Cgroup, Cgroups
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.exec_session import Surroundings, feed_terminal, resize_terminal, run_command
from mews.kube.emulated.kubelet.forked_process import ForkedProcess
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question
from mews.kube.emulated.kubelet.in_cluster import FOLDER, InCluster
from mews.kube.emulated.kubelet.kernel_traces import KernelTraces
from mews.kube.emulated.kubelet.listening import connect_to_listener
from mews.kube.emulated.kubelet.mount_namespace import (
    ContainerRoot,
    Mounts,
    NamespaceStart,
    entry_of,
    namespaces_lacking,
)
from mews.kube.emulated.kubelet.output import OutputLog, output_pipes
from mews.kube.emulated.kubelet.pod_roots import PodRoots
from mews.kube.emulated.kubelet.programs import environment_of
from mews.kube.emulated.kubelet.real_actions import act
from mews.kube.emulated.kubelet.runtime import SEARCH_PATH, Launch
from mews.kube.emulated.kubelet.terminal import Descriptor, Terminal, with_terminal
from mews.kube.emulated.streaming.standard_streams import STDOUT, StandardStreams
from mews.kube.system.program import FindProgram, no_program

ACCOUNT_FOLDER = "MEWS_SERVICE_ACCOUNT"
"""Names the folder of a pod's service account, for where nothing can be mounted."""


class RealProcess:
    """A container that runs as a group of processes on this machine; ``stdin`` is its standard input, where it has one,
    ``terminal`` what it runs on instead."""

    def __init__(
        self,
        process: asyncio.subprocess.Process | ForkedProcess,
        log: OutputLog,
        around: Surroundings,
        *,
        stdin: Descriptor | None = None,
        stdin_once: bool = False,
        terminal: Terminal | None = None,
    ) -> None:
        self.log = log
        self._process = process
        self._around = around
        self._stdin = stdin
        self._stdin_once = stdin_once
        self._terminal = terminal
        self._is_alone = False
        self.kernel = KernelTraces()
        self._place: Callable[[str], str] = str

    @property
    def pid(self) -> int:
        """The first process of the group."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process has not ended yet."""
        return self._process.returncode is None

    async def wait(self) -> int:
        """Return its exit code; 128 + n when signal n ended it."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # as in a container: with its first process all others end
        self.kernel.end()
        self.finish()
        return code if code >= 0 else 128 - code

    def enter_by(self, entry: tuple[str, ...], passed: tuple[int, ...] = ()) -> None:
        """Commands see what the process sees by going through that program first, which inherits descriptors."""
        self._around = replace(self._around, entry=entry, passed=passed)

    def found_at(self, place: Callable[[str], str]) -> None:
        """Pods are known by addresses of which that function says where on this machine they are."""
        self._place = place

    async def become(self, child: int) -> None:
        """What was started has made that process, which the container is, and ends."""
        started, self._process = self._process, ForkedProcess(child)
        self._is_alone = True
        await started.wait()

    def finish(self) -> None:
        """Its process is gone: read what it left, close its streams."""
        self.log.end()
        self.kernel.remove()
        if self._stdin is not None:
            self._stdin.close()
        if self._terminal is not None:
            self._terminal.ours.close()

    async def stop(self, grace_s: float) -> None:
        """TERM, KILL to the group after the grace; real seconds, since the process lives in them. TERM is for the first
        process of a container with process IDs of its own, which ignores it unless it handles it, else for the group.
        """
        if self._process.returncode is None:
            if self._is_alone:
                os.kill(self.pid, signal.SIGTERM)
            else:
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
                *(*self._around.entry, *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(self._around.env),
                cwd=self._around.folder,
                start_new_session=True,
                pass_fds=self._around.passed,
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

    async def run(self, command: Sequence[str], streams: StandardStreams) -> int:
        """Run a command in the container's environment and folder, with a client's streams.

        Raises StartRefusedError.
        """
        return await run_command(command, streams, self._around)

    async def attach(self, streams: StandardStreams) -> int:
        """Return what the container writes from now on goes to the client; what the client sends goes to its standard
        input, if it has one, which ends with the first client where the pod says so (``stdinOnce``)."""
        others = []
        if self._terminal is not None:
            others.append(asyncio.create_task(resize_terminal(streams, self._terminal)))
        stdin = self._terminal.ours if self._terminal is not None else self._stdin
        if streams.options.stdin and stdin is not None:
            others.append(asyncio.create_task(self._feed(streams, stdin)))
        try:
            await self.log.show(streams)
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        return 0

    async def _feed(self, streams: StandardStreams, stdin: Descriptor) -> None:
        await feed_terminal(streams, stdin)
        if self._stdin_once and self._stdin is not None:
            self._stdin.close()

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the pod's address, else to another one on which the container itself listens at the port.

        Raises OSError.
        """
        return await connect_to_listener(self.pid, self._place(ip), port)

    async def ask(self, question: Question) -> HandlerResult:
        """Do a probe's or a hook's action; its time is real, since the process lives in it."""
        return await act(question, self.exec, self._place)

    def _signal(self, number: int) -> None:
        _kill(self._process.pid, number)


class ProcessRuntime:
    """Starts containers as processes below a run folder, ``<pod uid>/<container>/<attempt>.log``; ``close`` removes it
    where it was made here. ``env`` is what the machine gives to every process; those of ``programs`` take
    as long as their annotations say, ``speed`` emulated seconds in each real one. ``roots`` makes the roots of
    containers; without it they see no volumes but their account. ``groups``: where limits hold; else they are only
    counted."""

    def __init__(
        self,
        folder: Path | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        *,
        speed: float = 1.0,
        programs: FindProgram = no_program,
        in_cluster: InCluster | None = None,
        roots: PodRoots | None = None,
        groups: Cgroups | None = None,
    ) -> None:
        self._roots = roots
        self._groups = groups
        self._env = dict(env)
        self._in_cluster = in_cluster
        self._speed = speed
        self._programs = programs
        self._own = folder is None
        self._folder = folder or Path(tempfile.mkdtemp(prefix="mews-pods-"))
        self._running: dict[RealProcess, str] = {}

    async def start(self, launch: Launch) -> RealProcess:
        """Start one container as a process.

        Raises StartError (``RunContainerError``) when the program is not there.
        """
        folder = self._folder / uid_of(launch.pod) / launch.container
        work, group = _make(folder / "work"), None
        known, account = await self._cluster_view(launch)
        given = {**self._env, **known, **environment_of(launch, self._programs, self._speed), **launch.env}
        env = {"PATH": SEARCH_PATH, "HOME": str(work), **given}
        if self._roots is not None and await _can_mount():
            further = [Mount(target, str(source), read_only=True) for source, target in account]
            root = await self._roots.root(launch, work=work, env=env, further=further)
            group = self._group(launch)
            seen: Mounts | ContainerRoot = root if group is None else replace(root, groups=group.entries)
            around = Surroundings(env, work)
        elif launch.image.files:
            text = f"image {launch.image.name}: its files need a mount namespace: {namespaces_lacking()}"
            raise StartError("CreateContainerConfigError", text)
        else:
            seen = account
            around = Surroundings({"TMPDIR": str(work), **env}, _existing(launch.working_dir) or work)
        log = OutputLog(folder / f"{launch.attempt}.log")
        try:
            if seen:
                started = await self._started_in_namespaces(launch, log, around, seen)
            else:
                started = await self._started(launch, log, around)
        except BaseException:
            if group is not None:
                group.remove()
            raise
        message = None if self._roots is None else self._roots.last_words(launch)
        started.kernel = KernelTraces(launch.container, group, message)
        self._running = {one: uid for one, uid in self._running.items() if one.running}
        self._running[started] = uid_of(launch.pod)
        if self._roots is not None:
            self._roots.keep(self._running.values())
            started.found_at(self._roots.place)
        return started

    def _group(self, launch: Launch) -> Cgroup | None:
        """Return the container's control group; None where it has none."""
        if self._groups is None:
            return None
        try:
            return self._groups.make(f"{uid_of(launch.pod)}.{launch.container}.{launch.attempt}", launch.resources)
        except OSError as error:
            text = f"failed to apply cgroup configuration: {error.filename}: {error.strerror}"
            raise StartError("RunContainerError", text) from error

    async def _cluster_view(self, launch: Launch) -> tuple[Mapping[str, str], Mounts]:
        """Return the variables and files by which a program finds the API of its cluster."""
        if self._in_cluster is None:
            return {}, ()
        variables, folder = dict(self._in_cluster.variables()), await self._in_cluster.account(launch)
        if folder is None:
            return variables, ()
        variables[ACCOUNT_FOLDER] = str(folder)
        return variables, ((folder, FOLDER),) if await _can_mount() else ()

    async def _started_in_namespaces(
        self, launch: Launch, log: OutputLog, around: Surroundings, seen: Mounts | ContainerRoot
    ) -> RealProcess:
        start = NamespaceStart(seen)
        try:
            started = await self._started(launch, log, around, start)
        except BaseException:
            start.abandon()
            raise
        fault = await start.fault()
        if start.child is not None:
            await started.become(start.child)
        if self._roots is not None:
            self._roots.namespaces.started(launch, started.pid, start.kept)
        if fault:
            await started.stop(0.0)
            started.finish()
            raise StartError("RunContainerError", f"exec: {_argv(launch)[0]!r}: {fault}")
        root = seen if isinstance(seen, ContainerRoot) else None
        started.enter_by(entry_of(started.pid, root), () if root is None else root.passed)
        return started

    async def _started(
        self, launch: Launch, log: OutputLog, around: Surroundings, start: NamespaceStart | None = None
    ) -> RealProcess:
        spec = next((each for each in all_containers_of(launch.pod) if each["name"] == launch.container), {})
        try:
            if spec.get("tty"):
                return await _on_a_terminal(launch, log, around, start)
            stdin, once = bool(spec.get("stdin")), bool(spec.get("stdinOnce"))
            return await _over_pipes(launch, log, around, start, stdin=stdin, once=once)
        except OSError as error:
            log.end()
            raise StartError("RunContainerError", f"exec: {_argv(launch)[0]!r}: {error.strerror}") from error
        except ValueError as error:  # a null byte, or half a surrogate pair, among arguments or variables
            log.end()
            raise StartError("RunContainerError", f"exec: {_argv(launch)[0]!r}: {error}") from error

    def forget(self, uid: str) -> None:
        """The pod's sandbox is down."""
        if self._roots is not None:
            self._roots.namespaces.forget(uid)

    async def close(self) -> None:
        """Kill what still runs; nothing is left behind."""
        for process in self._running:
            await process.stop(0.0)
            process.finish()
        if self._roots is not None:
            await self._roots.close()
        if self._in_cluster is not None:
            await self._in_cluster.close()
        self._running.clear()
        if self._groups is not None:
            self._groups.close()
        if self._own:
            shutil.rmtree(self._folder, ignore_errors=True)


async def _can_mount() -> bool:
    return not await asyncio.to_thread(namespaces_lacking)


async def _over_pipes(
    launch: Launch, log: OutputLog, around: Surroundings, start: NamespaceStart | None, *, stdin: bool, once: bool
) -> RealProcess:
    outputs = output_pipes()
    source, sink = os.pipe() if stdin else (asyncio.subprocess.DEVNULL, -1)
    try:
        process = await asyncio.create_subprocess_exec(
            *_prefix(start), *_argv(launch), stdin=source, stdout=outputs[0].write_end, stderr=outputs[1].write_end,
            env=dict(around.env), cwd=around.folder, start_new_session=True,
            pass_fds=_passed(start),
        )  # fmt: skip
    except BaseException:
        for end in (*(each.read_end for each in outputs), sink):
            if end >= 0:
                os.close(end)
        raise
    finally:
        for output in outputs:
            output.close_write_end()
        if stdin:
            os.close(source)
    for output in outputs:
        log.follow(output.read_end, output.stream)
    return RealProcess(process, log, around, stdin=Descriptor(sink) if stdin else None, stdin_once=once)


async def _on_a_terminal(
    launch: Launch, log: OutputLog, around: Surroundings, start: NamespaceStart | None
) -> RealProcess:
    terminal, around = Terminal(), Surroundings({"TERM": "xterm", **around.env}, around.folder, around.entry)
    argv, leads = with_terminal(_argv(launch)) if start is None else ((*start.prefix, *_argv(launch)), False)
    end = terminal.process_end
    try:
        if start is None and shutil.which(_argv(launch)[0], path=around.env["PATH"]) is None:
            raise FileNotFoundError(2, "No such file or directory")
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=end, stdout=end, stderr=end, env=dict(around.env), cwd=around.folder,
            start_new_session=not leads, pass_fds=_passed(start),
        )  # fmt: skip
    except BaseException:
        terminal.ours.close()
        raise
    finally:
        terminal.close_process_end()
    log.follow(terminal.ours.number, STDOUT, borrowed=True)
    return RealProcess(process, log, around, terminal=terminal)


def _prefix(start: NamespaceStart | None) -> tuple[str, ...]:
    return () if start is None else start.prefix


def _passed(start: NamespaceStart | None) -> tuple[int, ...]:
    return () if start is None else start.passed


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
    process = () if launch.image.is_replaced_by(launch.args) else launch.image.process or ()
    return (*process, *launch.args)
