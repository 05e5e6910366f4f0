"""From a tree to a function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.kube.cel.functions import FUNCTIONS, OPERATORS
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
)
from mews.kube.cel.values import CelError, Optional, ReceiverObject, TypeValue

Variables = dict[str, Any]
Evaluate = Callable[[Variables], Any]

TYPE_NAMES = {
    **{name: name for name in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "type")},
    "null_type": "null_type",
}
_MISSING: Any = object()


def compiled(expr: Expr) -> Evaluate:
    """A function from variables to the expression's value; it raises ``CelError``."""
    return _BUILDERS[type(expr)](expr)


def _literal(expr: Any) -> Evaluate:
    value = expr.value
    return lambda _: value


def _ident(expr: Any) -> Evaluate:
    name = expr.name
    if name in TYPE_NAMES:
        named = TypeValue(TYPE_NAMES[name])
        return lambda known: known.get(name, named)

    def evaluate(known: Variables) -> Any:
        try:
            return known[name]
        except KeyError:
            raise CelError(f"no such attribute(s): {name}") from None

    return evaluate


def _field(value: Any, name: str) -> Any:
    """A field's value, or ``_MISSING``."""
    if isinstance(value, dict):
        return value[name] if name in value else _MISSING  # noqa: SIM401 - a lazy map has no ``get`` of its own
    if isinstance(value, ReceiverObject):
        return value.fields.get(name, _MISSING)
    if value is None:
        return _MISSING
    raise CelError("no such overload")


def _select(expr: Any) -> Evaluate:
    operand, name = compiled(expr.operand), expr.field
    if expr.test:

        def test(known: Variables) -> Any:
            value = operand(known)
            if isinstance(value, Optional):
                return value.present and _field(value.value, name) is not _MISSING
            return _field(value, name) is not _MISSING

        return test
    if expr.optional:
        return lambda known: _maybe(operand(known), name)

    def select(known: Variables) -> Any:
        value = operand(known)
        if isinstance(value, Optional):
            return _maybe(value, name)
        found = _field(value, name)
        if found is _MISSING:
            raise CelError(f"no such key: {name}")
        return found

    return select


def _maybe(value: Any, key: Any) -> Optional:
    """``value.?key`` and ``value[?key]``."""
    if isinstance(value, Optional):
        if not value.present:
            return value
        value = value.value
    if isinstance(value, list):
        is_there = isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value)
        return Optional(value[key], True) if is_there else Optional()
    found = _field(value, key)
    return Optional() if found is _MISSING else Optional(found, True)


def _call(expr: Any) -> Evaluate:
    name, target = expr.function, expr.target
    if target is None and name in _SPECIAL:
        return _SPECIAL[name](expr)
    args = [compiled(arg) for arg in expr.args]
    if target is None:
        function = OPERATORS.get(name) or FUNCTIONS.get(name)
        if function is None:
            raise CelError(f"undeclared reference to '{name}' (in container '')")
        return _applied(function, args)
    qualified = f"{target.name}.{name}" if isinstance(target, Ident) else ""
    if qualified in FUNCTIONS:
        return _applied(FUNCTIONS[qualified], args)
    receiver, method = compiled(target), METHODS.get(name)

    def evaluate(known: Variables) -> Any:
        value = receiver(known)
        if isinstance(value, ReceiverObject) and name in value.methods:
            return value.methods[name](*(arg(known) for arg in args))
        if method is None:
            raise CelError("no such overload")
        return _guarded(method, [value, *(arg(known) for arg in args)])

    return evaluate


def _applied(function: Callable[..., Any], args: Sequence[Evaluate]) -> Evaluate:
    if len(args) == 2:
        first, second = args
        return lambda known: _guarded(function, (first(known), second(known)))
    return lambda known: _guarded(function, [arg(known) for arg in args])


def _guarded(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except (TypeError, AttributeError):
        raise CelError("no such overload") from None


def _and(expr: Any) -> Evaluate:
    return _absorbing(expr, decisive=False)


def _or(expr: Any) -> Evaluate:
    return _absorbing(expr, decisive=True)


def _absorbing(expr: Any, *, decisive: bool) -> Evaluate:
    """One side that decides makes the other's errors go away."""
    left, right = (compiled(arg) for arg in expr.args)

    def evaluate(known: Variables) -> Any:
        failure: CelError | None = None
        try:
            first = left(known)
            if first is decisive:
                return decisive
            if not isinstance(first, bool):
                failure = CelError("no such overload")
        except CelError as error:
            failure = error
        try:
            second = right(known)
        except CelError as error:
            raise failure or error from None
        if second is decisive:
            return decisive
        if failure is not None:
            raise failure
        if not isinstance(second, bool):
            raise CelError("no such overload")
        return second

    return evaluate


def _conditional(expr: Any) -> Evaluate:
    condition, yes, no = (compiled(arg) for arg in expr.args)

    def evaluate(known: Variables) -> Any:
        chosen = condition(known)
        if not isinstance(chosen, bool):
            raise CelError("no such overload")
        return yes(known) if chosen else no(known)

    return evaluate


def _index(expr: Any) -> Evaluate:
    container, key = (compiled(arg) for arg in expr.args)

    def evaluate(known: Variables) -> Any:
        value, index = container(known), key(known)
        if isinstance(value, Optional):
            return _maybe(value, index)
        if isinstance(value, list):
            if isinstance(index, float) and index.is_integer():
                index = int(index)
            if not isinstance(index, int) or isinstance(index, bool):
                raise CelError(f"unsupported index type '{type(index).__name__}' in list")
            if not 0 <= index < len(value):
                raise CelError(f"index out of bounds: {index}")
            return value[index]
        if isinstance(value, dict):
            if index in value:
                return value[index]
            raise CelError(f"no such key: {index}")
        raise CelError("no such overload")

    return evaluate


def _optional_index(expr: Any) -> Evaluate:
    container, key = (compiled(arg) for arg in expr.args)
    return lambda known: _maybe(container(known), key(known))


_SPECIAL: Mapping[str, Callable[[Any], Evaluate]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _optional_index,
}


def _list(expr: Any) -> Evaluate:
    items = [(compiled(item), optional) for item, optional in expr.items]

    def evaluate(known: Variables) -> Any:
        found = []
        for item, optional in items:
            value = item(known)
            if not optional:
                found.append(value)
            elif value.present:
                found.append(value.value)
        return found

    return evaluate


def _map(expr: Any) -> Evaluate:
    entries = [(compiled(key), compiled(value), optional) for key, value, optional in expr.entries]

    def evaluate(known: Variables) -> Any:
        found: dict[Any, Any] = {}
        for key, value, optional in entries:
            name, content = key(known), value(known)
            if optional:
                if not content.present:
                    continue
                content = content.value
            if name in found:
                raise CelError(f"insert failed: key {name} already exists")
            found[name] = content
        return found

    return evaluate


def _message(expr: Any) -> Evaluate:
    """A message is the map of its fields: what it is a message of says who makes use of it."""
    entries = [(name, compiled(value), optional) for name, value, optional in expr.entries]

    def evaluate(known: Variables) -> Any:
        found: dict[str, Any] = {}
        for name, value, optional in entries:
            content = value(known)
            if optional:
                if not content.present:
                    continue
                content = content.value
            found[name] = content
        return found

    return evaluate


def _items(value: Any) -> list[Any]:
    if isinstance(value, (list, dict)):
        return list(value)
    raise CelError("no such overload")


def _pairs(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, list):
        return list(enumerate(value))
    if isinstance(value, dict):
        return list(value.items())
    raise CelError("no such overload")


def _macro(expr: Any) -> Evaluate:
    target, names = compiled(expr.target), expr.names
    args = [compiled(arg) for arg in expr.args]
    if expr.macro == "bind":
        return lambda known: args[0]({**known, names[0]: target(known)})
    if expr.macro in ("optMap", "optFlatMap"):
        return _optional_map(target, names[0], args[0], flat=expr.macro == "optFlatMap")

    def scopes(known: Variables) -> Any:
        inner = dict(known)
        value = target(known)
        if len(names) == 1:
            for item in _items(value):
                inner[names[0]] = item
                yield inner, item
        else:
            for key, item in _pairs(value):
                inner[names[0]], inner[names[1]] = key, item
                yield inner, item

    return _LOOPS[expr.macro](scopes, args)


def _optional_map(target: Evaluate, name: str, body: Evaluate, *, flat: bool) -> Evaluate:
    def evaluate(known: Variables) -> Any:
        value = target(known)
        if not isinstance(value, Optional):
            raise CelError("no such overload")
        if not value.present:
            return value
        found = body({**known, name: value.value})
        return found if flat else Optional(found, True)

    return evaluate


def _decided(scopes: Callable[[Variables], Any], args: Sequence[Evaluate], *, decisive: bool) -> Evaluate:
    def evaluate(known: Variables) -> Any:
        failure: CelError | None = None
        for inner, _ in scopes(known):
            try:
                found = args[0](inner)
            except CelError as error:
                failure = failure or error
                continue
            if found is decisive:
                return decisive
            if not isinstance(found, bool):
                failure = failure or CelError("no such overload")
        if failure is not None:
            raise failure
        return not decisive

    return evaluate


def _exists_one(scopes: Callable[[Variables], Any], args: Sequence[Evaluate]) -> Evaluate:
    return lambda known: sum(1 for inner, _ in scopes(known) if args[0](inner) is True) == 1


def _filter(scopes: Callable[[Variables], Any], args: Sequence[Evaluate]) -> Evaluate:
    return lambda known: [item for inner, item in scopes(known) if args[0](inner) is True]


def _mapped(scopes: Callable[[Variables], Any], args: Sequence[Evaluate]) -> Evaluate:
    if len(args) == 1:
        return lambda known: [args[0](inner) for inner, _ in scopes(known)]
    return lambda known: [args[1](inner) for inner, _ in scopes(known) if args[0](inner) is True]


_LOOPS: Mapping[str, Callable[..., Evaluate]] = {
    "all": lambda scopes, args: _decided(scopes, args, decisive=False),
    "exists": lambda scopes, args: _decided(scopes, args, decisive=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _mapped,
}

_BUILDERS: Mapping[type[Expr], Callable[[Any], Evaluate]] = {
    Literal: _literal,
    Ident: _ident,
    Select: _select,
    FunctionCall: _call,
    ListExpr: _list,
    MapExpr: _map,
    MessageExpr: _message,
    MacroExpr: _macro,
}
