"""A cold `mews run` of the demo in virtual time, as a whole process, beside an empty Python process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from benchmarks.common import ROOT, progress, report


def seconds_of(*argv: str, runs: int = 7) -> float:
    """Median seconds of a whole process, modules compiled by the run before; a failing one is an error."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken = []
    for _ in range(runs + 1):
        begin = time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=env)
        taken.append(time.monotonic() - begin)
    return statistics.median(taken[1:])


def main() -> None:
    """Median of seven."""
    progress("cold `mews run scenarios/demo.yaml`")
    demo = str(ROOT / "scenarios" / "demo.yaml")
    ours = seconds_of(sys.executable, "-m", "mews.harness", "run", demo)
    empty = seconds_of(sys.executable, "-c", "pass")
    report("cold_demo", ours, "s", baseline=empty, baseline_name="an empty Python process")


if __name__ == "__main__":
    main()
