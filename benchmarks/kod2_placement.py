"""Placements of one to four fixed tasks in 10,000 random cases, beside brute force: how many differ (none may)."""

from __future__ import annotations

import random
import time

from benchmarks.common import progress, report
from tests.systems.kod2.brute_force import differences

CASES = 10_000


def main() -> None:
    """A third of the cases have a placement; CPU time is that of both."""
    progress(f"{CASES} placements")
    begin = time.process_time()
    found, placed = differences(random.Random(2018), CASES)
    report("kod2_placement_differences", len(found), f"of {CASES}, {placed} of which have a placement")
    report("kod2_placement_seconds", time.process_time() - begin, "s")
    for case in found[:3]:
        progress(repr(case))


if __name__ == "__main__":
    main()
