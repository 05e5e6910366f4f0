"""``mews serve`` as a process of its own, for the wall-clock cluster: started, killed, started again from its table."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.harness.errors import Lacks
from mews.kube.clock import rest

_READY_S = 30.0
_LOOK_S = 0.02


class ChassisProcess:
    """Serves a hardware file from ``folder``; its table outlives it there, or in ``keep`` as long as that folder does.

    It ends with this process, however that ends: its standard input is the lifeline.
    """

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        *,
        speed: float,
        seed: int | str,
        keep: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._env = env
        self._hardware = folder / "hardware.json"
        self._ready = folder / "chassis.json"
        self._log = folder / "chassis.log"
        self._speed = speed
        self._seed = seed
        self._process: asyncio.subprocess.Process | None = None
        self._listen = ""
        text = json.dumps(document, sort_keys=True)
        self._hardware.write_text(text, encoding="utf-8")
        self._state = (keep or folder) / f"table-{hashlib.sha256(text.encode()).hexdigest()[:8]}.sqlite"

    async def start(self) -> dict[str, Any]:
        """What the ready file says, once all of it serves.

        Raises Lacks when it ends instead, or is not there in time.
        """
        self._ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "mews.emulator.serve", "--hardware", str(self._hardware)]
        argv += ["--ready", str(self._ready), "--state", str(self._state), "--lifeline"]
        argv += ["--speed", str(self._speed), "--seed", str(self._seed), *self._listen_option()]
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.PIPE, stdout=log, stderr=log, start_new_session=True, env=self._env
            )
        ready = await self._await_ready(self._process)
        self._listen = next(iter(next(iter(ready["chassis"].values())).values())).rpartition("/")[2]
        return ready

    def _listen_option(self) -> list[str]:
        return ["--listen", self._listen] if self._listen else []

    async def _await_ready(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_READY_S):
                while not self._ready.exists():
                    if process.returncode is not None:
                        raise Lacks(f"the chassis did not start: {self._last_words()}")
                    await rest(_LOOK_S)
        except TimeoutError:
            raise Lacks(f"the chassis did not serve within {_READY_S:g} s: {self._last_words()}") from None
        ready: dict[str, Any] = json.loads(self._ready.read_text(encoding="utf-8"))
        return ready

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
