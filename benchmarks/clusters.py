"""The demo as a whole, cold process on each cluster: from the command to its exit code, beside virtual time."""

from __future__ import annotations

import sys

from benchmarks.cold_start import seconds_of
from benchmarks.common import ROOT, progress, report
from mews.harness.errors import Lacks
from mews.harness.ways import check_available

SPEED = "10"
WAYS = (
    ("clusters_embedded_wall", "embedded", ("--time", "wall", "--speed", SPEED)),
    ("clusters_control_plane", "control-plane", ("--speed", SPEED)),
    ("clusters_kind", "kind", ("--speed", SPEED)),
)
"""Name of the line, cluster, further options. Emulated latencies, ticks and the demo's own holds run at that speed."""


def main() -> None:
    """Median of three; a cluster that cannot be had here is told on standard error."""
    demo = [sys.executable, "-m", "mews.harness.cli", "run", str(ROOT / "scenarios" / "demo.yaml")]
    progress("the demo in virtual time")
    virtual = seconds_of(*demo, runs=3)
    for bench, cluster, options in WAYS:
        try:
            check_available(cluster)
        except Lacks as error:
            progress(f"skipped: {error}")
            continue
        progress(f"the demo on --cluster {cluster}")
        took = seconds_of(*demo, "--cluster", cluster, *options, runs=3)
        report(bench, took, "s", baseline=virtual, baseline_name="the demo in virtual time")


if __name__ == "__main__":
    main()
