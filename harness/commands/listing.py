"""``mews list``: what comes with Mews, a line each."""

from __future__ import annotations

import json
from collections.abc import Sequence

from msgspec import to_builtins

from mews.harness import terminal
from mews.harness.catalogue.entry import CatalogueEntry
from mews.harness.catalogue.kinds import KINDS, entries
from mews.harness.commands.words import FailingParser
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext
from mews.names import did_you_mean, must_be


def list_command(words: Sequence[str], context: CommandContext) -> int:
    """Kinds alone without words; else the entries of one kind."""
    parser = FailingParser("list")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("kind", nargs="?")
    parser.add_argument("word", nargs="*", default=[])
    chosen = parser.parse_args(words)
    if chosen.kind is None:
        rows = [CatalogueEntry(kind, summary, use=f"mews list {kind}") for kind, (summary, _) in KINDS.items()]
        context.write(_json(rows) if chosen.json else _table(rows, uses=False))
        return 0
    show(chosen.kind, " ".join(chosen.word), as_json=chosen.json)
    return 0


def show(kind: str, word: str = "", *, as_json: bool = False) -> None:
    """Print the entries of a kind that have the word in them.

    Raises BadInputError, as ``found`` does.
    """
    rows = found(kind, word)
    terminal.out(_json(rows) if as_json else _table(rows))


def found(kind: str, word: str) -> list[CatalogueEntry]:
    """Return the entries of a kind that have the word in them.

    Raises BadInputError for no such kind, and where no entry has the word.
    """
    if kind not in KINDS:
        raise BadInputError(f"mews list {kind}: {must_be(kind, KINDS)}")
    rows = entries(kind, word)
    if not rows:
        near = did_you_mean(word, [each.name for each in entries(kind)])
        raise BadInputError(f"mews list {kind} {word}: nothing found{near}; `mews list {kind}` lists all")
    return rows


def _json(rows: Sequence[CatalogueEntry]) -> str:
    return json.dumps([to_builtins(each) for each in rows]) + "\n"


def _table(rows: Sequence[CatalogueEntry], *, uses: bool = True) -> str:
    """Columns; that of owners is left out where none has one."""
    names, owners = (max(map(len, column)) for column in ([each.name for each in rows], [each.of for each in rows]))
    lines = []
    for each in rows:
        owner = f"  {each.of:{owners}}" if owners else ""
        use = f": {each.use}" if uses and each.use else ""
        lines.append(f"{each.name:{names}}{owner}  {each.summary}{use}\n")
    return "".join(lines)


COMMAND = Command(
    "list",
    "List what comes with Mews: scenarios, hardware, images, faults, steps, checks and more.",
    list_command,
    "[KIND [WORD]] [--json]",
    options={
        "KIND": f"list entries of this kind: {', '.join(KINDS)}",
        "WORD": "show only entries with this word in name or summary",
        "--json": "print JSON",
    },
    examples=("mews list scenarios gpushare", "mews list faults host", "mews list profiles board"),
)
