"""Constants that are wrong whatever else holds: durations, timestamps and patterns that cannot be read, formats that do
not fit their arguments, lists of mixed types (cel-go's cel/validator.go, ext/formatting.go)."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.cel.formatting import clauses, count_error, type_error
from mews.kube.cel.operators import to_duration, to_timestamp
from mews.kube.cel.regexes import PatternError, searcher
from mews.kube.cel.syntax import CallNode, ListNode, Literal, MapNode, Node
from mews.kube.cel.types import Type
from mews.kube.cel.values import CelError


def literal_errors(node: Node, types: Mapping[Node, Type], *, mixed: bool) -> list[tuple[int, str]]:
    """Return what is wrong with the constants of a call, a list or a map, and where; members of several types may be
    ``mixed`` within the arguments of ``format``."""
    if isinstance(node, CallNode) and node.function in ("duration", "timestamp", "matches"):
        return _argument_errors(node)
    if isinstance(node, CallNode) and node.function == "format":
        return _format_errors(node, types)
    if isinstance(node, ListNode) and not mixed:
        return _mixed(node.items, types, node.optional)[:1]
    if isinstance(node, MapNode) and not mixed:
        optional = {i for i, entry in enumerate(node.entries) if entry[2]}
        keys = _mixed([key for key, _, _ in node.entries], types)
        return keys + _mixed([value for _, value, _ in node.entries], types, optional)
    return []


def _format_errors(node: CallNode, types: Mapping[Node, Type]) -> list[tuple[int, str]]:
    args = node.args[0] if node.args else None
    if not isinstance(node.target, Literal) or not isinstance(node.target.value, str) or not isinstance(args, ListNode):
        return []
    try:
        found = clauses(node.target.value)
    except CelError as error:
        return [(node.at, str(error))]
    if args.optional:
        return []
    for clause, arg in zip(found, args.items, strict=False):
        if clause.letter and (found_error := _argument_type_error(clause.letter, arg, types)):
            return [found_error]
    why = count_error(found, len(args.items))
    return [(node.at, why)] if why else []


def _argument_type_error(letter: str, arg: Node, types: Mapping[Node, Type]) -> tuple[int, str] | None:
    """Return the first part of an argument that the clause does not take, and why."""
    if letter == "s" and isinstance(arg, (ListNode, MapNode)):
        parts = arg.items if isinstance(arg, ListNode) else [part for entry in arg.entries for part in entry[:2]]
        return next((error for part in parts if (error := _argument_type_error(letter, part, types))), None)
    why = type_error(letter, types[arg].name)
    return (arg.at, why) if why else None


def _argument_errors(node: CallNode) -> list[tuple[int, str]]:
    """Return what is wrong with the first argument. Upstream reads even the text of ``matches(text, pattern)`` as a
    pattern."""
    arg = node.args[0] if node.args else None
    if not isinstance(arg, Literal):
        return []
    try:
        if node.function != "matches":
            (to_duration if node.function == "duration" else to_timestamp)(arg.value)
        elif isinstance(arg.value, str):
            searcher(arg.value)
    except (CelError, PatternError):
        return [(arg.at, f"invalid {node.function} argument")]
    return []


def _mixed(
    nodes: list[Node], types: Mapping[Node, Type], optional: set[int] | frozenset[int] = frozenset()
) -> list[tuple[int, str]]:
    """Return all that are not of the first one's type; what is ``dyn`` is of another type than ``int``."""
    found = [
        types[node].params[0] if index in optional and types[node].params else types[node]
        for index, node in enumerate(nodes)
    ]
    return [
        (node.at, f"expected type '{found[0]}' but found '{type_}'")
        for node, type_ in zip(nodes, found, strict=True)
        if type_ != found[0]
    ]
