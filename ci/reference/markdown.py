"""What all pages are written with."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any


def words(text: str) -> str:
    """Return a docstring as Markdown: literals in single backticks, literal blocks fenced."""
    lines: list[str] = []
    block: list[str] | None = None
    in_table = False
    for line in inspect.cleandoc(text).splitlines():
        if block is not None and line.strip() and not line.startswith(" "):
            lines += _fenced(block)
            block = None
        if block is not None:
            block.append(line)
        elif re.fullmatch(r"=+( =+)+", line):
            lines.append("```" if in_table else "```text")
            in_table = not in_table
        elif line.rstrip().endswith("::"):
            lines.append(line.rstrip()[:-2].rstrip() + (":" if line.strip() != "::" else ""))
            block = []
        else:
            lines.append(line)
    if block is not None:
        lines += _fenced(block)
    parts = re.split(r"(```text\n.*?\n```)", "\n".join(lines), flags=re.DOTALL)
    return "".join(part if part.startswith("```text") else part.replace("``", "`") for part in parts)


def _fenced(block: Sequence[str]) -> list[str]:
    return ["", "```text", *inspect.cleandoc("\n" + "\n".join(block)).strip("\n").splitlines(), "```", ""]


def doc(value: Any) -> str:
    """Return the docstring of a class, a function or a module; "" where it has none of its own."""
    return words(value.__doc__ or "")


def line(text: str) -> str:
    """Words as one line."""
    return " ".join(text.split())


def cell(text: str) -> str:
    """Text that stands in a table."""
    return line(text).replace("|", "\\|")


def code(text: object) -> str:
    """Return a name as it is typed; "" stays."""
    return f"`{text}`" if str(text) else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, or "" without rows."""
    written = [f"| {' | '.join(cell(each) for each in row)} |" for row in rows]
    if not written:
        return ""
    return "\n".join([f"| {' | '.join(heads)} |", "|" + "---|" * len(heads), *written]) + "\n"


def paragraphs(*parts: str) -> str:
    """Return those that are not empty, one after the other."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
