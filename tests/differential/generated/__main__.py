"""``python -m tests.differential.generated writers --seeds 0-199``: drawn cases to both servers, and what differs."""

# Prints its report.
# ruff: noqa: T201

from __future__ import annotations

import argparse
from dataclasses import replace

from tests.differential.generated import definitions, guarded, writers
from tests.differential.report import difference, table
from tests.differential.sides import compare, lacking

AREAS = {"writers": writers.cases, "guarded": guarded.cases, "definitions": definitions.cases}
COMPARED = {"definitions": definitions.compared}


def main() -> int:
    """0 when no answer differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.generated", description=__doc__)
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--seeds", default="0-99")
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("-")
    if why := lacking():
        print(why)
        return 3
    drawn = AREAS[arguments.area](range(int(first), int(last or first) + 1))
    pairs = compare({arguments.area: drawn}, {}, namespace="default")
    alike = COMPARED.get(arguments.area, dict)
    pairs = [replace(pair, real=alike(pair.real), ours=alike(pair.ours)) for pair in pairs]
    for pair in pairs:
        if not pair.same:
            print(f"\n## {pair.id}\n{getattr(pair.case, 'body', '')}\n{difference(pair)}")
    print(f"\n{table(pairs)}")
    return 0 if all(pair.same for pair in pairs) else 1


if __name__ == "__main__":
    raise SystemExit(main())
