"""A component that is a program: its own process group, killed when its fence is cut."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from mews.harness.errors import RequirementError
from mews.harness.leftovers import OWNER
from mews.harness.ports.fence import Fence
from mews.kube.emulated.kubelet.mount_namespace import Mounts, NamespaceStart
from mews.kube.emulated.kubelet.podnet.callers import Callers
from mews.own_files import append_own

_LAST_LINES = 10
"""Of a program's output, once it has ended."""


class ProcessEndedError(Exception):
    """A program ended without being killed: one line; ``output`` has its last lines."""

    def __init__(self, text: str, output: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.output = tuple(output)


class ProcessComponent:
    """Component: runs a program until it is cancelled or its fence is cut, by kill -9 both times.

    ``env`` is the whole environment and ``cwd`` the working folder (None: as this process); ``log`` gets its output.
    It belongs to the folder that the log lies in: what a killed run leaves is found by that. ``mounts``: what it finds
    at paths of a mount namespace of its own; none without any. By its ``callers`` it finds pods and Services.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        fence: Fence,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        mounts: Mounts = (),
        callers: Callers | None = None,
    ) -> None:
        self._mounts = tuple(mounts)
        self._callers = callers
        self._argv = tuple(argv)
        self._log = log
        self._env = {**(os.environ if env is None else env), OWNER: str(log.parent)}
        self._cwd = cwd
        self._process: asyncio.subprocess.Process | None = None
        fence.on_cut(self._kill)
        fence.on_freeze(self._freeze)

    async def run(self) -> None:
        """Run it.

        Raises ProcessEndedError when it ends by itself, RequirementError when it cannot be started.
        """
        door = () if self._callers is None else self._callers.passed
        if self._mounts or door:
            await self._start_by_entry(NamespaceStart(self._mounts, door))
        else:
            self._process = await self._started()
        assert self._process is not None
        try:
            code = await self._process.wait()
        finally:
            self._kill()
            await asyncio.shield(self._process.wait())
        output = self._last_lines()
        last = output[-1] if output else "it printed nothing"
        raise ProcessEndedError(f"{Path(self._argv[0]).name} exited with code {code}: {last}", output)

    async def _start_by_entry(self, start: NamespaceStart) -> None:
        try:
            self._process = await self._started(start)
        except BaseException:
            start.abandon()
            raise
        fault = await start.fault()
        if fault:
            await self._process.wait()
            raise RequirementError(f"{self._argv[0]}: cannot be started: {fault}")

    async def _started(self, start: NamespaceStart | None = None) -> asyncio.subprocess.Process:
        prefix, passed = ((), ()) if start is None else (start.prefix, start.passed)
        with append_own(self._log) as log:
            try:
                return await asyncio.create_subprocess_exec(
                    *prefix, *self._argv, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=self._env,
                    cwd=self._cwd, start_new_session=True, pass_fds=passed,
                )  # fmt: skip
            except OSError as error:
                raise RequirementError(f"{self._argv[0]}: cannot be started: {error.strerror}") from error

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _freeze(self, frozen: bool) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def _last_lines(self) -> list[str]:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if line.strip()][-_LAST_LINES:]
