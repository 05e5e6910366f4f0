"""``mews down``: end what `mews up` started, and remove what it may have left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from mews.harness.commands.instances import Instance, alive, born, forget, offspring, recorded
from mews.harness.errors import BadInput

PATIENCE_S = 15.0
LEFTOVERS = ("ready.json", "kubeconfig", "run")
"""What an instance writes into its folder; ``run`` holds its sockets."""


def down(name: str | None) -> int:
    """End that instance, or all (None).

    Raises BadInput for a name that nothing bears.
    """
    known = recorded()
    wanted = [instance for instance in known if name in (None, instance.name)]
    if name is not None and not wanted:
        names = ", ".join(instance.name for instance in known) or "none is recorded"
        raise BadInput(f"--name {name}: no such instance; running: {names}")
    for instance in wanted:
        end(instance)
        sys.stdout.write(f"{instance.name}: ended\n")
    if not wanted:
        sys.stdout.write("nothing to end\n")
    return 0


def end(instance: Instance) -> None:
    """SIGTERM, SIGKILL for what does not go, then the leftovers."""
    if alive(instance):
        _signal(instance.pid, signal.SIGTERM)
        _wait(lambda: not alive(instance))
    if alive(instance):
        _signal(instance.pid, signal.SIGKILL)
    for pid in list(offspring(instance.folder)):
        _signal(pid, signal.SIGTERM)
    _wait(lambda: not any(born(pid) for pid in offspring(instance.folder)), 3.0)
    for pid in list(offspring(instance.folder)):
        _signal(pid, signal.SIGKILL)
    clear(Path(instance.folder))
    forget(instance.name)


def clear(folder: Path) -> None:
    """Remove what an instance writes into its folder, and nothing else."""
    for name in LEFTOVERS:
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _wait(done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    pause = threading.Event()
    for _ in range(int(patience_s / 0.05)):
        if done():
            return
        pause.wait(0.05)
