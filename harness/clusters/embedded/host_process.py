"""The hosts as a process of their own, beside that of the chassis which it follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.emulator.hostd.mounts import unmount
from mews.harness.clusters.embedded.served_process import ServedProcess
from mews.harness.run_context import RunContext

FOLDER = "h"
"""Below the cluster's folder; short, since the path of a socket within has at most 107 bytes."""

_CHASSIS_S = 60.0
"""The hosts may be started with the chassis, and wait for them."""


class HostProcess:
    """Serves the hosts of a hardware file; ``chassis`` is the chassis' ready file. ``options``: how ``control`` is
    served."""

    def __init__(
        self,
        folder: Path,
        hardware: Path,
        chassis: Path,
        run: RunContext,
        *,
        env: Mapping[str, str],
        options: Sequence[str] = (),
    ) -> None:
        self.root = folder / FOLDER
        self._options = ["--hardware", str(hardware), "--chassis", str(chassis), "--root", str(self.root)]
        self._options += ["--await-chassis", str(_CHASSIS_S), *options]
        self._options += ["--speed", str(run.speed), "--seed", str(run.seed)]
        self._process = ServedProcess("mews.emulator.hostd.serve", folder, "hosts", env=env)

    async def start(self) -> dict[str, Any]:
        """Return what the ready file says (``mews.emulator.hostd.serve``).

        Raises RequirementError when it ends instead, or is not there in time.
        """
        return await self._process.start(self._options)

    async def kill(self) -> None:
        """Kill -9; its mount stays, dead, until it is started again."""
        await self._process.kill()

    async def stop(self) -> None:
        """TERM, and wait."""
        await self._process.stop()
        unmount(self.root / "fs")
