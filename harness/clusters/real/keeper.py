"""Process 1 of a component's container: ``python -m mews.harness.clusters.real.keeper ARGV…``.

It lets a harness kill the component as by kill -9, keep it down and start it again, without the kubelet's back-off and
without the grace of a deleted pod. While nobody holds it, a component that ends takes the container along, as anywhere.

In ``/run/mews``: ``pid`` is the component's; while ``held`` is there none is started; SIGUSR1 says that it is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path("/run/mews")
KILL = ("sh", "-c", f"touch {FOLDER}/held && kill -9 $(cat {FOLDER}/pid) || true")
"""What is run in the container to kill the component and keep it down."""
START = ("sh", "-c", f"rm -f {FOLDER}/held && kill -USR1 1")
"""What is run in the container to start it again; nothing where it runs."""

_HEARD = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1})


class Keeper:
    """Starts ``argv``, and again when told to."""

    def __init__(self, argv: Sequence[str], folder: Path = FOLDER) -> None:
        self._argv = list(argv)
        self._pid = folder / "pid"
        self._held = folder / "held"
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Until the component ends unheld, or SIGTERM; the exit code."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
        self._start()
        while True:
            number = signal.sigwait(_HEARD)
            if number in (signal.SIGTERM, signal.SIGINT):
                return self._stop()
            code = self._reaped()
            if code is not None and not self._held.exists():
                return code
            if number == signal.SIGUSR1 and self._child is None:
                self._start()

    def _start(self) -> None:
        if self._held.exists():
            return
        self._child = subprocess.Popen(self._argv, preexec_fn=_unblock)
        self._pid.write_text(f"{self._child.pid}\n", encoding="ascii")

    def _reaped(self) -> int | None:
        """The code of a component that has ended; None while it lives. Orphans are reaped too."""
        if self._child is None or self._child.poll() is None:
            return None
        code, self._child = self._child.returncode, None
        return code if code >= 0 else 128 - code

    def _stop(self) -> int:
        if self._child is not None:
            self._child.terminate()
            self._child.wait()
        return 0


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    sys.exit(Keeper(sys.argv[1:]).run())
