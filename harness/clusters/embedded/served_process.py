"""A part of the emulator as a process of its own, for wall-clock clusters: started, killed, started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews import registry
from mews.harness.errors import RequirementError
from mews.kube.clock import rest
from mews.own_files import append_own


def with_scenario_folder(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which another process finds the modules that a scenario names as this one does."""
    there = registry.folder()
    if there is None:
        return dict(env)
    return {**env, "PYTHONPATH": os.pathsep.join(filter(None, (str(there), env.get("PYTHONPATH"))))}


_READY_S = 60.0
_LOOK_S = 0.02


class ServedProcess:
    """``python -m <module> … --ready FILE --lifeline``; ``name`` is that of its files in ``folder`` and of its errors.

    It ends with this process, however that ends: its standard input is the lifeline.
    """

    def __init__(self, module: str, folder: Path, name: str, *, env: Mapping[str, str] | None = None) -> None:
        self._module = module
        self._name = name
        self._env = env
        self.ready_file = folder / f"{name}.json"
        self._log = folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, options: Sequence[str]) -> dict[str, Any]:
        """Return what the ready file says, once all of it serves.

        Raises RequirementError when it ends instead, or is not there in time.
        """
        self.ready_file.unlink(missing_ok=True)
        argv = [sys.executable, "-m", self._module, "--ready", str(self.ready_file), "--lifeline", *options]
        with append_own(self._log) as log:
            self._process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=self._env
            )
        await self._await_ready(self._process)
        ready: dict[str, Any] = json.loads(self.ready_file.read_text(encoding="utf-8"))
        return ready

    async def _await_ready(self, process: asyncio.subprocess.Process) -> None:
        try:
            async with asyncio.timeout(_READY_S):
                while not self.ready_file.exists():
                    if process.returncode is not None:
                        raise RequirementError(f"the {self._name} did not start: {self._last_words()}")
                    await rest(_LOOK_S)
        except TimeoutError:
            raise RequirementError(
                f"the {self._name} did not serve within {_READY_S:g} s: {self._last_words()}"
            ) from None

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    async def kill(self) -> None:
        """Kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """TERM, and wait."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            os.killpg(process.pid, number)
        try:
            await asyncio.wait_for(process.wait(), 10.0)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
