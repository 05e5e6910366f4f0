"""Commands in a container of the engine, beside its program."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Sequence

from mews.kube.client.port import ExecResult
from mews.kube.emulated.kubelet.engine.client import ContainerEngine, explained, one_line
from mews.kube.emulated.kubelet.engine.stream import EngineStream
from mews.kube.emulated.streaming.standard_streams import STDERR, STDOUT, StandardStreams, StartRefusedError

_FAILED = b"OCI runtime exec failed"
"""Where a program is not there, an engine writes that to the command's own output."""
_NOT_STARTED = (126, 127)


async def collect_command(engine: ContainerEngine, container: str, command: Sequence[str]) -> ExecResult:
    """Run a command to its end; one that cannot be started has exit code 126 or 127, as a shell says it."""
    written = {STDOUT: bytearray(), STDERR: bytearray()}
    try:
        async with _Command(engine, container, command) as running:
            async for stream, data in running.frames():
                written[stream] += data
            code = await running.exit_code()
    except StartRefusedError as error:
        return ExecResult(127, b"", f"{error}\n".encode())
    return ExecResult(code, bytes(written[STDOUT]), bytes(written[STDERR]))


async def run_command_in(
    engine: ContainerEngine, container: str, command: Sequence[str], streams: StandardStreams
) -> int:
    """Run a command with a client's streams; returns its exit code.

    Raises StartRefusedError.
    """
    options = streams.options
    others: list[asyncio.Task[None]] = []
    async with _Command(engine, container, command, stdin=options.stdin, tty=options.tty) as running:
        if options.stdin:
            others.append(asyncio.create_task(running.feed(streams)))
        if options.tty:
            others.append(asyncio.create_task(running.resize(streams)))
        try:
            async for stream, data in running.frames():
                if data.startswith(_FAILED) and await running.exit_code() in _NOT_STARTED:
                    raise StartRefusedError(_refusal(data.decode("utf-8", "replace")))
                await streams.write(stream, data)
            return await running.exit_code()
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)


class _Command:
    """A command that runs while this is open; it is killed where its client leaves before its end."""

    def __init__(
        self, engine: ContainerEngine, container: str, command: Sequence[str], *, stdin: bool = False, tty: bool = False
    ) -> None:
        self._engine = engine
        self._container = container
        self._command = list(command)
        self._stdin = stdin
        self._tty = tty
        self._id = ""
        self._ended = False
        self._stream: EngineStream

    async def __aenter__(self) -> _Command:
        from docker.errors import APIError

        try:
            made = await self._engine.call(
                "exec_create", self._container, self._command, stdin=self._stdin, tty=self._tty
            )
            self._id = str(made["Id"])
            self._stream = await self._engine.stream("exec_start", self._id, tty=self._tty, socket=True)
        except APIError as error:
            raise StartRefusedError(_refusal(explained(error))) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stream.close()
        if not self._ended:
            await asyncio.shield(self._kill())

    async def frames(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield what it writes, to its end."""
        async for frame in self._stream.frames(tty=self._tty):
            yield frame

    async def exit_code(self) -> int:
        """Once its output has ended."""
        while True:
            state = await self._engine.call("exec_inspect", self._id)
            if not state["Running"]:
                self._ended = True
                return int(state["ExitCode"] or 0)
            await asyncio.sleep(0.02)

    async def _kill(self) -> None:
        """The engine itself ends no commands; where this user may not either, it runs on with its container."""
        from docker.errors import APIError

        with contextlib.suppress(APIError, ProcessLookupError, PermissionError):
            state = await self._engine.call("exec_inspect", self._id)
            if state["Running"] and int(state.get("Pid") or 0) > 0:
                os.kill(int(state["Pid"]), signal.SIGKILL)

    async def feed(self, streams: StandardStreams) -> None:
        """From the client to its standard input; a terminal stays, as without its input the engine drops its output."""
        with contextlib.suppress(OSError):
            while data := await streams.read():
                await self._stream.write(data)
        if not self._tty:
            self._stream.end_input()

    async def resize(self, streams: StandardStreams) -> None:
        """Give its terminal the sizes of the client's."""
        from docker.errors import APIError

        while (size := await streams.resized()) is not None:
            with contextlib.suppress(APIError):
                await self._engine.call("exec_resize", self._id, height=size.rows, width=size.columns)


def _refusal(text: str) -> str:
    start = "failed to exec in container: "
    return one_line(text if text.startswith(start) else f"{start}{text}")
