"""A component that is a program: its own process group, killed when its fence is cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from mews.harness.errors import Lacks
from mews.harness.leftovers import OWNER
from mews.harness.ports.fence import Fence
from mews.own_files import append_own

_LAST_LINES = 10
"""Of a program's output, once it has ended."""


class ProcessEnded(Exception):
    """A program ended without being killed: one line; ``output`` has its last lines."""

    def __init__(self, text: str, output: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.output = tuple(output)


class ProcessComponent:
    """Component: runs a program until it is cancelled or its fence is cut, by kill -9 both times.

    ``env`` is the whole environment and ``cwd`` the working folder (None: as this process); ``log`` gets its output.
    It belongs to the folder that the log lies in: what a killed run leaves is found by that.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        fence: Fence,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._log = log
        self._env = {**(os.environ if env is None else env), OWNER: str(log.parent)}
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None
        fence.on_cut(self._kill)

    async def run(self) -> None:
        """Run it.

        Raises ProcessEnded when it ends by itself, Lacks when it cannot be started.
        """
        with append_own(self._log) as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._argv, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._env, cwd=self._cwd,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                raise Lacks(f"{self._argv[0]}: cannot be started: {error.strerror}") from error
        try:
            code = await self._process.wait()
        finally:
            self._kill()
            await asyncio.shield(self._process.wait())
        output = self._last_lines()
        last = output[-1] if output else "it printed nothing"
        raise ProcessEnded(f"{Path(self._argv[0]).name} ended with code {code}: {last}", output)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _last_lines(self) -> list[str]:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-_LAST_LINES:]
