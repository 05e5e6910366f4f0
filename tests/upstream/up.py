"""A `mews up` for the judges: as a user types it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mews.kube.emulated.kubelet.mount_namespace import Mounts, NamespaceStart

_PATIENCE_S = 120.0


@contextlib.contextmanager
def cluster(
    options: Sequence[str] = (), *, files: Mounts = (), started: Callable[[list[str], Path], list[str]] | None = None
) -> Iterator[dict[str, Any]]:
    """The content of ready.json while it is up. ``files`` are there for its processes alone, at absolute paths;
    ``started`` turns its command, and the folder that is to be its user's, into how that user starts it.

    Raises RuntimeError with what it said where it does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:  # short: a socket's path has 107 bytes
        env = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        argv = [sys.executable, "-m", "mews.harness.cli", "up", "--dir", f"{folder}/up", "--name", "judged", *options]
        errors = Path(folder) / "errors"
        start = NamespaceStart(files)
        if files:
            argv = [*start.prefix, *argv]
        if started is not None:
            argv = started(argv, Path(folder))
        with errors.open("w", encoding="utf-8") as log:
            given = {"stdout": subprocess.DEVNULL, "stderr": log, "pass_fds": (start.descriptor,)}
            process = subprocess.Popen(argv, env=env, **given)
            start.abandon()
            try:
                yield _ready(process, Path(folder) / "up" / "ready.json", errors)
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _ready(process: subprocess.Popen[bytes], file: Path, errors: Path) -> dict[str, Any]:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end and process.poll() is None:
        if file.exists():
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return found
        time.sleep(0.05)
    raise RuntimeError(f"mews up did not come up: {errors.read_text(encoding='utf-8').strip()}")
