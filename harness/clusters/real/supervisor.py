"""Process 1 of a component's container: ``python -m mews.harness.clusters.real.supervisor ARGV…``.

It lets a harness kill the component as by kill -9, keep it down and start it again, without the kubelet's back-off and
without the grace of a deleted pod. While nobody holds it, a component that ends takes the container along, as anywhere.

In ``/run/mews``: ``pid`` is the component's; while ``held`` is there it is dead, or about to be. SIGUSR1 has the keeper
start it again, and take ``held`` away then, and not before: so no kill and no start gets lost, whichever is seen first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path("/run/mews")
KILL = ("sh", "-c", f"touch {FOLDER}/held && kill -9 $(cat {FOLDER}/pid) || true")
"""What is run in the container to kill the component and keep it down."""
_HELD = f"[ -e {FOLDER}/held ]"
START = ("sh", "-c", f"kill -USR1 1; n=0; while {_HELD} && [ $n -lt 500 ]; do n=$((n+1)); sleep 0.02; done; ! {_HELD}")
"""What is run in the container to start it again, and ends when it runs; nothing where it does."""

NOT_STARTED = 127
"""Exit code where there is no such program, as of a shell's."""

_HANDLED = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1})


class Supervisor:
    """Starts ``argv``, and again when told to."""

    def __init__(self, argv: Sequence[str], folder: Path = FOLDER) -> None:
        self._argv = list(argv)
        self._pid = folder / "pid"
        self._held = folder / "held"
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Until the component ends unheld, or SIGTERM; the exit code."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        if not self._held.exists():
            self._start()
        while True:
            number = signal.sigwait(_HANDLED)
            if number in (signal.SIGTERM, signal.SIGINT):
                return self._stop()
            code = self._reaped()
            if number == signal.SIGUSR1:
                self._start_again()
            elif code is not None and not self._held.exists():
                return code

    def _start(self) -> None:
        try:
            self._child = subprocess.Popen(self._argv, preexec_fn=_unblock)
        except OSError as error:
            sys.stderr.write(f"{self._argv[0]}: cannot be started: {error.strerror}\n")
            sys.exit(NOT_STARTED)
        self._pid.write_text(f"{self._child.pid}\n", encoding="ascii")

    def _start_again(self) -> None:
        if self._child is not None and self._held.exists():
            self._child.kill()
            self._child.wait()
            self._child = None
        if self._child is None:
            self._start()
        self._held.unlink(missing_ok=True)

    def _reaped(self) -> int | None:
        """Return the code of a component that has ended; None while it lives. Orphans are reaped too."""
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if self._child is not None and ended.si_pid == self._child.pid:
                    self._child.poll()
                else:
                    os.waitpid(ended.si_pid, 0)
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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    sys.exit(Supervisor(sys.argv[1:]).run())
