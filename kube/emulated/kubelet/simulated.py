"""Containers that are only played: their time passes on the loop, virtual or not, and nothing else happens."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mews.kube.api.objects import annotations_of
from mews.kube.client.port import ExecResult
from mews.kube.clock import Pace
from mews.kube.emulated.kubelet.errors import ExecRefusedError, StartError
from mews.kube.emulated.kubelet.handlers import (
    Action,
    Exec,
    HandlerResult,
    HttpGet,
    Question,
    not_listening,
    refused,
    timed_out,
)
from mews.kube.emulated.kubelet.idling import idles_for
from mews.kube.emulated.kubelet.images import IDLE, ContainerBehaviour, render
from mews.kube.emulated.kubelet.log_readers import LogReaders, marks_from
from mews.kube.emulated.kubelet.programs import PlayedPrograms
from mews.kube.emulated.kubelet.runtime import Launch, LogMark, follow
from mews.kube.emulated.kubelet.script import ScriptRun, play
from mews.kube.emulated.kubelet.stages import windows_of
from mews.kube.emulated.kubelet.unhealthy_window import FAILING, UnhealthyWindow, illnesses_of
from mews.kube.emulated.streaming.standard_streams import STDOUT, StandardStreams, StartRefusedError

DURATION = "mews.dev/duration-s"
EXIT_CODE = "mews.dev/exit-code"
IGNORES_TERM = "mews.dev/ignores-term"
"""Annotations of a pod: how long its simulated containers run, how they end, and that TERM does not end them."""


class MemoryLog:
    """A log kept in memory; one waiter is woken per reader when it grows."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._marks: list[LogMark] = []
        self._ended = False
        self._readers = LogReaders()

    def write(self, text: str) -> None:
        """Append."""
        self._marks.append(LogMark(len(self._data), asyncio.get_running_loop().time()))
        self._data += text.encode()
        self._readers.wake()

    def end(self) -> None:
        """Nothing follows."""
        self._ended = True
        self._readers.wake()

    @property
    def size(self) -> int:
        """Bytes so far."""
        return len(self._data)

    def marks(self, offset: int = 0) -> Sequence[LogMark]:
        """Return the pieces that end after that offset."""
        return marks_from(self._marks, offset)

    def read(self, offset: int = 0) -> bytes:
        """Return all bytes from that offset on."""
        return bytes(self._data[offset:])

    async def grown(self, offset: int) -> None:
        """Return once there is more, or nothing follows."""
        await self._readers.wait(lambda: len(self._data) > offset or self._ended)


class SimulatedProcess:
    """One played container."""

    def __init__(
        self,
        scene: ScriptRun,
        env: dict[str, str],
        pace: Pace,
        illnesses: Sequence[UnhealthyWindow] = (),
        *,
        plays_commands: bool = True,
    ) -> None:
        self.log = MemoryLog()
        self._scene = scene
        self._env = env
        self._pace = pace
        self._illnesses = illnesses
        self._plays_commands = plays_commands
        loop = asyncio.get_running_loop()
        self._began_s = loop.time()
        self._exit: asyncio.Future[int] = loop.create_future()
        self._timers: list[asyncio.TimerHandle] = []
        self._last_words = ""
        self._is_terminating = False
        for at_s, text in scene.outputs:
            if at_s <= 0:
                self.log.write(text)
            elif at_s >= scene.duration_s:
                self._last_words += text
            else:
                self._timers.append(loop.call_later(pace.loop_s(at_s), self.log.write, text))
        for age_s in (age for illness in illnesses for age in (illness.since_s, illness.until_s)):
            if 0 < age_s < math.inf:  # something will happen then: probes alone only go round and round
                self._timers.append(loop.call_later(pace.loop_s(age_s), lambda: None))
        if not math.isinf(scene.duration_s):
            self._timers.append(loop.call_later(pace.loop_s(scene.duration_s), self._finish))

    async def wait(self) -> int:
        """Return its exit code, once it has ended."""
        return await asyncio.shield(self._exit)

    async def stop(self, grace_s: float) -> None:
        """TERM, and KILL after the grace; both paced."""
        self._terminate()
        if grace_s > 0 and not self._exit.done():
            await asyncio.wait((self._exit,), timeout=self._pace.loop_s(grace_s))
        self._end(137)

    def _terminate(self) -> None:
        """TERM. A process that obeys ends by it, also where whoever sent it is dead by then."""
        code, delay_s = self._scene.term_exit_code, self._scene.term_delay_s
        if code is None or self._is_terminating:
            return
        self._is_terminating = True
        if delay_s <= 0:
            self._end(code)
            return
        self._timers.append(asyncio.get_running_loop().call_later(self._pace.loop_s(delay_s), self._end, code))

    async def exec(self, command: Sequence[str]) -> ExecResult:
        """Play a command over the container's environment.

        Raises ExecRefusedError.
        """
        scene = play(command, self._env)
        if scene is None or math.isinf(scene.duration_s):
            raise ExecRefusedError(
                f"{list(command)!r}: the container is simulated, it can only play env, printenv, echo, sleep, true, "
                "false and exit; use an image with `process` and --time wall to run real commands"
            )
        await asyncio.sleep(self._pace.loop_s(scene.duration_s))
        return ExecResult(scene.exit_code, "".join(text for _, text in scene.outputs).encode())

    async def run(self, command: Sequence[str], streams: StandardStreams) -> int:
        """Play a command; what the client sends is read by nobody.

        Raises StartRefusedError.
        """
        try:
            done = await self.exec(command)
        except ExecRefusedError as error:
            raise StartRefusedError(str(error)) from error
        await streams.write(STDOUT, done.stdout)
        return done.exit_code

    async def attach(self, streams: StandardStreams) -> int:
        """Show what it writes from now on."""
        async for chunk in follow(self, self.log.size):
            await streams.write(STDOUT, chunk)
        return 0

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Nobody listens."""
        raise ConnectionRefusedError(not_listening(port))

    async def ask(self, question: Question) -> HandlerResult:
        """Ill as the pod's annotation and the image's stages say; a command is played where it can be."""
        age_s = (asyncio.get_running_loop().time() - self._began_s) * self._pace.speed
        if any(illness.covers(question.purpose, age_s) for illness in self._illnesses):
            return _ill(question.action)
        scene = None
        if isinstance(question.action, Exec) and self._plays_commands:
            scene = play(question.action.command, self._env)
        if scene is None:
            return HandlerResult(True)
        await asyncio.sleep(self._pace.loop_s(min(scene.duration_s, question.timeout_s)))
        if scene.duration_s > question.timeout_s:
            return HandlerResult(False, timed_out(question.action))
        return HandlerResult(scene.exit_code == 0, "".join(text for _, text in scene.outputs), scene.exit_code)

    def emit(self, text: str) -> None:
        """Write to its log."""
        self.log.write(text)

    def end(self, code: int) -> None:
        """End by itself."""
        self._end(code)

    def on_end(self, call: Callable[[], None]) -> None:
        """Call once it has ended, whatever ended it."""
        self._exit.add_done_callback(lambda _: call())

    def _finish(self) -> None:
        if self._last_words:
            self.log.write(self._last_words)
        self._end(self._scene.exit_code)

    def _end(self, code: int) -> None:
        for timer in self._timers:
            timer.cancel()
        if not self._exit.done():
            self._exit.set_result(code)
            self.log.end()


class SimulatedRuntime:
    """Plays containers: by the pod's annotation, else by the command, else as the image declares; what program an image
    names has the word on its end. ``programs`` are those of the whole cluster."""

    def __init__(self, pace: Pace, programs: PlayedPrograms | None = None) -> None:
        self._pace = pace
        self._programs = programs or PlayedPrograms(pace)
        self._running: list[SimulatedProcess] = []

    async def start(self, launch: Launch) -> SimulatedProcess:
        """Start one.

        Raises StartError where nothing says what it would do.
        """
        self._running = [process for process in self._running if not process._exit.done()]
        declared = launch.image.simulate or ContainerBehaviour()
        illnesses = illnesses_of(annotations_of(launch.pod).get(FAILING, ""), launch.container)
        illnesses = (*illnesses, *windows_of(declared.stages))
        scene, plays = scene_of(launch), declared.plays_command
        process = SimulatedProcess(scene, launch.env, self._pace, illnesses, plays_commands=plays)
        self._programs.start(launch, process)
        self._running.append(process)
        return process

    def forget(self, uid: str) -> None:
        """Of a sandbox nothing is kept here."""

    async def close(self) -> None:
        """End all."""
        for process in self._running:
            process._end(137)
        self._running.clear()


def scene_of(launch: Launch) -> ScriptRun:
    """Return what the container will do.

    Raises StartError.
    """
    annotations = annotations_of(launch.pod)
    command = (*launch.command, *launch.args)
    declared = launch.image.simulate or ContainerBehaviour()
    scene = play(command, launch.env) if declared.plays_command else None
    if scene is None:
        unknown = bool(launch.command) or launch.image.simulate is None
        if unknown and declared.duration_s is None and DURATION not in annotations:
            raise StartError(
                "RunContainerError",
                f"simulated container {launch.container}: {list(command)!r} cannot be played; annotate the "
                f"pod with {DURATION}, or give image {launch.image.name} a simulate.duration_s",
            )
        scene = _declared(declared, launch.env)
    if declared is IDLE and DURATION not in annotations:
        scene = replace(scene, duration_s=idles_for(launch.pod, launch.container))
    if DURATION in annotations:
        scene = replace(scene, duration_s=_number(annotations[DURATION], DURATION), outputs=_early(scene))
    if EXIT_CODE in annotations:
        scene = replace(scene, exit_code=int(_number(annotations[EXIT_CODE], EXIT_CODE)))
    if annotations.get(IGNORES_TERM) == "true":
        scene = replace(scene, term_exit_code=None)
    return scene


def _ill(action: Action) -> HandlerResult:
    if isinstance(action, HttpGet):
        return HandlerResult(False, "HTTP probe failed with statuscode: 500")
    return HandlerResult(False, refused(action), 1)


def _declared(declared: ContainerBehaviour, env: dict[str, str]) -> ScriptRun:
    logs = [(0.0, declared.log)] if declared.log else []
    since_s = 0.0
    for stage in declared.stages:
        logs += [(since_s, stage.log)] if stage.log else []
        since_s += stage.for_s
    rendered = ((at_s, render(log, env)) for at_s, log in logs)
    return ScriptRun(
        outputs=tuple((at_s, text) for at_s, text in rendered if text),
        duration_s=declared.duration_s or 0.0,
        exit_code=declared.exit_code,
        term_exit_code=declared.term_exit_code if declared.obeys_term else None,
    )


def _early(scene: ScriptRun) -> tuple[tuple[float, str], ...]:
    return tuple((0.0, text) for _, text in scene.outputs)


def _number(text: str, annotation: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise StartError("RunContainerError", f"annotation {annotation}: {text!r}: must be a number from 0 on")
    return value
