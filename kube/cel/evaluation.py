"""Evaluate a checked tree. It becomes closures once; each run counts its steps, of which only so many are allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.cel.budgets import PACE, SLICE
from mews.kube.cel.call_costs import AUTHORIZATION_COST, call_cost
from mews.kube.cel.frames import Constant, CostExceededError, Frame, Run, within
from mews.kube.cel.functions import FUNCTIONS
from mews.kube.cel.loops import LIST_STEPS, LOOPS, rounds_of
from mews.kube.cel.operators import contained, index
from mews.kube.cel.overload_errors import GO_TYPES, NO_OVERLOAD, RefusedOperandError, no_overload
from mews.kube.cel.regexes import PatternError, searcher
from mews.kube.cel.syntax import CallNode, Fold, Ident, ListNode, Literal, MapNode, Node, Select, StructNode, qualified
from mews.kube.cel.values import NOTHING, CelError, Defaulting, SomeValue, TypeName, type_of

COST_LIMIT = 1_000_000
"""The steps of one evaluation, as Kubernetes limits them."""

_NO_INDEX = "unsupported index type 'string' in list"
_TYPES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "net.IP", "net.CIDR")


_CONVERSIONS = frozenset((
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint",
))  # fmt: skip
"""Functions that are evaluated once, with the program, if their argument is a constant (cel-go's decorators.go)."""
_MAP_STEPS = 30


class Program:
    """An expression ready to run."""

    def __init__(self, tree: Node) -> None:
        try:
            self._run = _compiled(tree)
        except CelError as error:  # A constant that cannot be converted: no run gets as far as anything else.
            self._run = _failing(str(error))

    def evaluate(self, names: Mapping[str, Any], limit: int = COST_LIMIT) -> tuple[Any, int]:
        """Return the value under those variables, and the steps it took.

        Raises ``CelError``.
        """
        pace = PACE.get()
        frame = Frame(dict(names), limit, pace)
        value = self._run(frame)
        if pace is not None:
            pace.go_on(SLICE - frame.left)
        return value, limit - frame.left - frame.later


def _failing(text: str) -> Run:
    def run(frame: Frame) -> Any:
        raise CelError(text)

    return run


def _compiled(node: Node) -> Run:
    if isinstance(node, Literal):
        return Constant(node.value)
    if isinstance(node, Ident):
        return _name(node.name)
    if isinstance(node, Select):
        return _select(node)
    if isinstance(node, CallNode):
        return _call(node)
    if isinstance(node, ListNode):
        return _list(node)
    if isinstance(node, MapNode):
        return _map(node)
    if isinstance(node, Fold):
        return _fold(node)
    if isinstance(node, StructNode):
        return _struct(node)
    raise CelError(f"cannot evaluate {type(node).__name__}")


def _name(name: str) -> Run:
    constant = TypeName(name) if name in _TYPES else None

    def run(frame: Frame) -> Any:
        if name in frame.names:
            frame.spend(1)
            return frame.names[name]
        if constant is not None:
            return constant
        raise CelError(f"no such attribute(s): {name}")

    return run


def _select(node: Select) -> Run:
    name, operand, whole = node.field, _compiled(node.operand), qualified(node)
    if whole in ("google.protobuf.Timestamp", "google.protobuf.Duration", "net.IP", "net.CIDR") or whole.startswith(
        "kubernetes."
    ):
        return Constant(TypeName(whole))

    steps = _qualifier_steps(node.operand)

    def run(frame: Frame) -> Any:
        value = operand(frame)
        is_optional = isinstance(value, SomeValue) or value is NOTHING
        if node.test:
            is_there = _has(value, name)
            frame.spend(steps - 1 - (is_optional and not is_there))
            return is_there
        frame.spend(steps - (value is NOTHING))
        if is_optional:
            return _optional_member(value, name)
        if isinstance(value, dict):
            if name in value or isinstance(value, Defaulting):
                return value[name]
            raise CelError(f"no such key: {name}")
        raise CelError(_NO_INDEX if isinstance(value, list) else f"no such key: {name}")

    return run


def _has(value: Any, name: str) -> bool:
    if isinstance(value, SomeValue):
        value = value.value
    if value is NOTHING:
        return False
    if isinstance(value, dict):
        return name in value or isinstance(value, Defaulting)
    if isinstance(value, list):
        raise CelError(_NO_INDEX)
    return False


def _optional_member(value: Any, name: str) -> Any:
    inner = value.value if isinstance(value, SomeValue) else value
    there = isinstance(inner, dict) and (name in inner or isinstance(inner, Defaulting))
    return SomeValue(inner[name]) if there else NOTHING


def _call(node: CallNode) -> Run:
    if node.function in ("_&&_", "_||_"):
        return _logical(_compiled(node.args[0]), _compiled(node.args[1]), stop=node.function == "_||_")
    if node.function == "_?:_" or node.function == "_?_:_":
        return _conditional(_compiled(node.args[0]), _branch(node.args[1]), _branch(node.args[2]))
    if node.function == "_?._":
        operand, name = _compiled(node.args[0]), node.args[1]
        assert isinstance(name, Literal)
        return _optional_select(operand, str(name.value), _qualifier_steps(node.args[0]))
    if node.function in ("_[_]", "_[?_]"):
        return _index(node)
    if node.function in ("or", "orValue") and node.target is not None:
        return _alternative(_compiled(node.target), _compiled(node.args[0]), unwrap=node.function == "orValue")
    nodes = [*([node.target] if node.target is not None else []), *node.args]
    return _plain_call(node.function, [_compiled(one) for one in nodes], is_member=node.target is not None)


def _optional_select(operand: Run, name: str, steps: int) -> Run:
    def run(frame: Frame) -> Any:
        found = _optional_member(operand(frame), name)
        frame.spend(steps - (found is NOTHING))
        return found

    return run


def _index(node: CallNode) -> Run:
    target, key = _compiled(node.args[0]), _branch(node.args[1])
    steps, optional = _qualifier_steps(node.args[0]), node.function == "_[?_]"

    def run(frame: Frame) -> Any:
        value = target(frame)
        if value is NOTHING:
            frame.spend(steps - 1)
            return NOTHING
        found = index(value, key(frame), optional=optional)
        frame.spend(steps - (found is NOTHING))
        return found

    return run


def _is_attribute(node: Node) -> bool:
    """Return whether the steps of this are those of a name with qualifiers (cel-go's interpreter/attributes.go)."""
    if isinstance(node, CallNode):
        return node.function in ("_[_]", "_[?_]", "_?._", "_?_:_")
    return isinstance(node, Ident) or (isinstance(node, Select) and not node.test)


def _qualifier_steps(operand: Node) -> int:
    """Return the steps of a field or an index of that; it becomes a name first where it is none."""
    return 1 if _is_attribute(operand) else 2


def _branch(node: Node) -> Run:
    """Return what one side of a condition is; a name there costs its qualifiers only."""
    run = _compiled(node)
    is_type = isinstance(node, Ident) and node.name in _TYPES
    if is_type or not _is_attribute(node) or isinstance(run, Constant):
        return run
    if isinstance(node, CallNode) and node.function == "_?_:_":
        return run

    def cheaper(frame: Frame) -> Any:
        value = run(frame)
        frame.spend(-1)
        return value

    return cheaper


def _plain_call(name: str, args: list[Run], *, is_member: bool) -> Run:
    priced = "" if name == "matches" and not is_member else name  # cel-go forgot the function of two arguments.
    function = FUNCTIONS.get(name)
    if function is None:
        raise CelError(f"unbound function: {name}()")
    if name in _CONVERSIONS and len(args) == 1 and isinstance(args[0], Constant):
        return Constant(function(args[0].value))
    if name in ("matches", "find", "findAll") and len(args) > 1 and isinstance(args[1], Constant):
        _check_pattern(args[1].value)
    if name == "@in" and isinstance(args[1], Constant) and (found := _membership(args[0], args[1].value)) is not None:
        return found

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        frame.toil(name, values)
        if name == "check":  # Whoever is asked may have to ask others, so that the steps are counted before.
            frame.spend(AUTHORIZATION_COST)
            return function(*values)
        try:
            found = function(*values)
        except (TypeError, AttributeError):
            raise CelError(no_overload(name, values)) from None
        except CelError as error:
            if str(error) == NO_OVERLOAD and not isinstance(error, RefusedOperandError):
                raise CelError(no_overload(name, values)) from None
            raise
        frame.spend(call_cost(priced, values, found))
        return found

    return run


def _check_pattern(pattern: Any) -> None:
    if isinstance(pattern, str):
        try:
            searcher(pattern)
        except PatternError as error:
            raise CelError(str(error)) from None


def _membership(value: Run, members: Any) -> Run | None:
    """Return a look into a set, which costs nothing; None where a member cannot be in one."""
    if members == []:
        return Constant(False)
    if not isinstance(members, list) or not all(isinstance(each, (bool, int, float, str)) for each in members):
        return None
    return lambda frame: contained(value(frame), members)


def _logical(one: Run, other: Run, *, stop: bool) -> Run:
    """``&&`` and ``||``: an error counts only if the other side does not decide."""

    def run(frame: Frame) -> Any:
        failure: CelError | None = None
        for side in (one, other):
            try:
                value = side(frame)
            except CostExceededError:
                raise
            except CelError as error:
                failure = failure or error
                continue
            if value is stop:
                return stop
            if value is not (not stop):
                failure = failure or CelError(NO_OVERLOAD)
        if failure is not None:
            raise failure
        return not stop

    return run


def _conditional(test: Run, yes: Run, no: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = test(frame)
        if not isinstance(value, bool):
            raise CelError(NO_OVERLOAD)
        return yes(frame) if value else no(frame)

    return run


def _alternative(one: Run, other: Run, *, unwrap: bool) -> Run:
    def run(frame: Frame) -> Any:
        value = one(frame)
        if isinstance(value, SomeValue):
            return value.value if unwrap else value
        return other(frame) if value is NOTHING else value  # Only optionals are unwrapped.

    return run


def _list(node: ListNode) -> Run:
    parts = [(_compiled(item), index in node.optional) for index, item in enumerate(node.items)]
    if all(isinstance(part, Constant) for part, _ in parts):
        return Constant([part.value for part, _ in parts if isinstance(part, Constant)])

    def run(frame: Frame) -> list[Any]:
        frame.spend(LIST_STEPS)
        found = []
        for part, optional in parts:
            value = part(frame)
            if not optional:
                found.append(value)
            elif isinstance(value, SomeValue):
                found.append(value.value)
        return found

    return run


def _map(node: MapNode) -> Run:
    parts = [(_compiled(key), _compiled(value), optional) for key, value, optional in node.entries]
    if all(isinstance(part, Constant) for key, value, _ in parts for part in (key, value)):
        return Constant(_keyed_values(parts, Frame({}, 0)))
    return _keyed(parts, _MAP_STEPS)


def _struct(node: StructNode) -> Run:
    """A message is the map of its fields: what it is a message of says who makes use of it."""
    return _keyed([(_always(name), _compiled(value), optional) for name, value, optional in node.fields], 40)


def _always(value: Any) -> Run:
    return lambda frame: value


def _keyed(parts: Sequence[tuple[Run, Run, bool]], steps: int) -> Run:
    """Return a map of keys and values; an optional value is there where it has one."""

    def run(frame: Frame) -> dict[Any, Any]:
        frame.spend(steps)
        return _keyed_values(parts, frame)

    return run


def _keyed_values(parts: Sequence[tuple[Run, Run, bool]], frame: Frame) -> dict[Any, Any]:
    found = {}
    for key, value, optional in parts:
        name, item = key(frame), value(frame)
        if isinstance(name, (list, dict)):
            raise CelError("a list or a map cannot be a key")  # cel-go takes them; no rule in the field has any.
        if not optional:
            found[name] = item
        elif isinstance(item, SomeValue):
            found[name] = item.value
    return found


def _fold(node: Fold) -> Run:
    if node.macro == "bind":
        init, body = _compiled(node.init), _compiled(node.result)
        return lambda frame: body(within(frame, {node.accu: init(frame)}))
    source, args = _compiled(node.source), [_compiled(arg) for arg in node.args]
    loop = LOOPS[node.macro]

    def run(frame: Frame) -> Any:
        values = source(frame)
        if not isinstance(values, (list, dict)):
            kind = GO_TYPES.get(type_of(values), type_of(values))
            raise CelError(f"got '{kind}', expected iterable type")
        found = loop(node, rounds_of(node, values, frame), args)
        frame.spend(2 if node.macro == "exists_one" else 1)
        return found

    return run
