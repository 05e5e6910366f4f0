"""A child process that tells by a file that it is ready."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PATIENCE_S = 60.0


class Child:
    """A process with its standard error drained into memory, so that it never blocks on a full pipe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._output: list[bytes] = []
        self._reader = threading.Thread(target=self._drain, name="mews-child-stderr", daemon=True)
        self._reader.start()

    def _drain(self) -> None:
        if self.process.stderr is not None:
            self._output.extend(self.process.stderr)

    def output(self) -> str:
        """Return the end of what it wrote to standard error."""
        return b"".join(self._output[-20:]).decode(errors="replace").strip()

    def log(self) -> str:
        """Return all that it wrote to standard error."""
        return b"".join(self._output).decode(errors="replace")

    def end(self) -> None:
        """SIGTERM, and SIGKILL if it does not go."""
        self.process.terminate()
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(1.0)
        if self.process.stderr is not None:
            self.process.stderr.close()


def start(command: Sequence[str]) -> Child:
    """Start a process whose standard output nobody reads."""
    quiet = subprocess.DEVNULL
    return Child(subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE))


def started(child: Child, ready: Path) -> dict[str, Any]:
    """Return the content of the ready file, once it is there.

    Raises RuntimeError with what the process said when it ends first or takes too long.
    """
    __tracebackhide__ = True
    for _ in range(int(_PATIENCE_S / 0.02)):
        if ready.exists():
            return json.loads(ready.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = child.process.wait(0.02)
            child.end()
            raise RuntimeError(f"{_name(child)} exited with code {code}: {child.output()}")
    child.end()
    raise RuntimeError(f"{_name(child)} was not ready within {_PATIENCE_S:g} s: {child.output()}")


def _name(child: Child) -> str:
    arguments = child.process.args
    return " ".join(map(str, arguments[1:5])) if isinstance(arguments, list) else str(arguments)
