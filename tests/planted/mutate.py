"""Draws faults: guards, comparisons, missing calls, and the order of calls; each changes one place of one function."""

from __future__ import annotations

import ast
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.planted.fault import Fault
from tests.planted.rooms import ROOT, files_of

_SWAPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_TALK = ("log", "logger", "logging", "_log", "warnings")
"""What is said to people is no behaviour."""
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)


@dataclass(frozen=True, slots=True)
class Change:
    """The text between two places of a source, and what takes its place."""

    sort: str
    start: int
    end: int
    text: str


def faults_of(room: str, rng: random.Random) -> Iterator[Fault]:
    """Faults in that room without end (until none is left), each place once: the sort of fault is drawn first, so that
    all are met, then the place."""
    places: dict[str, list[tuple[str, Change]]] = {}
    for file in files_of(room):
        for change in changes((ROOT / file).read_text(encoding="utf-8")):
            places.setdefault(change.sort, []).append((file, change))
    for found in places.values():
        rng.shuffle(found)
    number = 0
    while places:
        sort = rng.choice(sorted(places))
        file, change = places[sort].pop()
        if not places[sort]:
            del places[sort]
        number += 1
        before = (ROOT / file).read_text(encoding="utf-8")[change.start : change.end]
        yield Fault(f"{room}-{number}-{sort}", room, file, change.start, before, change.text)


def changes(source: str) -> Iterator[Change]:
    """Every place of that source where a fault can be planted, in its order."""
    text = SourceText(source)
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name not in (
            "__repr__",
            "__str__",
        ):
            for node in _own(function):
                yield from _of(node, text)
            yield from _early(function, text)


class SourceText:
    """The source by line and column, as the syntax tree counts them: in bytes."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def place(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def start(self, node: ast.AST) -> int:
        return self.place(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.place(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)]

    def change(self, sort: str, node: ast.AST, text: str) -> Change:
        return Change(sort, self.start(node), self.end(node), text)


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """The nodes of its body, without those of functions within and of what is said to people."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Raise | ast.JoinedStr):
            continue
        if isinstance(node, ast.Expr) and (_is_talk(node.value) or isinstance(node.value, ast.Constant)):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _is_talk(value: ast.expr) -> bool:
    while isinstance(value, ast.Await | ast.Call | ast.Attribute):
        value = value.func if isinstance(value, ast.Call) else value.value
    return isinstance(value, ast.Name) and value.id in _TALK


def _of(node: ast.AST, text: SourceText) -> Iterator[Change]:
    if isinstance(node, ast.If):
        yield text.change("guard-negated", node.test, f"not ({text.of(node.test)})")
        if not node.orelse and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
            yield text.change("guard-removed", node.test, "False")
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        left, right = text.of(node.left), text.of(node.comparators[0])
        yield text.change("comparison", node, f"({left}) {_SWAPPED[type(node.ops[0])]} ({right})")
    if isinstance(node, ast.BoolOp):
        yield from _operands(node, text)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield text.change("off-by-one", node, str(node.value + 1))
    if isinstance(node, ast.Expr):
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call):
            yield text.change("call-dropped", node, "pass")
    for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
        if isinstance(block, list):
            yield from _order(block, text)


def _operands(node: ast.BoolOp, text: SourceText) -> Iterator[Change]:
    """One operand less: a guard that forgets a case."""
    for dropped in range(len(node.values)):
        kept = [f"({text.of(value)})" for place, value in enumerate(node.values) if place != dropped]
        joined = (" and " if isinstance(node.op, ast.And) else " or ").join(kept)
        yield text.change("operand-dropped", node, f"({joined})")


def _order(block: Sequence[ast.stmt], text: SourceText) -> Iterator[Change]:
    for one, other in itertools.pairwise(block):
        both = isinstance(one, _SIMPLE) and isinstance(other, _SIMPLE)
        if both and not (_says(one) or _says(other)) and one.lineno != other.lineno:
            between = text.source[text.end(one) : text.start(other)]
            changed = f"{text.of(other)}{between}{text.of(one)}"
            yield Change("order", text.start(one), text.end(other), changed)


def _says(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and (_is_talk(node.value) or isinstance(node.value, ast.Constant))


def _early(function: ast.FunctionDef | ast.AsyncFunctionDef, text: SourceText) -> Iterator[Change]:
    """Return before the last statement of a function that returns nothing; swap its own statements."""
    yield from _order(function.body, text)
    returns = function.returns
    nothing = isinstance(returns, ast.Constant) and returns.value is None
    if nothing and len(function.body) > 2 and not isinstance(function.body[-1], ast.Return | ast.Raise):
        yield text.change("early-return", function.body[-1], "return")
