"""The types of an expression, and what is wrong with them in cel-go's words (checker/checker.go)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from mews.kube.cel import types
from mews.kube.cel.literals import literal_errors
from mews.kube.cel.signatures import NAMES, Overload, functions
from mews.kube.cel.syntax import (
    CallNode,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
    below,
    qualified,
)
from mews.kube.cel.types import Bindings, Type
from mews.kube.cel.values import UInt

_LITERALS: Mapping[type, Type] = {
    bool: types.BOOL, int: types.INT, UInt: types.UINT, float: types.DOUBLE, str: types.STRING, bytes: types.BYTES,
    type(None): types.NULL,
}  # fmt: skip
_CONSTANTS = {name: Type("type", (type_,)) for name, type_ in NAMES.items() if type_.fields is None}
_CONSTANTS["list"] = Type("type", (types.list_of(types.DYN),))
_CONSTANTS["map"] = Type("type", (types.map_of(types.DYN, types.DYN),))
_CONSTANTS |= {"google.protobuf.Timestamp": Type("type", (types.TIMESTAMP,))}
_CONSTANTS |= {"google.protobuf.Duration": Type("type", (types.DURATION,))}
_CONSTANTS |= {name: Type("type", (NAMES[key],)) for name, key in (("net.IP", "ip"), ("net.CIDR", "cidr"))}
for _name in ("timestamp", "duration", "ip", "cidr", "quantity", "url", "semver", "format", "dyn"):
    _CONSTANTS.pop(_name, None)


class Checked(Struct):
    """A tree with the type of each node, the overloads of each call, and what is wrong."""

    tree: Node
    types: dict[Node, Type] = field(default_factory=dict)
    overloads: dict[Node, list[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    errors: list[tuple[int, str]] = field(default_factory=list)

    @property
    def type(self) -> Type:
        """The type of the whole."""
        return self.types[self.tree]


def check(tree: Node, variables: Mapping[str, Type], messages: frozenset[str] = frozenset()) -> Checked:
    """Types of a tree whose free names are the variables and that may make messages of those names (and below)."""
    checker = _Checker(tree, dict(variables), messages)
    checker.visit(tree)
    found = checker.found
    found.types = {node: types.substituted(checker.bound, type_, loose=True) for node, type_ in found.types.items()}
    if not found.errors:
        calls = [node for node in found.types if isinstance(node, CallNode) and node.function == "format"]
        free = {part for call in calls for part in below(call)}
        found.errors = [
            error for node in found.types for error in literal_errors(node, found.types, mixed=node in free)
        ]
    return found


class _Checker:
    def __init__(self, tree: Node, variables: dict[str, Type], messages: frozenset[str]) -> None:
        self.found = Checked(tree)
        self._messages = messages
        self.bound: Bindings = {}
        self._scopes = [variables]
        self._fresh = 0

    def visit(self, node: Node) -> Type:
        type_ = self._visit(node)
        self.found.types[node] = type_
        return type_

    def _error(self, node: Node, text: str) -> Type:
        self.found.errors.append((node.at, text))
        return types.ERROR

    def _visit(self, node: Node) -> Type:
        if isinstance(node, Literal):
            return _LITERALS[type(node.value)]
        if isinstance(node, Ident):
            return self._named(node, node.name) or self._undeclared(node, node.name)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, CallNode):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Fold):
            return self._fold(node)
        assert isinstance(node, StructNode)
        for _, value, optional in node.fields:
            self._unwrapped(value, self.visit(value), optional)
        if node.name.partition(".")[0] in self._messages:
            return types.struct(node.name)
        return self._undeclared(node, node.name)

    def _named(self, node: Node, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                if scope is self._scopes[0]:
                    self.found.names.add(name)
                return scope[name]
        return _CONSTANTS.get(name)

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._error(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Type:
        if not node.test and (name := qualified(node)) and (found := self._named(node, name)) is not None:
            return found
        result = self._field(node, node.operand, node.field)
        return types.BOOL if node.test else types.substituted(self.bound, result)

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool = False) -> Type:
        given = self.visit(operand)
        target = types.substituted(self.bound, given)
        is_optional = target.name == "optional_type"
        if is_optional:
            target = target.params[0]
        result = types.ERROR
        if target.is_var:
            self._may(types.DYN, target)
            result = types.DYN
        elif target.name == "map":
            result = target.params[1]
        elif target.fields is not None:
            if types.is_opaque(target):
                self._error(node, f"unexpected failed resolution of '{target}'")
            elif name in target.fields:
                result = target.fields[name]
            else:
                self._error(node, f"undefined field '{name}'")
        else:
            if not types.is_loose(target):
                self._error(node, f"type '{target}' does not support field selection")
            result = types.DYN
        return types.optional_of(result) if is_optional or optional else result

    def _may(self, one: Type, other: Type) -> bool:
        bound = types.assignable(self.bound, one, other)
        if bound is not None:
            self.bound = bound
        return bound is not None

    def _call(self, node: CallNode) -> Type:
        if node.function == "_?._":
            self.found.overloads[node] = ["select_optional_field"]
            self.found.types[node.args[1]] = types.STRING
            name = node.args[1]
            assert isinstance(name, Literal)
            return types.substituted(self.bound, self._field(node, node.args[0], str(name.value), optional=True))
        for arg in node.args:
            self.visit(arg)
        known = functions()
        if node.target is not None:
            whole = f"{prefix}.{node.function}" if (prefix := qualified(node.target)) else ""
            if whole in known:
                node.function, node.target = whole, None
            else:
                self.visit(node.target)
        if node.function not in known:
            return self._undeclared(node, node.function)
        return self._resolve(node, known[node.function])

    def _resolve(self, node: CallNode, overloads: tuple[Overload, ...]) -> Type:
        nodes = [*([node.target] if node.target is not None else []), *node.args]
        given = [self.found.types[one] for one in nodes]
        if node.function in ("_&&_", "_||_"):
            return self._logical(node, given)
        result: Type | None = None
        matched: list[str] = []
        for overload in overloads:
            if overload.member != (node.target is not None):
                continue
            fresh = self._fresh_vars(overload)
            args = tuple(types.substituted(fresh, arg) for arg in overload.args)
            bound = types.all_assignable(self.bound, given, args)
            if bound is None:
                continue
            self.bound = bound
            matched.append(overload.id)
            made = types.substituted(self.bound, types.substituted(fresh, overload.result))
            if result is None:
                result = made
            elif result not in (types.DYN, types.ANY) and made != result:
                result = types.DYN
        self.found.overloads[node] = matched
        return result if result is not None else self._no_overload(node, given)

    def _no_overload(self, node: CallNode, given: list[Type]) -> Type:
        shown = [str(types.substituted(self.bound, one, loose=True)) for one in given]
        text = f"({', '.join(shown)})" if node.target is None else f"{shown[0]}.({', '.join(shown[1:])})"
        return self._error(node, f"found no matching overload for '{node.function}' applied to '{text}'")

    def _logical(self, node: CallNode, given: list[Type]) -> Type:
        self.found.overloads[node] = ["logical_and" if node.function == "_&&_" else "logical_or"]
        wrong = False
        for arg, type_ in zip(node.args, given, strict=True):
            if not self._may(type_, types.BOOL):
                self._error(arg, f"expected type 'bool' but found '{type_}'")
                wrong = True
        return types.ERROR if wrong else types.BOOL

    def _fresh_vars(self, overload: Overload) -> Bindings:
        found: Bindings = {}
        for type_ in (*overload.args, overload.result):
            for var in _variables(type_):
                if var not in found:
                    found[var] = self._var()
        return found

    def _var(self) -> Type:
        self._fresh += 1
        return Type(f"_var{self._fresh - 1}", is_var=True)

    def _joined(self, before: Type | None, type_: Type) -> Type:
        if before is None:
            return type_
        if self._may(before, type_):
            return types.most_general(before, type_)
        return types.DYN  # whether that is wrong is looked at later: the arguments of ``format`` may be mixed

    def _list(self, node: ListNode) -> Type:
        joined: Type | None = None
        for index, item in enumerate(node.items):
            joined = self._joined(joined, self._unwrapped(item, self.visit(item), index in node.optional))
        return types.list_of(joined or self._var())

    def _unwrapped(self, node: Node, type_: Type, optional: bool) -> Type:
        if not optional:
            return type_
        if type_.name == "optional_type":
            return type_.params[0]
        if type_ not in (types.DYN, types.ANY):
            self._error(node, f"expected type '{types.optional_of(type_)}' but found '{type_}'")
        return type_

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, optional in node.entries:
            keys = self._joined(keys, self.visit(key))
            values = self._joined(values, self._unwrapped(value, self.visit(value), optional))
        return types.map_of(keys or self._var(), values or self._var())

    def _fold(self, node: Fold) -> Type:
        given = self.visit(node.source)
        source = types.substituted(self.bound, given)
        accu = self.visit(node.init)
        self._scopes.append({node.accu: accu})
        one, two = self._range(node, source)
        self._scopes.append({node.var: one, **({node.var2: two} if node.var2 else {})})
        self._must(node.condition, types.BOOL)
        if node.macro == "bind":
            self.visit(node.step)
        else:
            self._must(node.step, accu)
        self._scopes.pop()
        if node.result is not node.step:
            self.visit(node.result)
        self._scopes.pop()
        return types.substituted(self.bound, self.found.types[node.result])

    def _must(self, node: Node, wanted: Type) -> None:
        found = self.visit(node)
        if not self._may(wanted, found):
            self._error(node, f"expected type '{wanted}' but found '{found}'")

    def _range(self, node: Fold, source: Type) -> tuple[Type, Type]:
        if source.is_var or types.is_loose(source):
            self._may(types.DYN, source)
            return types.DYN, types.DYN
        if source.name == "list":
            return (types.INT, source.params[0]) if node.var2 else (source.params[0], types.DYN)
        if source.name == "map":
            return source.params[0], source.params[1]
        text = f"expression of type '{source}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._error(node.source, text)
        return types.ERROR, types.ERROR


def _variables(type_: Type) -> set[Type]:
    return {type_} if type_.is_var else {var for part in type_.params for var in _variables(part)}
