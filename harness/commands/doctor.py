"""``mews doctor``: what this machine has and lacks, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mews.harness.backends import BACKENDS
from mews.harness.commands.words import FailingParser
from mews.harness.errors import RequirementError
from mews.harness.options import check_choice
from mews.kube.system.command import Command, CommandContext

if TYPE_CHECKING:
    from mews.harness.doctor.finding import PartFinding, WayFinding

VIRTUAL = "virtual"
WAY_NAMES = (VIRTUAL, *BACKENDS)


def run(words: Sequence[str], context: CommandContext) -> int:
    """Print the findings.

    Raises BadInputError for an unknown way to run, RequirementError where the chosen one, else virtual time, does not
    work.
    """
    parser = FailingParser("doctor")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--for", dest="way")
    chosen = parser.parse_args(words)
    if chosen.way is not None:
        check_choice("--for", chosen.way, WAY_NAMES)
    # With all that clusters need: nothing but this command waits for it.
    from mews.harness.doctor.parts import find_parts
    from mews.harness.doctor.ways import find_way

    ways = [find_way(name) for name in ([chosen.way] if chosen.way else WAY_NAMES)]
    parts = [part for part in find_parts() if chosen.way is None or chosen.way in part.needed_by]
    context.write(_json(ways, parts) if chosen.json else _text(ways, parts))
    judged = ways[0]  # the chosen one, or virtual time, which is the first
    if judged.lacks:
        raise RequirementError(f"mews doctor: {judged.name} does not work here: {'; '.join(judged.lacks)}")
    return 0


def _json(ways: Sequence[WayFinding], parts: Sequence[PartFinding]) -> str:
    """``get`` is only there where something is missing."""
    shown = {
        "ways": [{"name": way.name, "works": not way.lacks, "use": way.use, "lacks": way.lacks} for way in ways],
        "parts": [
            {
                "name": part.name,
                "purpose": part.purpose,
                "found": part.found or None,
                "get": None if part.found else part.get,
                "neededBy": part.needed_by,
            }
            for part in parts
        ],
    }
    return json.dumps(shown) + "\n"


def _text(ways: Sequence[WayFinding], parts: Sequence[PartFinding]) -> str:
    width = max(map(len, [*(way.name for way in ways), *(part.name for part in parts)]))
    lines = ["Ways to run"]
    for way in ways:
        says = "works: " + way.use if not way.lacks else "missing: " + "; ".join(way.lacks)
        lines.append(f"  {way.name:{width}}  {says}")
    lines.append("Parts")
    for part in parts:
        says = part.found or f"missing: {part.get}"
        lines.append(f"  {part.name:{width}}  {says} (for {part.purpose})")
    return "\n".join(lines) + "\n"


COMMAND = Command(
    "doctor",
    "Check what this machine has, and what is missing, for each way to run.",
    run,
    "[--for WAY] [--json]",
    options={
        "--for WAY": f"check only this way, and exit 3 if it does not work: {', '.join(WAY_NAMES)}",
        "--json": "print JSON",
    },
    examples=("mews doctor", "mews doctor --for control-plane"),
)
