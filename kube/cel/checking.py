"""What can be said against an expression before it is evaluated: names, functions, operators and fields that are not
there (cel-go's checker, as far as types are known)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from mews.kube.cel.evaluation import TYPE_NAMES
from mews.kube.cel.functions import FUNCTIONS
from mews.kube.cel.methods import METHODS
from mews.kube.cel.syntax import (
    Expr,
    FunctionCall,
    Ident,
    ListExpr,
    Literal,
    MacroExpr,
    MapExpr,
    MessageExpr,
    Select,
    children,
    parse,
)
from mews.kube.cel.values import CelSyntaxError, type_name

DYN = "dyn"


@dataclass(frozen=True, slots=True)
class StructType:
    """A type with fields of its own; ``field`` gives a field's type, None for one that there is not."""

    name: str
    field: Callable[[str], CelType | None] = field(compare=False)


@dataclass(frozen=True, slots=True)
class ListType:
    """A list of one type."""

    item: CelType = DYN


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from strings to one type."""

    value: CelType = DYN


CelType: TypeAlias = "str | StructType | ListType | MapType"

_ORDERED = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_SAME = frozenset(("_==_", "_!=_"))
_LOGIC = frozenset(("_&&_", "_||_", "!_"))
_ARITHMETIC = frozenset(("_+_", "_-_", "_*_", "_/_", "_%_"))
_NUMBERS = frozenset(("int", "uint", "double"))
_TIMES = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))
_ADDED = _NUMBERS | _TIMES | {"string", "bytes"}
_RETURNS: Mapping[str, CelType] = {
    **dict.fromkeys(("size", "int", "indexOf", "lastIndexOf", "compareTo", "sign", "asInteger"), "int"),
    **dict.fromkeys(("string", "join", "format", "replace", "lowerAscii", "upperAscii", "trim", "substring"), "string"),
    **dict.fromkeys(("startsWith", "endsWith", "contains", "matches", "isQuantity", "isIP", "isCIDR", "isURL"), "bool"),
    **dict.fromkeys(("bool", "isSorted", "hasValue", "isGreaterThan", "isLessThan", "allowed"), "bool"),
    "split": ListType("string"),
    "double": "double",
    "uint": "uint",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
    "quantity": "kubernetes.Quantity",
}
_RECEIVERS: Mapping[str, str] = {
    "authorizer": "authorizer",
    **dict.fromkeys(("group", "resource", "subresource", "namespace", "name", "check"), "authorizer"),
    **dict.fromkeys(("path", "serviceAccount", "fieldSelector", "labelSelector"), "authorizer"),
    **dict.fromkeys(("allowed", "reason", "errored", "error"), "authorizer"),
}
MESSAGES = ("Object", "JSONPatch")
"""What messages may be made of."""


def show(kind: CelType) -> str:
    """A type as cel-go names it."""
    if isinstance(kind, StructType):
        return kind.name
    if isinstance(kind, ListType):
        return f"list({show(kind.item)})"
    return f"map(string, {show(kind.value)})" if isinstance(kind, MapType) else kind


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """A tree, the type of its value, and what is wrong with it (position, text)."""

    tree: Expr | None
    type: CelType
    faults: tuple[tuple[int, str], ...]

    def report(self, source: str) -> str:
        """All that is wrong, as cel-go prints it."""
        return "\n".join(_printed(source, at, text) for at, text in self.faults)


def _printed(source: str, at: int, text: str) -> str:
    line = source.count("\n", 0, at)
    start = source.rfind("\n", 0, at) + 1
    shown = source.split("\n")[line]
    column = at - start
    return f"ERROR: <input>:{line + 1}:{column + 1}: {text}\n | {shown}\n | {'.' * column}^"


def check(source: str, variables: Mapping[str, CelType]) -> CheckedExpression:
    """Read and check an expression over those variables."""
    try:
        tree = parse(source)
        checker = _Checker()
        kind = checker.type_of(tree, variables)
    except CelSyntaxError as error:
        return CheckedExpression(None, DYN, ((error.at, error.text),))
    except RecursionError:
        return CheckedExpression(None, DYN, ((0, "expression recursion limit exceeded"),))
    return CheckedExpression(tree, kind, tuple(checker.faults))


class _Checker:
    def __init__(self) -> None:
        self.faults: list[tuple[int, str]] = []

    def type_of(self, expr: Expr, known: Mapping[str, CelType]) -> CelType:
        match expr:
            case Literal():
                return type_name(expr.value)
            case Ident():
                return self._ident(expr, known)
            case Select():
                return self._select(expr, known)
            case FunctionCall():
                return self._call(expr, known)
            case MacroExpr():
                return self._macro(expr, known)
            case ListExpr():
                kinds = [self.type_of(item, known) for item, _ in expr.items]
                return ListType(kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else DYN)
            case MapExpr():
                for each in children(expr):
                    self.type_of(each, known)
                return MapType()
            case MessageExpr():
                if expr.name.partition(".")[0] not in MESSAGES:
                    self.faults.append((expr.at, f"undeclared reference to '{expr.name}' (in container '')"))
                for each in children(expr):
                    self.type_of(each, known)
                return expr.name
        return DYN

    def _ident(self, expr: Ident, known: Mapping[str, CelType]) -> CelType:
        if expr.name in known:
            return known[expr.name]
        if expr.name in TYPE_NAMES:
            return "type"
        self.faults.append((expr.at, f"undeclared reference to '{expr.name}' (in container '')"))
        return DYN

    def _select(self, expr: Select, known: Mapping[str, CelType]) -> CelType:
        operand = self.type_of(expr.operand, known)
        found: CelType = DYN
        if isinstance(operand, StructType):
            inner = operand.field(expr.field)
            if inner is None:
                self.faults.append((expr.at, f"undefined field '{expr.field}'"))
                return DYN
            found = inner
        elif isinstance(operand, MapType):
            found = operand.value
        elif isinstance(operand, ListType) or operand in _ADDED or operand == "bool":
            self.faults.append((expr.at, f"type '{show(operand)}' does not support field selection"))
            return DYN
        if expr.test:
            return "bool"
        return "optional_type" if expr.optional else found

    def _call(self, expr: FunctionCall, known: Mapping[str, CelType]) -> CelType:
        if expr.target is not None:
            return self._method(expr, expr.target, known)
        kinds = [self.type_of(arg, known) for arg in expr.args]
        name = expr.function
        if name == "_?_:_":
            if kinds[0] not in (DYN, "bool"):
                return self._mismatch(expr, kinds)
            return kinds[1] if kinds[1] == kinds[2] else DYN
        if name == "_[_]":
            return _item(kinds[0])
        if name == "_[?_]":
            return "optional_type"
        if name[0] not in "_!-@":
            if name not in FUNCTIONS or "." in name:
                self.faults.append((expr.at, f"undeclared reference to '{name}' (in container '')"))
                return DYN
            if name == "size" and kinds and not _has_size(kinds[0]):
                return self._mismatch(expr, kinds)
            return _RETURNS.get(name, DYN)
        return self._operator(expr, kinds)

    def _operator(self, expr: FunctionCall, kinds: list[CelType]) -> CelType:
        name = expr.function
        if name in _LOGIC:
            if any(kind not in (DYN, "bool") for kind in kinds):
                return self._mismatch(expr, kinds)
            return "bool"
        if name == "-_":
            return kinds[0] if kinds[0] in _NUMBERS else DYN
        if name == "@in":
            return "bool"
        left, right = kinds
        if name in _SAME:
            if not _comparable(left, right):
                return self._mismatch(expr, kinds)
            return "bool"
        if name in _ORDERED:
            ok = DYN in kinds or left == right or (left in _NUMBERS and right in _NUMBERS)
            return "bool" if ok else self._mismatch(expr, kinds)
        if DYN in kinds or isinstance(left, (ListType, MapType, StructType)):
            return left if left == right else DYN
        if left == right and (left in _NUMBERS or (name == "_+_" and left in _ADDED)):
            return left
        if left in _TIMES and right in _TIMES:
            return DYN
        return self._mismatch(expr, kinds)

    def _mismatch(self, expr: FunctionCall, kinds: list[CelType]) -> CelType:
        shown = ", ".join(show(kind) for kind in kinds)
        text = f"found no matching overload for '{expr.function}' applied to '({shown})'"
        self.faults.append((expr.at, text))
        return DYN

    def _method(self, expr: FunctionCall, target: Expr, known: Mapping[str, CelType]) -> CelType:
        if isinstance(target, Ident) and f"{target.name}.{expr.function}" in FUNCTIONS and target.name not in known:
            for arg in expr.args:
                self.type_of(arg, known)
            return DYN
        self.type_of(target, known)
        for arg in expr.args:
            self.type_of(arg, known)
        if expr.function not in METHODS and expr.function not in _RECEIVERS:
            self.faults.append((expr.at, f"undeclared reference to '{expr.function}' (in container '')"))
            return DYN
        return _RETURNS.get(expr.function, DYN)

    def _macro(self, expr: MacroExpr, known: Mapping[str, CelType]) -> CelType:
        target = self.type_of(expr.target, known)
        inner = dict(known)
        if expr.macro == "bind":
            inner[expr.names[0]] = target
        elif len(expr.names) == 1:
            inner[expr.names[0]] = "string" if isinstance(target, MapType) else _item(target)
        else:
            inner[expr.names[0]], inner[expr.names[1]] = DYN, _item(target)
        kinds = [self.type_of(arg, inner) for arg in expr.args]
        match expr.macro:
            case "all" | "exists" | "exists_one":
                return "bool"
            case "filter":
                return target if isinstance(target, ListType) else ListType()
            case "map":
                return ListType(kinds[-1])
            case "bind":
                return kinds[0]
        return DYN


def _comparable(left: CelType, right: CelType) -> bool:
    if DYN in (left, right) or left == right or "null_type" in (left, right):
        return True
    return isinstance(left, (ListType, MapType)) and type(left) is type(right)


def _has_size(kind: CelType) -> bool:
    return isinstance(kind, (ListType, MapType)) or kind in (DYN, "string", "bytes", "list", "map")


def _item(kind: CelType) -> CelType:
    if isinstance(kind, ListType):
        return kind.item
    return kind.value if isinstance(kind, MapType) else DYN
