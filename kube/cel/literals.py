"""Constants that are wrong whatever else holds: durations, timestamps and patterns that cannot be read, formats that do
not fit their arguments, lists of mixed types (cel-go's cel/validator.go, ext/formatting.go)."""

from __future__ import annotations

from collections.abc import Mapping

from mews.kube.cel.formatting import clauses, count_error, type_error
from mews.kube.cel.regexes import PatternError, searcher
from mews.kube.cel.syntax import CallNode, ListNode, Literal, MapNode, Node
from mews.kube.cel.types import DYN, Type
from mews.kube.cel.values import CelError, Duration, Timestamp


def literal_error(node: Node, types: Mapping[Node, Type]) -> tuple[int, str] | None:
    """Return what is wrong with the constants of a call or a list, and where."""
    if isinstance(node, CallNode) and node.function in ("duration", "timestamp", "matches"):
        return _argument_error(node)
    if isinstance(node, CallNode) and node.function == "format":
        return _format_error(node, types)
    if isinstance(node, ListNode):
        return _mixed(node.items, types, node.optional)
    if isinstance(node, MapNode):
        return _mixed([key for key, _, _ in node.entries], types) or _mixed(
            [value for _, value, _ in node.entries], types, {i for i, entry in enumerate(node.entries) if entry[2]}
        )
    return None


def _format_error(node: CallNode, types: Mapping[Node, Type]) -> tuple[int, str] | None:
    args = node.args[0] if node.args else None
    if not isinstance(node.target, Literal) or not isinstance(node.target.value, str) or not isinstance(args, ListNode):
        return None
    try:
        found = clauses(node.target.value)
    except CelError as error:
        return node.at, str(error)
    if args.optional:
        return None
    for clause, arg in zip(found, args.items, strict=False):
        if clause.letter and (why := type_error(clause.letter, types[arg].name)):
            return arg.at, why
    why = count_error(found, len(args.items))
    return (node.at, why) if why else None


def _argument_error(node: CallNode) -> tuple[int, str] | None:
    arg = node.args[-1] if node.args else None
    if not isinstance(arg, Literal) or not isinstance(arg.value, str):
        return None
    try:
        if node.function == "matches":
            searcher(arg.value)
        else:
            (Duration if node.function == "duration" else Timestamp).parse(arg.value)
    except (CelError, PatternError):
        return arg.at, f"invalid {node.function} argument"
    return None


def _mixed(
    nodes: list[Node], types: Mapping[Node, Type], optional: set[int] | frozenset[int] = frozenset()
) -> tuple[int, str] | None:
    first: Type | None = None
    for index, node in enumerate(nodes):
        type_ = types[node]
        if index in optional and type_.name == "optional_type":
            type_ = type_.params[0]
        if type_ == DYN:
            continue
        if first is None:
            first = type_
        elif type_ != first:
            return node.at, f"expected type '{first}' but found '{type_}'"
    return None
