"""``python -m tests.differential [AREA …]``: put the cases to both servers and print what differs.

``--write-page`` writes docs/api-differences.md instead, and ``--record`` the real server's answers.
"""

# Prints its report.
# ruff: noqa: T201

from __future__ import annotations

import sys

from tests.differential import recorded
from tests.differential.areas import ABOUT, AREAS, FILES
from tests.differential.documentation import PAGE, page
from tests.differential.known import KNOWN
from tests.differential.report import difference, table
from tests.differential.sides import compare, compare_settled, lacking


def main(areas: list[str]) -> int:
    """0 when every difference is a known one."""
    if areas == ["--write-page"]:
        PAGE.write_text(page(ABOUT), encoding="utf-8")
        return 0
    if areas and areas[0] in ("-h", "--help"):
        print(f"{__doc__}\nAreas: {', '.join(AREAS)}")
        return 0
    if areas == ["--record"] and not lacking():
        recorded.write("areas", compare_settled(recorded.CASES, FILES, namespace="kubectl", known=KNOWN))
        for suite, cases in recorded.generated().items():
            recorded.write(suite, compare({suite: cases}, {}, namespace="default"))
        return 0
    unknown_areas = [area for area in areas if area not in AREAS]
    if unknown_areas:
        print(f"{unknown_areas[0]}: must be one of {', '.join(AREAS)}", file=sys.stderr)
        return 2
    if why := lacking():
        print(why, file=sys.stderr)
        return 2
    pairs = compare({name: AREAS[name] for name in areas or AREAS}, FILES, namespace="kubectl")
    unknown = [pair for pair in pairs if not pair.same and pair.id not in KNOWN]
    for pair in unknown:
        print(f"\n## {pair.id}\n{difference(pair)}")
    for pair in pairs:
        if not pair.same and pair.id in KNOWN:
            print(f"\n## {pair.id}: known: {KNOWN[pair.id]}")
    print(f"\n{table(pairs)}")
    return 1 if unknown else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
