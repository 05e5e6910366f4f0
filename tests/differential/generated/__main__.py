"""``python -m tests.differential.generated writers --seeds 0-199``: drawn cases to both servers, and what differs.

``fields --cases 5000 --seed 1`` asks about the fields of all built-in kinds, or of those that are named; ``record``
writes the published types anew.
"""

# Prints its report.
# ruff: noqa: T201

from __future__ import annotations

import argparse
from dataclasses import replace

from tests.differential.generated import definitions, fields, guarded, pods, published, rows, writers
from tests.differential.generated.field_report import differing, kinds_table
from tests.differential.report import difference, table
from tests.differential.sides import compare, lacking, real_documents

AREAS = {
    "writers": writers.cases,
    "guarded": guarded.cases,
    "definitions": definitions.cases,
    "pods": pods.cases,
    "rows": rows.cases,
}
COMPARED = {"definitions": definitions.compared, "pods": pods.compared}


def main() -> int:
    """0 when no answer differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.generated", description=__doc__)
    parser.add_argument("area", choices=[*AREAS, "fields", "record"])
    parser.add_argument("--seeds", default="0-99")
    parser.add_argument("--cases", type=int, default=5000, help="of fields: how many")
    parser.add_argument("--seed", type=int, default=1, help="of fields: which")
    parser.add_argument("--pairs", action="store_true", help="of fields: two at once")
    parser.add_argument("kinds", nargs="*", help="of fields: these kinds alone (Job)")
    arguments = parser.parse_intermixed_args()
    if why := lacking():
        print(why)
        return 3
    if arguments.area == "record":
        published.RECORD.write_text(published.written(real_documents(published.recorded)), encoding="utf-8")
        return 0
    return _fields(arguments) if arguments.area == "fields" else _drawn(arguments)


def _fields(arguments: argparse.Namespace) -> int:
    """1 when a difference is not a known one."""
    asked = fields.cases(arguments.seed, arguments.cases, arguments.kinds, pairs=arguments.pairs)
    pairs = compare({"fields": asked}, {}, namespace="default")
    found, known = differing(pairs)
    for pair in found:
        print(f"\n## {pair.case.name}\n{difference(pair)}")
    for pair, reason in known:
        print(f"\n## {pair.case.name}: known: {reason}")
    print(f"\n{kinds_table(pairs)}")
    return 1 if found else 0


def _drawn(arguments: argparse.Namespace) -> int:
    first, _, last = arguments.seeds.partition("-")
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
