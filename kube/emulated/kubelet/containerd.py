"""One node's container daemon: sandboxes and containers, which live on while their kubelet is dead."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, all_containers_of, init_containers_of, name_of, namespace_of, uid_of
from mews.kube.client.port import ExecResult
from mews.kube.clock import Clock
from mews.kube.emulated.kubelet.errors import NoSuchContainerError
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question, not_listening
from mews.kube.emulated.kubelet.log_text import LogSelection, LogText, pieces, tail_start
from mews.kube.emulated.kubelet.runtime import (
    EnginePort,
    ImageStore,
    KernelProcess,
    Launch,
    LogMark,
    Process,
    Runtime,
)
from mews.kube.runtimehook.port import RunningEnvironment

if TYPE_CHECKING:
    from mews.kube.emulated.kubelet.images import Image
    from mews.kube.emulated.kubelet.usage import UsageMeter
    from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes
    from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage


@dataclass(frozen=True, slots=True)
class ContainerInstance:
    """One start of a container; times are unix seconds. ``exit_code`` is None while it runs; ``reason`` is "" where the
    exit code says it all; ``message`` is the end of its log, for a container that failed and wants it told;
    ``resources`` are the requests and limits of cpu and memory that it runs with."""

    container: str
    id: str
    attempt: int
    started_at: float
    finished_at: float | None = None
    exit_code: int | None = None
    reason: str = ""
    message: str = ""
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)

    @property
    def running(self) -> bool:
        """Whether the container has not ended yet."""
        return self.exit_code is None


@dataclass(slots=True)
class Sandbox:
    """One pod on this node: its address and its containers' starts, oldest first."""

    pod: Object
    ip: str
    ready: bool = True
    instances: dict[str, tuple[ContainerInstance, ...]] = field(default_factory=dict)
    processes: dict[str, list[Process]] = field(default_factory=dict)
    ends: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    envs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Of each container's latest start."""
    answers: dict[tuple[str, str, bool], int] = field(default_factory=dict)
    """How often a question (container, purpose) went well, or not."""


_LONGEST_MESSAGE = 4096
"""Bytes of a termination message (MaxContainerTerminationMessageLength of pkg/kubelet/container/runtime.go)."""
Listener = Callable[[str], None]
"""Called with a pod's uid when one of its containers started or ended. Must not wait."""


class Containerd:
    """Runs containers by ``engine`` or as ``processes`` where the image can be run so and these are given, else plays
    them.

    ``volumes`` are those of the processes' pods; None where nobody makes any.
    ``network`` is the first three numbers of the pods' addresses: ``10.244.1``, or ``127.7.1`` where processes are to
    have an address of their own on this machine.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        simulated: Runtime,
        processes: Runtime | None = None,
        engine: EnginePort | None = None,
        volumes: PodVolumes | None = None,
        network: str = "10.244.0",
    ) -> None:
        self._clock = clock
        self._began = clock.now()
        self._rng = rng
        self._simulated = simulated
        self._processes = processes
        self._engine = engine
        self.volumes = volumes
        self._network = network
        self._addresses = 0
        self._sandboxes: dict[str, Sandbox] = {}
        self._listeners: list[Listener] = []
        self._watching: set[asyncio.Task[None]] = set()
        self._meter: UsageMeter | None = None
        self.boots = 0
        """How often its machine was started anew."""

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Hear of changes; call the result to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def sandbox(self, uid: str) -> Sandbox | None:
        """Return the pod's sandbox, up or stopped, or None."""
        return self._sandboxes.get(uid)

    def sandboxes(self) -> tuple[Sandbox, ...]:
        """Return all of them, oldest first."""
        return tuple(self._sandboxes.values())

    def create(self, pod: Object) -> Sandbox:
        """Bring up a sandbox with an address of its own. In place of one that is down: its main containers' starts are
        remembered, its init containers are to run again."""
        taken = {sandbox.ip for sandbox in self._sandboxes.values() if sandbox.ready}
        for _ in range(253):
            self._addresses = self._addresses % 253 + 1
            if f"{self._network}.{self._addresses + 1}" not in taken:
                break
        sandbox = Sandbox(pod, f"{self._network}.{self._addresses + 1}")
        down, inits = self._sandboxes.get(uid_of(pod)), {init["name"] for init in init_containers_of(pod)}
        if down is not None:
            sandbox.instances = {name: starts for name, starts in down.instances.items() if name not in inits}
            sandbox.processes = {name: started for name, started in down.processes.items() if name not in inits}
        self._sandboxes[uid_of(pod)] = sandbox
        self._notify(uid_of(pod))
        return sandbox

    async def start(self, launch: Launch) -> ContainerInstance:
        """Start a container in its pod's sandbox.

        Raises StartError.
        """
        uid = uid_of(launch.pod)
        sandbox = self._sandboxes[uid]
        process = await self._runtime_of(launch).start(launch)
        instance = ContainerInstance(
            launch.container,
            f"{self._rng.getrandbits(256):064x}",
            launch.attempt,
            self._clock.now(),
            resources=launch.resources,
        )
        sandbox.instances[launch.container] = (*sandbox.instances.get(launch.container, ())[-1:], instance)
        sandbox.processes[launch.container] = [*sandbox.processes.get(launch.container, [])[-1:], process]
        sandbox.envs[launch.container] = launch.env
        task = asyncio.get_running_loop().create_task(self._watch(uid, instance, process))
        sandbox.ends[launch.container] = task
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        self._notify(uid)
        return instance

    def _runtime_of(self, launch: Launch) -> Runtime:
        if self._engine is not None and launch.image.container:
            return self._engine.runtime
        if self._processes is not None and self.is_process(launch.image):
            return self._processes
        return self._simulated

    def is_process(self, image: Image | None) -> bool:
        """Return whether containers of that image run as processes of this machine."""
        if image is None or self._processes is None or (self._engine is not None and image.container):
            return False
        return image.process is not None

    @property
    def image_store(self) -> ImageStore | None:
        """The images of the engine; None where there is no engine."""
        return None if self._engine is None else self._engine.store

    async def _watch(self, uid: str, instance: ContainerInstance, process: Process) -> None:
        code = await process.wait()
        sandbox = self._sandboxes.get(uid)
        if sandbox is None:
            return
        ended = replace(instance, finished_at=self._clock.now(), exit_code=code)
        if isinstance(process, KernelProcess):
            # containerd: whichever of its processes that was
            reason = "OOMKilled" if process.kernel.killed_for_memory else ""
            message = process.kernel.last_words()[-_LONGEST_MESSAGE:].decode("utf-8", "replace")
            ended = replace(ended, reason=reason, message=message)
        if code and not ended.message and _ends_with_log(sandbox.pod, instance.container):
            ended = replace(ended, message=_last_words(process.log.read()))
        known = sandbox.instances.get(instance.container, ())
        if not any(one.id == ended.id and one.running for one in known):
            return
        sandbox.instances[instance.container] = tuple(ended if one.id == ended.id else one for one in known)
        self._notify(uid)

    def environment(self, uid: str, container: str) -> Mapping[str, str]:
        """Return what a container's latest start has in its environment; {} for one that never started."""
        sandbox = self._sandboxes.get(uid)
        return {} if sandbox is None else sandbox.envs.get(container, {})

    def resize(self, uid: str, container: str, resources: Mapping[str, Mapping[str, Any]]) -> None:
        """Give a container that runs other amounts.

        Raises StartError where it cannot have them.
        """
        sandbox = self._sandboxes.get(uid)
        starts = sandbox.instances.get(container, ()) if sandbox is not None else ()
        if sandbox is not None and starts and starts[-1].running:
            process = sandbox.processes[container][-1]
            if isinstance(process, KernelProcess):
                process.kernel.limit(resources)
            sandbox.instances[container] = (*starts[:-1], replace(starts[-1], resources=resources))

    def annotate(self, uid: str, annotations: Mapping[str, str]) -> None:
        """A pod's annotations changed while it runs: what its played containers use may have."""
        sandbox = self._sandboxes.get(uid)
        if sandbox is not None:
            metadata = {**sandbox.pod["metadata"], "annotations": dict(annotations)}
            sandbox.pod = {**sandbox.pod, "metadata": metadata}

    async def stop(self, uid: str, container: str, grace_s: float) -> None:
        """TERM, then KILL after the grace; returns when the container has ended and is recorded so."""
        sandbox = self._sandboxes.get(uid)
        if sandbox is None or not sandbox.processes.get(container):
            return
        end = sandbox.ends[container]
        await sandbox.processes[container][-1].stop(grace_s)
        await asyncio.wait((end,))

    async def reboot(self) -> None:
        """The machine goes down and comes up: every sandbox is down, what ran ended with 255, reason Unknown."""
        self.boots += 1
        ended = []
        for uid, sandbox in self._sandboxes.items():
            self.down(uid)
            for name, starts in sandbox.instances.items():
                if starts and starts[-1].running:
                    lost = replace(starts[-1], finished_at=self._clock.now(), exit_code=255, reason="Unknown")
                    sandbox.instances[name] = (*starts[:-1], lost)
                    ended.append(sandbox.processes[name][-1].stop(0.0))
        await asyncio.gather(*ended)

    def down(self, uid: str) -> None:
        """Stop the sandbox; its containers must have ended."""
        if uid in self._sandboxes:
            self._sandboxes[uid].ready = False
        if self._processes is not None:
            self._processes.forget(uid)

    def remove(self, uid: str) -> None:
        """Forget a pod, its logs and its volumes."""
        self.down(uid)
        self._sandboxes.pop(uid, None)
        if self.volumes is not None:
            self.volumes.remove(uid)

    def log(
        self,
        uid: str,
        container: str,
        *,
        follows: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Return a container's log in chunks; ``since`` in unix seconds.

        Raises NoSuchContainerError at once.
        """
        process = self._process(uid, container, previous=previous)
        selection = LogSelection(tail_lines, since, timestamps, limit_bytes)
        return _chunks(process, selection, follows=follows, clock=self._clock)

    async def exec(self, uid: str, container: str, command: Sequence[str]) -> ExecResult:
        """Run a command beside a running container.

        Raises NoSuchContainerError, ExecRefusedError.
        """
        return await self.running(uid, container).exec(command)

    def running(self, uid: str, container: str) -> Process:
        """Return the process of a container that runs.

        Raises NoSuchContainerError.
        """
        process = self._process(uid, container)
        if not self._sandboxes[uid].instances[container][-1].running:
            raise NoSuchContainerError(f"container {container} is not running")
        return process

    async def dial(self, uid: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of a pod: to the first of its containers that listens there.

        Raises OSError.
        """
        sandbox, fault = self._sandboxes[uid], ConnectionRefusedError(not_listening(port))
        for name, starts in sandbox.instances.items():
            if starts and starts[-1].running:
                try:
                    return await sandbox.processes[name][-1].dial(sandbox.ip, port)
                except ConnectionRefusedError as error:
                    fault = error
        raise fault

    async def ask(self, uid: str, container: str, question: Question) -> HandlerResult:
        """Do a probe's or a hook's action in a container.

        Raises NoSuchContainerError.
        """
        result = await self._process(uid, container).ask(question)
        sandbox = self._sandboxes.get(uid)
        if sandbox is not None:
            key = (container, question.purpose, result.well)
            sandbox.answers[key] = sandbox.answers.get(key, 0) + 1
        return result

    def answers(self) -> list[tuple[Object, Mapping[tuple[str, str, bool], int]]]:
        """Return each pod that is there, and how often a question of its containers (container, purpose) went well or
        not."""
        return [(sandbox.pod, sandbox.answers) for sandbox in self._sandboxes.values()]

    def environments(self) -> tuple[RunningEnvironment, ...]:
        """Return the environments of all containers that run."""
        return tuple(
            RunningEnvironment(uid, name, sandbox.envs.get(name, {}))
            for uid, sandbox in self._sandboxes.items()
            for name, starts in sandbox.instances.items()
            if starts and starts[-1].running
        )

    def usage(self) -> list[PodUsage]:
        """Return what the pods use whose sandboxes are up."""
        from mews.kube.emulated.kubelet.usage import RunningContainer, UsageMeter, group_usages

        if self._meter is None:
            self._meter = UsageMeter()
        groups = {} if self._processes is None and self._engine is None else group_usages()
        now = self._clock.now()
        found = []
        for sandbox in self._sandboxes.values():
            running = [
                RunningContainer(
                    name, starts[-1].id, starts[-1].started_at, int(getattr(sandbox.processes[name][-1], "pid", 0))
                )
                for name, starts in sandbox.instances.items()
                if starts and starts[-1].running
            ]
            if sandbox.ready:
                found.append(self._meter.pod(sandbox.pod, running, groups, now))
        self._meter.settle()
        return found

    def node_usage(self) -> ContainerUsage:
        """Return what the node uses: all containers, also those that are gone as far as anybody looked, and itself."""
        from mews.kube.emulated.kubelet.usage import SYSTEM, node_usage

        usages = self.usage()
        gone_s = 0.0 if self._meter is None else self._meter.cpu_s()
        return node_usage(usages, gone_s + SYSTEM.cpu_nano / 1e9 * (self._clock.now() - self._began), self._began)

    def _process(self, uid: str, container: str, *, previous: bool = False) -> Process:
        sandbox = self._sandboxes.get(uid)
        processes = sandbox.processes.get(container, []) if sandbox else []
        if len(processes) < (2 if previous else 1):
            which = "previous terminated container" if previous else "container"
            where = f'pod "{name_of(sandbox.pod)}" in {namespace_of(sandbox.pod)}' if sandbox else f"pod {uid}"
            raise NoSuchContainerError(f'{which} "{container}" in {where} not found')
        return processes[-2 if previous else -1]

    def _notify(self, uid: str) -> None:
        for listener in list(self._listeners):
            listener(uid)

    async def close(self) -> None:
        """End every container and give everything back."""
        await self._simulated.close()
        if self._processes is not None:
            await self._processes.close()
        if self._engine is not None:
            await self._engine.runtime.close()
        for task in list(self._watching):
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)


def _ends_with_log(pod: Object, name: str) -> bool:
    found = next((c for c in all_containers_of(pod) if c["name"] == name), {})
    return bool(found.get("terminationMessagePolicy") == "FallbackToLogsOnError")


def _last_words(log: bytes) -> str:
    """Return at most 80 lines and 2048 bytes (pkg/kubelet/container/runtime.go)."""
    return b"".join(log.splitlines(keepends=True)[-80:])[-2048:].decode("utf-8", "replace")


async def _chunks(process: Process, selection: LogSelection, *, follows: bool, clock: Clock) -> AsyncIterator[bytes]:
    shown, log = LogText(selection), process.log
    epoch_s = clock.now() - asyncio.get_running_loop().time()
    text = log.read()
    offset = tail_start(text, selection.tail_lines)
    text = text[offset:]
    plain = selection.since is None and not selection.timestamps
    while True:
        # Without times nothing depends on where the log was cut, and reading the marks costs time.
        cut = [(text, LogMark(offset, 0.0))] if plain else list(pieces(text, offset, log.marks(offset)))
        chunk = b"".join(shown.show(piece, epoch_s + mark.loop_s) for piece, mark in cut)
        if chunk:
            yield chunk
        offset += len(text)
        if not follows or shown.full:
            return
        await log.grown(offset)
        text = log.read(offset)
        if not text:
            return
