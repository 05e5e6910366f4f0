"""Run all benchmarks: progress on standard error, one JSON object a line on standard output. One that fails does not
end the others; the exit code is then 1."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

BENCHES = (
    "cold_start",
    "up_ready",
    "chassis_http",
    "chassis_servers",
    "redfish",
    "api",
    "bind_rate",
    "dra_binds",
    "dra_pods",
    "pod_starts",
    "prebind",
    "worlds",
    "pool_scale",
    "phases",
    "testbed",
    "nvml",
    "clusters",
    "gpushare",
    "koordinator",
    "kod2_pass",
    "kod2_placement",
    "kod2_apply",
    "kod2_pool",
    "hotplug",
    "removal",
    "page",
    "live_page",
    "soak",
    "simulate",
)


def main() -> None:
    """All, or those named on the command line."""
    names = sys.argv[1:] or list(BENCHES)
    if names[0] in ("-h", "--help"):
        sys.stdout.write(f"usage: run.py [NAME…]: all benchmarks, or those of {', '.join(BENCHES)}\n")
        return
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"benchmarks: {unknown[0]!r} is none of {', '.join(BENCHES)}\n")
        sys.exit(2)
    failed = [name for name in names if not _run(name)]
    if failed:
        sys.stderr.write(f"benchmarks: failed: {', '.join(failed)}\n")
        sys.exit(1)


def _run(name: str) -> bool:
    """Return one benchmark; what goes wrong in it is printed, and does not end the others."""
    try:
        importlib.import_module(f"benchmarks.{name}").main()
    except Exception:  # noqa: BLE001 - whatever it was, the others can still be measured
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    main()
