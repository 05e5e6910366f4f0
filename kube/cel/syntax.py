"""Expressions as trees. Every node has a number of its own and the place in the text where errors point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field


class Node(Struct, eq=False):
    """What all nodes have: ``at`` is the offset in the text."""

    at: int


class Literal(Node, eq=False):
    """A constant."""

    value: Any


class Ident(Node, eq=False):
    """A name."""

    name: str


class Select(Node, eq=False):
    """``operand.field``; ``test`` for ``has(operand.field)``."""

    operand: Node
    field: str
    test: bool = False


class CallNode(Node, eq=False):
    """A function or an operator (``_+_``), of a target or of none."""

    function: str
    target: Node | None
    args: list[Node]


class ListNode(Node, eq=False):
    """``[a, ?b]``."""

    items: list[Node]
    optional: set[int] = field(default_factory=set)


class MapNode(Node, eq=False):
    """``{k: v, ?k: v}``: key, value, whether it is optional."""

    entries: list[tuple[Node, Node, bool]]


class StructNode(Node, eq=False):
    """``Name{field: value, ?field: value}``: field, value, whether it is optional."""

    name: str
    fields: list[tuple[str, Node, bool]]


class Fold(Node, eq=False):
    """What a macro stands for: a loop over ``source`` that changes ``accu``. ``macro`` names it and ``args`` are as
    they were written, by which it is evaluated; check and costs go by the loop."""

    macro: str
    args: list[Node]
    source: Node
    var: str
    var2: str
    accu: str
    init: Node
    condition: Node
    step: Node
    result: Node


def below(node: Node) -> Iterator[Node]:
    """Yield all that an expression is made of, without itself."""
    waiting = _parts(node)
    while waiting:
        each = waiting.pop()
        yield each
        waiting += _parts(each)


def _parts(node: Node) -> list[Node]:
    if isinstance(node, Select):
        return [node.operand]
    if isinstance(node, CallNode):
        return [*([node.target] if node.target is not None else []), *node.args]
    if isinstance(node, ListNode):
        return list(node.items)
    if isinstance(node, MapNode):
        return [part for key, value, _ in node.entries for part in (key, value)]
    if isinstance(node, StructNode):
        return [value for _, value, _ in node.fields]
    if isinstance(node, Fold):
        return [node.source, node.init, node.condition, node.step, node.result]
    return []


def qualified(node: Node) -> str:
    """``a.b.c`` of nothing but names, else ""."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        prefix = qualified(node.operand)
        return f"{prefix}.{node.field}" if prefix else ""
    return ""


class ExpressionSyntaxError(ValueError):
    """An expression that cannot be read: what and where, and what was found before that."""

    def __init__(self, text: str, at: int, before: Sequence[tuple[int, str]] = ()) -> None:
        super().__init__(text)
        self.text = text
        self.at = at
        self.errors = [*before, (at, text)]


def report(source: str, errors: list[tuple[int, str]]) -> str:
    """Errors as cel-go writes them: place, line, and a caret below it."""
    lines = source.split("\n")
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for at, text in sorted(errors, key=lambda error: error[0]):
        row = max(index for index, start in enumerate(starts) if start <= max(at, 0))
        column = max(at, 0) - starts[row]
        snippet = lines[row].replace("\t", " ")
        mark = "".join("\uff0e" if ord(char) > 127 else "." for char in snippet[:column])
        mark += "\uff3e" if column < len(snippet) and ord(snippet[column]) > 127 else "^"
        if not source:  # there is no line to show
            found.append(f"ERROR: <input>:1:0: {text}")
            continue
        found.append(f"ERROR: <input>:{row + 1}:{column + 1}: {text}\n | {snippet}\n | {mark}")
    return "\n".join(found)
