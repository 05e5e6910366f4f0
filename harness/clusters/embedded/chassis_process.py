"""``mews serve`` as a process of its own, for the wall-clock cluster: started, killed, started again from its table."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.dialects import OURS
from mews.emulator.tls import Identity, made
from mews.harness.clusters.embedded.served_process import ServedProcess
from mews.harness.run_context import RunContext


class ChassisProcess:
    """Serves a hardware file from ``folder``; its table outlives it there, or in ``keep`` as long as that does.

    Its ports and its certificate are the same after each start: ``tls``, or one that is made in ``folder``.
    """

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        run: RunContext,
        *,
        keep: Path | None = None,
        env: Mapping[str, str] | None = None,
        tls: Identity | None = None,
    ) -> None:
        self.hardware = folder / "hardware.json"
        text = json.dumps(document, sort_keys=True)
        self.hardware.write_text(text, encoding="utf-8")
        state = (keep or folder) / f"table-{hashlib.sha256(text.encode()).hexdigest()[:8]}.sqlite"
        self._options = ["--hardware", str(self.hardware), "--state", str(state)]
        if run.dialect not in OURS:  # Somebody else's paths may be those of one of ours: it has the port to itself.
            self._options += ["--dialect", run.dialect]
        self._options += ["--speed", str(run.speed), "--seed", str(run.seed)]
        self._process = ServedProcess("mews.emulator.serve", folder, "chassis", env=env)
        self._folder, self._tls = folder, tls
        self._listen: tuple[str, ...] = ()

    @property
    def ready_file(self) -> Path:
        """Where it says that all of it serves."""
        return self._process.ready_file

    async def start(self) -> dict[str, Any]:
        """What the ready file says, once all of it serves.

        Raises Lacks when it ends instead, or is not there in time.
        """
        if self._tls is None:
            self._tls = await asyncio.to_thread(made, self._folder)
        known = ("--certificate", str(self._tls.certificate), "--key", str(self._tls.key))
        ready = await self._process.start([*self._options, *known, *self._listen])
        self._listen = _same_ports(ready)
        return ready

    async def kill(self) -> None:
        """Kill -9."""
        await self._process.kill()

    async def stop(self) -> None:
        """TERM, and wait."""
        await self._process.stop()


def _same_ports(ready: Mapping[str, Any]) -> tuple[str, ...]:
    """The options by which it listens where it did: plain ports first, then those under TLS."""
    urls = [url for faces in ready["chassis"].values() for url in faces.values()]
    first, *further = dict.fromkeys(sorted(urls, key=lambda url: url.partition(":")[0]))
    options = ["--listen", first.rpartition("/")[2]]
    for url in further:
        options += ["--further", url.rpartition(":")[2]]
    return tuple(options)
