"""``mews down``: end what `mews up` started, and remove what it, or any run that was killed, may have left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from mews.harness import terminal
from mews.harness.commands.instances import UpInstance, alive, born, forget, offspring, recorded
from mews.harness.errors import BadInputError, RequirementError
from mews.harness.leftovers import end_containers, has_kind_cluster, kept_sites, sweep, sweep_kind, sweep_sites

PATIENCE_S = 15.0
_KIND_PATIENCE_S = 130.0
LEFTOVERS = ("ready.json", "kubeconfig", "ca.crt")
"""What an instance writes into its folder."""


def down(name: str | None, *, everything: bool = False) -> int:
    """End that instance, `mews` without a name, or all; then remove what dead runs of any kind left behind.

    Raises BadInputError for a name that nothing bears, RequirementError for what cannot be removed.
    """
    known = recorded()
    wanted = [instance for instance in known if everything or instance.name == (name or "mews")]
    for instance in wanted:
        end(instance)
        terminal.out(f"{instance.name}: ended\n")
    (clusters, failed), (sites, unreached) = sweep_kind(), _sweep_sites()
    swept = [*sweep(), *clusters, *sites]
    for folder in swept:
        terminal.out(f"{folder}: removed, its owner is dead\n")
    if failed or unreached:
        raise RequirementError("\n".join((*failed, *unreached)))
    if not wanted and (name is not None or not (everything or swept)):
        names = ", ".join(instance.name for instance in known) or "none is recorded"
        raise BadInputError(f"--name {name or 'mews'}: no such instance; running: {names}")
    if not wanted and not swept:
        terminal.out("nothing to end\n")
    return 0


def _sweep_sites() -> tuple[list[Path], list[str]]:
    if not kept_sites():
        return [], []
    from mews.harness.clusters.kubeconfig.cluster import purge

    return sweep_sites(purge)


def end(instance: UpInstance) -> None:
    """SIGTERM, SIGKILL for what does not go, then the leftovers."""
    if alive(instance):
        patience_s = _KIND_PATIENCE_S if has_kind_cluster(instance.pid) else PATIENCE_S
        _signal(instance.pid, signal.SIGTERM)
        _wait(lambda: not alive(instance), patience_s)
    if alive(instance):
        _signal(instance.pid, signal.SIGKILL)
    for pid in list(offspring(instance.folder, instance.born)):
        _signal(pid, signal.SIGTERM)
    _wait(lambda: not any(born(pid) for pid in offspring(instance.folder, instance.born)), 3.0)
    for pid in list(offspring(instance.folder, instance.born)):
        _signal(pid, signal.SIGKILL)
    clear(Path(instance.folder))
    forget(instance.name)


def clear(folder: Path) -> None:
    """Remove what an instance writes into its folder, and its runtime folder; nothing else."""
    for root in _runtime_folders(folder / "ready.json"):
        end_containers(root)
        shutil.rmtree(root, ignore_errors=True)
    for name in LEFTOVERS:
        with contextlib.suppress(OSError):  # a folder of that name is not ours
            (folder / name).unlink(missing_ok=True)


def _runtime_folders(ready: Path) -> set[Path]:
    """Return where the sockets of the nodes are, as ready.json tells: ``<runtime>/<node>/device-plugins``."""
    try:
        nodes = json.loads(ready.read_text(encoding="utf-8"))["nodes"].values()
        roots = {Path(node["device_plugins"]).parent.parent for node in nodes}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return set()
    return {root for root in roots if root.name.startswith("mews-")}


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _wait(done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    pause = threading.Event()
    for _ in range(int(patience_s / 0.05)):
        if done():
            return
        pause.wait(0.05)
