"""Hold our decisions against those of Koordinator's own DeviceShare, built from its Go module.

``python -m tests.systems.koordinator.upstream [--cases 5000] [--seed 0] [--write]``
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.systems.koordinator.upstream.comparing import compared, ours, row_of
from tests.systems.koordinator.upstream.drawing import drawn
from tests.systems.koordinator.upstream.golden import GOLDEN, golden_cases, written
from tests.systems.koordinator.upstream.harness import answers, built
from tests.upstream.building import NotBuilt


def main() -> int:
    """0 where each difference is of a row of the table; 1 with those that are not; 3 where there is no oracle."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    made.add_argument("--cases", type=int, default=5000, help="draw so many cases")
    made.add_argument("--seed", type=int, default=0, help="begin with this one")
    made.add_argument("--write", action="store_true", help="write the golden file anew")
    options = made.parse_args()
    try:
        program = built()
        if options.write:
            GOLDEN.write_text(written(answers(program, golden_cases())), encoding="utf-8")
        seeds = range(options.seed, options.seed + options.cases)
        cases = [drawn(seed) for seed in seeds]
        found = answers(program, cases)
    except NotBuilt as error:
        sys.stderr.write(f"{error}\n")
        return 3
    verdicts, rows, wrong = Counter[str](), Counter[str](), list[str]()
    for seed, case, answer in zip(seeds, cases, found, strict=True):
        theirs = compared(answer)
        verdicts[theirs["verdict"]] += 1
        mine = ours(case)
        if mine != theirs:
            row = row_of(case, theirs, mine)
            rows[row or "of no row"] += 1
            if not row:
                wrong.append(f"seed {seed}: upstream {theirs}, ours {mine}")
    equal = len(cases) - sum(rows.values())
    lines = [f"{equal} of {len(cases)} equal ({100 * equal / len(cases):.2f} %); upstream: {dict(verdicts)}"]
    lines += [*(f"{count:5} {row}" for row, count in rows.most_common()), *wrong]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
