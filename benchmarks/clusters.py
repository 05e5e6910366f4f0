"""The demo as a whole, cold process on each cluster: from the command to its exit code, beside virtual time."""

from __future__ import annotations

import os
import sys
import tempfile

from benchmarks.cold_start import seconds_of
from benchmarks.common import ROOT, progress, report
from mews.harness.errors import RequirementError
from mews.harness.options import check_available

SPEED = "10"
WAYS = (
    ("clusters_embedded_wall", "embedded", ("--time", "wall", "--speed", SPEED), 3),
    ("clusters_control_plane", "control-plane", ("--speed", SPEED), 3),
    ("clusters_kind", "kind", ("--speed", SPEED), 1),
)
"""Name of the line, cluster, further options, runs. Emulated latencies, ticks and the demo's own holds run at that
speed. A kind cluster is created and deleted in each run; the component image is there."""


def main() -> None:
    """Median of the runs; a cluster that cannot be had here is told on standard error."""
    demo = [sys.executable, "-m", "mews.harness.cli", "run", str(ROOT / "scenarios" / "demo.yaml")]
    progress("the demo in virtual time")
    virtual = seconds_of(*demo, runs=3)
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state  # no cluster that was kept is found there
        _run_all(demo, virtual)


def _run_all(demo: list[str], virtual: float) -> None:
    for bench, cluster, options, runs in WAYS:
        try:
            check_available(cluster)
        except RequirementError as error:
            progress(f"skipped: {error}")
            continue
        progress(f"the demo on --cluster {cluster}")
        took = seconds_of(*demo, "--cluster", cluster, *options, runs=runs)
        report(bench, took, "s", baseline=virtual, baseline_name="the demo in virtual time")


if __name__ == "__main__":
    main()
