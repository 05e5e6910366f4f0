"""One fault: which text takes the place of which, and where."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tests.planted.rooms import ROOT


class LostFaultError(ValueError):
    """The source has changed: the place of a fault is not there, or there several times."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``before`` at ``offset`` of the file becomes ``after``."""

    name: str
    room: str
    file: str
    offset: int
    before: str
    after: str

    @property
    def line(self) -> int:
        """Where it is."""
        return self.source().count("\n", 0, self.offset) + 1

    def source(self) -> str:
        """The file as it is."""
        return (ROOT / self.file).read_text(encoding="utf-8")

    def text(self) -> str:
        """The file with the fault; it compiles.

        Raises LostFaultError.
        """
        source = self.source()
        end = self.offset + len(self.before)
        if source[self.offset : end] != self.before:
            raise LostFaultError(f"{self.name}: {self.file} has changed")
        changed = source[: self.offset] + self.after + source[end:]
        compile(changed, self.file, "exec")
        return changed

    def function(self) -> tuple[str, int] | None:
        """File and first line of the innermost function around it, as its code object has them; None outside of any,
        where its line runs as the module is imported."""
        return enclosing(self.file, self.source(), self.line)

    def __str__(self) -> str:
        was, now = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.name} {self.file}:{self.line}: {was!r} -> {now!r}"


def enclosing(file: str, source: str, line: int) -> tuple[str, int] | None:
    """The innermost function of that source around that line."""
    found = None
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= (node.end_lineno or 0):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if found is None or first > found[1]:
                found = file, first
    return found
