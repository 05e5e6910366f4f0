"""``mews serve`` as a process of its own, for the wall-clock cluster: started, killed, started again from its table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.dialects import OURS
from mews.harness.clusters.embedded.served_process import ServedProcess
from mews.harness.run_context import RunContext
from mews.own_files import write_own


class ChassisProcess:
    """Serves a hardware file from ``folder``; its table outlives it there, or in ``keep`` as long as that does.

    Its ports are the same after each start. ``options``: under which certificate it serves.
    """

    def __init__(
        self,
        folder: Path,
        document: Mapping[str, Any],
        run: RunContext,
        *,
        keep: Path | None = None,
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.hardware = folder / "hardware.json"
        text = json.dumps(document, sort_keys=True)
        write_own(self.hardware, text)
        state = (keep or folder) / f"table-{hashlib.sha256(text.encode()).hexdigest()[:8]}.sqlite"
        self._options = ["--hardware", str(self.hardware), "--state", str(state), *options]
        if run.dialect not in OURS:  # Somebody else's paths may be those of one of ours: it has the port to itself.
            self._options += ["--dialect", run.dialect]
        self._options += ["--speed", str(run.speed), "--seed", str(run.seed)]
        self._process = ServedProcess("mews.emulator.serve", folder, "chassis", env=env)
        self._listen: tuple[str, ...] = ()

    @property
    def ready_file(self) -> Path:
        """Where it says that all of it serves."""
        return self._process.ready_file

    async def start(self) -> dict[str, Any]:
        """Return what the ready file says, once all of it serves.

        Raises RequirementError when it ends instead, or is not there in time.
        """
        ready = await self._process.start([*self._options, *self._listen])
        self._listen = _same_ports(ready)
        return ready

    async def kill(self) -> None:
        """Kill -9."""
        await self._process.kill()

    async def stop(self) -> None:
        """TERM, and wait."""
        await self._process.stop()


def _same_ports(ready: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the options by which it listens where it did: plain ports first, then those under TLS."""
    urls = [url for faces in ready["chassis"].values() for url in faces.values()]
    first, *further = dict.fromkeys(sorted(urls, key=lambda url: url.partition(":")[0]))
    options = ["--listen", first.rpartition("/")[2]]
    for url in further:
        options += ["--further", url.rpartition(":")[2]]
    return tuple(options)
