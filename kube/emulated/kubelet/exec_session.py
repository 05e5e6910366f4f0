"""A command beside a container's process, with a client's streams: over pipes, or on a terminal of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from mews.kube.emulated.kubelet.terminal import Descriptor, Terminal, with_terminal
from mews.kube.emulated.streaming.standard_streams import STDERR, STDOUT, StandardStreams, StartRefusedError

_DRAIN_S = 1.0
"""How long output is read after the command has ended, where something else still holds its end."""


class Surroundings(Struct, frozen=True):
    """What commands of one container run in: variables, folder, and what they are started by (its namespaces), with the
    descriptors that it inherits."""

    env: Mapping[str, str]
    folder: Path
    entry: tuple[str, ...] = ()
    passed: tuple[int, ...] = ()

    def check(self, command: Sequence[str]) -> None:
        """Raises StartRefusedError for a program that is not there."""
        program = command[0]
        found = shutil.which(program, path=self.env.get("PATH", ""))
        if "/" in program and found is None:
            found = shutil.which(str(self.folder / program))
        if found is None and not (self.entry and program.startswith("/")):
            missing = "no such file or directory" if "/" in program else "executable file not found in $PATH"
            text = f'exec: "{program}": {missing}: unknown'
            raise StartRefusedError(
                "failed to exec in container: OCI runtime exec failed: exec failed: unable to start container process: "
                f"{text}"
            )


async def run_command(command: Sequence[str], streams: StandardStreams, around: Surroundings) -> int:
    """Run it to its end; returns its exit code.

    Raises StartRefusedError.
    """
    around.check(command)
    if streams.options.tty:
        return await _on_a_terminal(command, streams, around)
    return await _over_pipes(command, streams, around)


async def _over_pipes(command: Sequence[str], streams: StandardStreams, around: Surroundings) -> int:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await _started(
        (*around.entry, *command), around, stdin=pipe if streams.options.stdin else nothing, stdout=pipe, stderr=pipe
    )
    assert process.stdout is not None and process.stderr is not None
    tasks = [
        asyncio.create_task(_copy(process.stdout, streams, STDOUT)),
        asyncio.create_task(_copy(process.stderr, streams, STDERR)),
    ]
    feeding = asyncio.create_task(_feed_pipe(streams, process.stdin)) if process.stdin is not None else None
    try:
        return await _ended(process, tasks)
    finally:
        await _clean_up(process, [*tasks, *([feeding] if feeding else [])])


async def _on_a_terminal(command: Sequence[str], streams: StandardStreams, around: Surroundings) -> int:
    terminal = Terminal()
    argv, leads = ((*around.entry, *command), False) if around.entry else with_terminal(command)
    end = terminal.process_end
    env = {"TERM": "xterm", **around.env}
    around = Surroundings(env, around.folder, around.entry, around.passed)
    try:
        process = await _started(argv, around, stdin=end, stdout=end, stderr=end, session=not leads)
    except StartRefusedError:
        terminal.ours.close()
        raise
    finally:
        terminal.close_process_end()
    tasks = [asyncio.create_task(copy_terminal(terminal.ours, streams))]
    others = [
        asyncio.create_task(feed_terminal(streams, terminal.ours)),
        asyncio.create_task(resize_terminal(streams, terminal)),
    ]
    try:
        return await _ended(process, tasks)
    finally:
        await _clean_up(process, [*tasks, *others])
        terminal.ours.close()


async def _started(
    argv: Sequence[str], around: Surroundings, *, stdin: int, stdout: int, stderr: int, session: bool = True
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=stdout, stderr=stderr, env=dict(around.env), cwd=around.folder,
            start_new_session=session, pass_fds=around.passed,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise StartRefusedError(f"exec {argv[0]}: {error}") from error


async def _ended(process: asyncio.subprocess.Process, outputs: Sequence[asyncio.Task[None]]) -> int:
    """Return its exit code, once its output was sent."""
    code = await process.wait()
    done, _ = await asyncio.wait(outputs, timeout=_DRAIN_S)
    for task in done:
        task.result()
    return code if code >= 0 else 128 - code


async def _clean_up(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _copy(reader: asyncio.StreamReader, streams: StandardStreams, stream: int) -> None:
    while data := await reader.read(32 * 1024):
        await streams.write(stream, data)


async def _feed_pipe(streams: StandardStreams, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await streams.read():
            writer.write(data)
            await writer.drain()
    writer.close()


async def copy_terminal(ours: Descriptor, streams: StandardStreams) -> None:
    """From a terminal to the client, until its last user has gone."""
    while data := await ours.read():
        await streams.write(STDOUT, data)


async def feed_terminal(streams: StandardStreams, ours: Descriptor) -> None:
    """From the client to a terminal."""
    with contextlib.suppress(OSError):
        while data := await streams.read():
            await ours.write(data)


async def resize_terminal(streams: StandardStreams, terminal: Terminal) -> None:
    """Give a terminal the sizes of the client's."""
    while (size := await streams.resized()) is not None:
        terminal.resize(size)
