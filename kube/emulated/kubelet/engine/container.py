"""One container of the engine, from its start to its removal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

from msgspec import Struct

from mews.kube.client.port import ExecResult
from mews.kube.clock import rest
from mews.kube.emulated.kubelet.engine.client import ContainerEngine, explained
from mews.kube.emulated.kubelet.engine.commands import collect_command, run_command_in
from mews.kube.emulated.kubelet.engine.stream import EngineStream
from mews.kube.emulated.kubelet.handlers import HandlerResult, Question
from mews.kube.emulated.kubelet.listening import connect_to_listener
from mews.kube.emulated.kubelet.output import OutputLog
from mews.kube.emulated.kubelet.real_actions import act
from mews.kube.emulated.streaming.standard_streams import StandardStreams

_LOG = logging.getLogger("mews.kubelet.engine")
_DRAIN_S = 2.0
"""How long the output of a container that has ended is read, where something else still holds its end."""
_FIRST_LOOK_S, _LAST_LOOK_S = 0.02, 1.0
_UNKNOWN = 255
"""The exit code of a container that somebody else removed (as after a reboot)."""


class ContainerTerminal(Struct, frozen=True):
    """What a container's spec says of its standard streams."""

    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False


class EngineContainer:
    """A Process. Its output is kept in a log of ours, so nothing stays with the engine once it has ended."""

    def __init__(
        self,
        engine: ContainerEngine,
        container: str,
        *,
        pid: int,
        log: OutputLog,
        stream: EngineStream,
        terminal: ContainerTerminal,
        stop_signal: str,
    ) -> None:
        self.log = log
        self.pid = pid
        self._engine = engine
        self._container = container
        self._stream = stream
        self._terminal = terminal
        self._stop_signal = stop_signal
        self._life = asyncio.create_task(self._live(), name=f"container {container[:12]}")

    @property
    def ended(self) -> bool:
        """Whether it has ended and is removed."""
        return self._life.done()

    async def wait(self) -> int:
        """Return its exit code; 128 + n when signal n ended it."""
        return await asyncio.shield(self._life)

    def abandon(self) -> None:
        """Look after it no more; nothing where it has ended."""
        self._life.cancel()

    async def _live(self) -> int:
        copying = asyncio.create_task(self._copy())
        try:
            code = await self._exit_code(copying)
            await asyncio.wait((copying,), timeout=_DRAIN_S)
        finally:
            copying.cancel()
            await asyncio.gather(copying, return_exceptions=True)
            self._stream.close()
            self.log.end()
        await self._remove()
        return code

    async def _copy(self) -> None:
        async for stream, data in self._stream.frames(tty=self._terminal.tty):
            self.log.write(stream, data)

    async def _exit_code(self, copying: asyncio.Task[None]) -> int:
        """Its streams end with it, as a rule: a program may close them before, so the engine has the last word."""
        from docker.errors import APIError
        from requests.exceptions import RequestException

        await asyncio.wait((copying,))
        pause_s = _FIRST_LOOK_S
        while True:
            try:
                state = (await self._engine.call("inspect_container", self._container))["State"]
                if not state["Running"]:
                    return int(state["ExitCode"])
            except APIError as error:
                if error.response is not None and error.response.status_code == 404:
                    return _UNKNOWN
                _LOG.warning("container %s cannot be looked at: %s", self._container[:12], explained(error))
            except RequestException as error:
                _LOG.warning("the container engine does not answer: %s", explained(error))
            await rest(pause_s)
            pause_s = min(2 * pause_s, _LAST_LOOK_S)

    async def _remove(self) -> None:
        from docker.errors import APIError
        from requests.exceptions import RequestException

        try:
            await self._engine.call("remove_container", self._container, v=True, force=True)
        except (APIError, RequestException) as error:
            _LOG.info("container %s is not removed: %s", self._container[:12], explained(error))

    async def stop(self, grace_s: float) -> None:
        """Its image's stop signal, and KILL after the grace; real seconds, since the program lives in them."""
        if not self._life.done() and grace_s > 0:
            await self._kill(self._stop_signal)
            await asyncio.wait((self._life,), timeout=grace_s)
        if not self._life.done():
            await self._kill("SIGKILL")
        await asyncio.wait((self._life,))

    async def _kill(self, name: str) -> None:
        from docker.errors import APIError
        from requests.exceptions import RequestException

        with contextlib.suppress(APIError, RequestException):  # it has just ended, or the engine has
            await self._engine.call("kill", self._container, signal=name)

    async def exec(self, command: Sequence[str]) -> ExecResult:
        """Run a command beside its program."""
        return await collect_command(self._engine, self._container, command)

    async def run(self, command: Sequence[str], streams: StandardStreams) -> int:
        """Run a command with a client's streams.

        Raises StartRefusedError.
        """
        return await run_command_in(self._engine, self._container, command, streams)

    async def attach(self, streams: StandardStreams) -> int:
        """Return what it writes from now on goes to the client; what the client sends goes to its standard input, if it
        has one, which ends with the first client where the pod says so (``stdinOnce``)."""
        others = []
        if self._terminal.tty:
            others.append(asyncio.create_task(self._resize(streams)))
        if streams.options.stdin and self._terminal.stdin:
            others.append(asyncio.create_task(self._feed(streams)))
        try:
            await self.log.show(streams)
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
        return 0

    async def _feed(self, streams: StandardStreams) -> None:
        with contextlib.suppress(OSError):
            while data := await streams.read():
                await self._stream.write(data)
        if self._terminal.stdin_once and not self._terminal.tty:
            self._stream.end_input()

    async def _resize(self, streams: StandardStreams) -> None:
        from docker.errors import APIError

        while (size := await streams.resized()) is not None:
            with contextlib.suppress(APIError):
                await self._engine.call("resize", self._container, height=size.rows, width=size.columns)

    async def dial(self, ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the pod's address, else to another one on which the container's program listens at the port.

        Raises OSError.
        """
        return await connect_to_listener(self.pid, ip, port)

    async def ask(self, question: Question) -> HandlerResult:
        """Do a probe's or a hook's action; its time is real, since the program lives in it."""
        return await act(question, self.exec)
