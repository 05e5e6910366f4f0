"""What a macro does, round by round.

A loop costs what the expression that its macro stands for costs (cel-go's parser/macro.go): a name, ``!``, ``+`` and
``@not_strictly_false`` one step each, a list of one member ten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.cel.frames import Constant, CostExceededError, Frame, Run, within
from mews.kube.cel.functions import FUNCTIONS
from mews.kube.cel.overload_errors import NO_OVERLOAD
from mews.kube.cel.syntax import Fold
from mews.kube.cel.values import CelError

LIST_STEPS = 10
"""Of making a list."""


def rounds_of(node: Fold, values: Any, frame: Frame) -> Any:
    """Yield the variables of each round."""
    inner = within(frame, {})
    for place, item in enumerate(values):
        if not node.var2:
            inner.names[node.var] = item
        elif isinstance(values, dict):
            inner.names[node.var], inner.names[node.var2] = item, values[item]
        else:
            inner.names[node.var], inner.names[node.var2] = place, item
        yield inner


def _quantified(rounds: Any, test: Run, *, stop: bool) -> bool:
    """Each round asks whether it is decided yet, and joins the test's value to what is known."""
    failure: CelError | None = None
    decided, asking = False, 3 if stop else 2
    for inner in rounds:
        inner.spend(asking)
        if decided:
            break
        inner.spend(1)
        try:
            value = test(inner)
        except CostExceededError:
            raise
        except CelError as error:
            failure = failure or error
            continue
        decided = value is stop
        if value is not stop and value is not (not stop):
            failure = failure or CelError(NO_OVERLOAD)
    if failure is not None and not decided:
        raise failure
    return stop if decided else not stop


def _all(_: Fold, rounds: Any, args: list[Run]) -> bool:
    return _quantified(rounds, args[0], stop=False)


def _exists(_: Fold, rounds: Any, args: list[Run]) -> bool:
    return _quantified(rounds, args[0], stop=True)


def _exists_one(_: Fold, rounds: Any, args: list[Run]) -> bool:
    found = 0
    for inner in rounds:
        is_one = _flag(args[0](inner))
        found += is_one
        inner.spend(2 if is_one else 0)
    return found == 1


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise CelError(NO_OVERLOAD)


def _collected(_: Fold, rounds: Any, args: list[Run]) -> list[Any]:
    found = []
    steps = 2 if isinstance(args[1], Constant) else LIST_STEPS + 2  # A list of one constant is made once, for none.
    for inner in rounds:
        if _flag(args[0](inner)):
            found.append(args[1](inner))
            inner.spend(steps)
    return found


def _mapped(node: Fold, rounds: Any, args: list[Run]) -> dict[Any, Any]:
    insert = FUNCTIONS["cel.@mapInsert"]
    found: dict[Any, Any] = {}
    for inner in rounds:
        if _flag(args[0](inner)):
            made = args[1](inner)
            has_key = node.macro == "transformMap"
            found = insert(found, inner.names[node.var], made) if has_key else insert(found, made)
            inner.spend(3 if has_key else 2)
    return found


LOOPS: Mapping[str, Callable[[Fold, Any, list[Run]], Any]] = {
    "all": _all, "exists": _exists, "exists_one": _exists_one, "map": _collected, "transformList": _collected,
    "transformMap": _mapped, "transformMapEntry": _mapped,
}  # fmt: skip
"""By macro; ``filter`` is a ``map``."""
