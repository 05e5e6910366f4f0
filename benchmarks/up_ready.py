"""``mews up`` from its exec to readiness, and from SIGTERM to its end: wall-clock seconds and those of the processor.

``python -m benchmarks.up_ready``: the best of five, modules compiled by a run before (as pip does with what it
installs). Ready is what ``mews up`` says: the API answers, all nodes are Ready, ready.json is written. The seconds of
the processor are those of all its processes together.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import progress, report

_RUNS = 5
_GOAL_S = 2.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _processes(root: int) -> Iterator[tuple[int, float]]:
    """Yield a process and all below it: pid, seconds of the processor so far."""
    parents: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text("ascii", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents[int(folder.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS_PER_S)
    own = {root}
    while more := {pid for pid, (parent, _) in parents.items() if parent in own} - own:
        own |= more
    yield from ((pid, parents[pid][1]) for pid in own if pid in parents)


def once() -> tuple[float, float, float]:
    """Return seconds until it is ready, those of the processor until then, seconds from SIGTERM to its end."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        env["XDG_RUNTIME_DIR"] = folder
        argv = [sys.executable, "-m", "mews.harness.cli", "up", "--json", "--dir", f"{folder}/up"]
        began = time.monotonic()
        with subprocess.Popen(argv, stdout=subprocess.PIPE, env=env) as child:
            assert child.stdout is not None
            ready = json.loads(child.stdout.readline())
            took_s = time.monotonic() - began
            used_s = sum(seconds for _, seconds in _processes(child.pid))
            own_s = ready["ready_s"]
            progress(f"mews up: ready after {took_s:.2f} s, {own_s:g} s by its own clock; processor {used_s:g} s")
            told = time.monotonic()
            child.send_signal(signal.SIGTERM)
            if child.wait(60) != 0:
                raise RuntimeError(f"mews up ended with {child.returncode}")
            return took_s, used_s, time.monotonic() - told


def main() -> None:
    """Best of five each."""
    once()
    runs = [once() for _ in range(_RUNS)]
    ready_s, used_s, ended_s = (min(values) for values in zip(*runs, strict=True))
    report("up_ready", ready_s, "s", baseline=_GOAL_S, baseline_name="the goal")
    report("up_ready_processor", used_s, "s of the processor")
    report("up_ended", ended_s, "s")


if __name__ == "__main__":
    main()
