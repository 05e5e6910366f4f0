"""Evaluate a checked tree. It becomes closures once; each run counts its steps, of which only so many are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mews.kube.cel.budgets import PACE, SLICE, WORK_LIMIT, EvaluationPace, work_of
from mews.kube.cel.functions import FUNCTIONS
from mews.kube.cel.operators import NO_OVERLOAD
from mews.kube.cel.syntax import CallNode, Fold, Ident, ListNode, Literal, MapNode, Node, Select, StructNode, qualified
from mews.kube.cel.values import NOTHING, CelError, Defaulting, SomeValue, TypeName

COST_LIMIT = 1_000_000
"""The steps of one evaluation, as Kubernetes limits them."""
AUTHORIZATION_COST = 350_000
"""The steps of a look at what a user may do."""

_NO_INDEX = "unsupported index type 'string' in list"
_TYPES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "net.IP", "net.CIDR")


class Frame:
    """The variables of a run, and the steps that are left: of this slice, ``later`` of those to come, ``work`` of its
    own (``kube/cel/budgets.py``)."""

    __slots__ = ("later", "left", "names", "pace", "work")

    def __init__(self, names: dict[str, Any], limit: int, pace: EvaluationPace | None = None) -> None:
        self.names = names
        self.pace = pace
        self.left = limit if pace is None else min(limit, SLICE)
        self.later = limit - self.left
        self.work = WORK_LIMIT

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises ``CelError`` when none are left.
        """
        self.left -= steps
        while self.left < 0:
            if not self.later or self.pace is None:
                raise CostExceededError(_EXCEEDED)
            self.pace.go_on(SLICE)
            more = min(self.later, SLICE)
            self.left += more
            self.later -= more

    def toil(self, name: str, values: list[Any]) -> None:
        """Count the work of a call before it is done.

        Raises ``CelError`` when it is too much.
        """
        done = work_of(name, values, self.work)
        self.work -= done
        if self.work < 0:
            raise CostExceededError(_EXCEEDED)
        if self.pace is not None and done > SLICE:
            self.pace.go_on(done // _WORK_PER_STEP)


class CostExceededError(CelError):
    """No steps are left."""


Run = Callable[[Frame], Any]
_WALKING = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
"""Functions of lists that Kubernetes charges by their length (apiserver, cel/library/cost.go)."""
_EXCEEDED = "operation cancelled: actual cost limit exceeded"
_WORK_PER_STEP = 10
"""Members that are touched in the time of a step."""


class Program:
    """An expression ready to run."""

    def __init__(self, tree: Node) -> None:
        self._run = _compiled(tree)

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


def _compiled(node: Node) -> Run:
    if isinstance(node, Literal):
        value = node.value
        return lambda _: value
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
        frame.spend(1)
        if name in frame.names:
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
        constant = TypeName(whole)
        return lambda _: constant

    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.spend(1)
        if node.test:
            return _has(value, name)
        if isinstance(value, SomeValue) or value is NOTHING:
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
        return _conditional(*(_compiled(arg) for arg in node.args))
    if node.function == "_?._":
        operand, name = _compiled(node.args[0]), node.args[1]
        assert isinstance(name, Literal)
        return lambda frame: _optional_member(operand(frame), str(name.value))
    if node.function in ("or", "orValue") and node.target is not None:
        return _alternative(_compiled(node.target), _compiled(node.args[0]), unwrap=node.function == "orValue")
    nodes = [*([node.target] if node.target is not None else []), *node.args]
    return _plain_call(node.function, [_compiled(one) for one in nodes])


def _plain_call(name: str, args: list[Run]) -> Run:
    function = FUNCTIONS.get(name)
    if function is None:
        raise CelError(f"unbound function: {name}()")

    def run(frame: Frame) -> Any:
        values = [arg(frame) for arg in args]
        frame.spend(_cost(name, values))
        frame.toil(name, values)
        try:
            return function(*values)
        except (TypeError, AttributeError):
            raise CelError(NO_OVERLOAD) from None

    return run


def _cost(name: str, values: list[Any]) -> int:
    """Return what cel-go charges: the length of what is walked through, where a call walks."""
    if name in ("matches", "find", "findAll") and all(isinstance(value, str) for value in values[:2]):
        return max(1, (len(values[0]) // 10 + 1) * (len(values[1]) // 4 + 1))
    if name == "check":
        return AUTHORIZATION_COST
    if name == "@in" and isinstance(values[1], list):
        return len(values[1])
    first = values[0] if values else None
    if name in _WALKING and isinstance(first, list):
        return _traversal(first[0]) * len(first) if first else 1
    return len(first) // 10 + 1 if isinstance(first, (str, bytes)) else 1


def _traversal(item: Any) -> int:
    """Kubernetes' library/cost.go: what one member costs is that of the first."""
    return len(item) // 10 + 1 if isinstance(item, (str, bytes)) else 1


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
        return other(frame)

    return run


def _list(node: ListNode) -> Run:
    parts = [(_compiled(item), index in node.optional) for index, item in enumerate(node.items)]

    def run(frame: Frame) -> list[Any]:
        frame.spend(10)
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
    return _keyed([(_compiled(key), _compiled(value), optional) for key, value, optional in node.entries], 30)


def _struct(node: StructNode) -> Run:
    """A message is the map of its fields: what it is a message of says who makes use of it."""
    return _keyed([(_always(name), _compiled(value), optional) for name, value, optional in node.fields], 40)


def _always(value: Any) -> Run:
    return lambda frame: value


def _keyed(parts: Sequence[tuple[Run, Run, bool]], steps: int) -> Run:
    """Return a map of keys and values; an optional value is there where it has one."""

    def run(frame: Frame) -> dict[Any, Any]:
        frame.spend(steps)
        found = {}
        for key, value, optional in parts:
            name, item = key(frame), value(frame)
            if not optional:
                found[name] = item
            elif isinstance(item, SomeValue):
                found[name] = item.value
        return found

    return run


def _fold(node: Fold) -> Run:
    if node.macro == "bind":
        init, body = _compiled(node.init), _compiled(node.result)
        return lambda frame: body(_within(frame, {node.accu: init(frame)}))
    source, args = _compiled(node.source), [_compiled(arg) for arg in node.args]
    loops = {"all": _all, "exists": _exists, "exists_one": _exists_one, "map": _collected, "transformList": _collected}
    loop = loops.get(node.macro, _mapped)

    def run(frame: Frame) -> Any:
        values = source(frame)
        if not isinstance(values, (list, dict)):
            raise CelError(NO_OVERLOAD)
        return loop(node, _rounds(node, values, frame), args)

    return run


def _within(frame: Frame, names: dict[str, Any]) -> Frame:
    inner = _Inner({**frame.names, **names}, 0)
    inner.outer = frame
    return inner


class _Inner(Frame):
    """The variables of a loop; steps are counted outside."""

    __slots__ = ("outer",)

    outer: Frame

    def spend(self, steps: int) -> None:
        self.outer.spend(steps)

    def toil(self, name: str, values: list[Any]) -> None:
        self.outer.toil(name, values)


def _rounds(node: Fold, values: Any, frame: Frame) -> Any:
    inner = _within(frame, {})
    for index, item in enumerate(values):
        frame.spend(1)
        if not node.var2:
            inner.names[node.var] = item
        elif isinstance(values, dict):
            inner.names[node.var], inner.names[node.var2] = item, values[item]
        else:
            inner.names[node.var], inner.names[node.var2] = index, item
        yield inner


def _quantified(rounds: Any, test: Run, *, stop: bool) -> bool:
    failure: CelError | None = None
    for inner in rounds:
        try:
            value = test(inner)
        except CostExceededError:
            raise
        except CelError as error:
            failure = error
            continue
        if value is stop:
            return bool(stop)
        if value is not (not stop):
            failure = CelError(NO_OVERLOAD)
    if failure is not None:
        raise failure
    return not stop


def _all(_: Fold, rounds: Any, args: list[Run]) -> bool:
    return _quantified(rounds, args[0], stop=False)


def _exists(_: Fold, rounds: Any, args: list[Run]) -> bool:
    return _quantified(rounds, args[0], stop=True)


def _exists_one(_: Fold, rounds: Any, args: list[Run]) -> bool:
    return sum(_flag(args[0](inner)) for inner in rounds) == 1


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError(NO_OVERLOAD)


def _collected(_: Fold, rounds: Any, args: list[Run]) -> list[Any]:
    return [args[1](inner) for inner in rounds if _flag(args[0](inner))]


def _mapped(node: Fold, rounds: Any, args: list[Run]) -> dict[Any, Any]:
    insert = FUNCTIONS["cel.@mapInsert"]
    found: dict[Any, Any] = {}
    for inner in rounds:
        if _flag(args[0](inner)):
            made = args[1](inner)
            found = insert(found, inner.names[node.var], made) if node.macro == "transformMap" else insert(found, made)
    return found
