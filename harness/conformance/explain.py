"""What a clause rests upon: the passages of the contract that its reference names, which come with the package."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator, Sequence

from mews.harness.conformance.clause import Clause
from mews.harness.errors import BadInputError
from mews.harness.package import room

SECTION = re.compile(r"^## (\d+)\. ", re.MULTILINE)
SOURCE = "Source: "


def explanation(clause: Clause, dialect: str) -> str:
    """Title, grade, text and source of a clause."""
    how = inspect.getdoc(clause.check) or ""
    sections, words = _parts_of(clause.reference)
    lines = [f"{clause.id}: {clause.title}", ""]
    lines.append(f"dialect {dialect}, {clause.grade}{', assumed' if clause.assumed else ''}")
    lines.append("moves devices: needs --allow-changes" if clause.changes else "read-only")
    if clause.needs:
        lines.append(f"not judged where one of these does not hold: {', '.join(clause.needs)}")
    if how and how != inspect.getdoc(type(clause.check)):
        lines += ["", "How it is judged: " + " ".join(how.split())]
    lines += ["", f"Text ({clause.reference}):"]
    for number in sections:
        passages, source = _section(number)
        named = [each for each in passages if any(word in _plain(each) for word in words)]
        for each in named or passages:
            lines += ["", each]
        lines += ["", source]
    return "\n".join(lines).rstrip() + "\n"


def find_clause(name: str, clauses: Sequence[tuple[str, Clause]]) -> tuple[str, Clause]:
    """Return the dialect and the clause of that name.

    Raises BadInputError with the names that are spelt like it.
    """
    for dialect, clause in clauses:
        if clause.id == name:
            return dialect, clause
    known = [clause.id for _, clause in clauses]
    near = difflib.get_close_matches(name, known, 4, 0.5)
    hint = f"; did you mean {', '.join(near)}?" if near else f"; clauses: {', '.join(known[:5])} and more"
    raise BadInputError(f"--explain {name}: no such clause{hint}")


def _parts_of(reference: str) -> tuple[list[str], list[str]]:
    """Sections and the words that are looked for in them: ``chassis.md 1, 2 (I): GET /x, rules``."""
    where, _, what = reference.partition(":")
    if not where.startswith("chassis.md"):
        return [], []
    aside = ", ".join(re.findall(r"\((.*?)\)", where))
    numbers = re.findall(r"\d+", re.sub(r"\(.*?\)", "", where.removeprefix("chassis.md")))
    words = [_plain(word) for word in re.split(r", | and |: ", f"{what}, {aside}") if len(word.strip()) > 2]
    return numbers, words


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[`*()]", "", text).lower().split())


def _section(number: str) -> tuple[list[str], str]:
    """Return the passages of a section, paragraphs and points of lists, and where it is from."""
    text = (room("fixtures") / "contract" / "chassis.md").read_text(encoding="utf-8")
    parts = SECTION.split(text)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))[number]
    title, _, rest = found.partition("\n")
    passages = list(_passages(rest))
    source = next((each for each in passages if each.startswith(SOURCE)), "")
    return [f"{number}. {title}", *(each for each in passages if each != source)][1:], source


def _passages(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith(("- ", "#", "|")):
            if lines:
                yield "\n".join(lines)
            lines = [] if not line.strip() or line.startswith("#") else [line]
        else:
            lines.append(line)
    if lines:
        yield "\n".join(lines)
