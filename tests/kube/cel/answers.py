"""What our CEL makes of expressions, in the form of the judge's answers (``judge/main.go``)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from mews.kube.cel import types
from mews.kube.cel.checker import check
from mews.kube.cel.costs import cost
from mews.kube.cel.evaluation import Program
from mews.kube.cel.parser import parse
from mews.kube.cel.syntax import ExpressionSyntaxError, report
from mews.kube.cel.types import Type
from mews.kube.cel.values import CelError, Duration, Nothing, SomeValue, Timestamp, TypeName, UInt, type_of

Answer = dict[str, Any]

_ITEM = types.struct("item", {"name": types.STRING, "count": types.INT})
_SELF = types.struct(
    "thing",
    {
        "a": types.INT, "b": types.BOOL, "d": types.DOUBLE, "s": types.STRING, "none": types.STRING,
        "when": types.TIMESTAMP, "lasts": types.DURATION, "names": types.list_of(types.STRING),
        "sizes": types.map_of(types.STRING, types.INT), "items": types.list_of(_ITEM),
    },
)  # fmt: skip
VARIABLES = {"self": _SELF, "object": types.DYN}
VALUES = {
    "self": {
        "a": 2, "b": True, "d": 1.5, "s": "a-b-c", "names": ["ab", "ac", "b"], "sizes": {"q": 4},
        "when": Timestamp.parse("2024-02-29T12:34:56Z"), "lasts": Duration.parse("90m"),
        "items": [{"name": "x", "count": 3}, {"name": "y"}],
    },
    "object": {
        "spec": {
            "replicas": 3, "ratio": 0.5, "on": True, "title": "é1",
            "boxes": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}], "labels": {"k": "v", "n": 1},
        },
        "none": None,
    },
}  # fmt: skip


def answer(expression: str) -> Answer:
    """Return the type or the report, the highest estimate, and the value with its cost or the error."""
    try:
        tree = parse(expression)
        checked = check(tree, VARIABLES)
    except ExpressionSyntaxError as error:
        return {"issues": report(expression, error.errors)}
    if checked.errors:
        return {"issues": report(expression, checked.errors)}
    found: Answer = {"type": shown_type(checked.type), "estimate": str(cost(checked, lambda _path: 10))}
    try:
        value, spent = Program(tree).evaluate(VALUES)
    except CelError as error:
        return {**found, "error": str(error)}
    return {**found, "value": shown(value), "cost": spent}


def shown_type(type_: Type) -> str:
    return type_.full_name


def shown(value: Any) -> Any:
    """Return a value with its type, so that 1, 1u and 1.0 differ."""
    for kind, name, show in _SHOWN:
        if isinstance(value, kind):
            return [name, *show(value)]
    return ["other", type_of(value)]


def _double(value: float) -> list[str]:
    return ["NaN" if math.isnan(value) else f"{struct.unpack('>Q', struct.pack('>d', value))[0]:x}"]


_SHOWN: Sequence[tuple[type, str, Callable[[Any], list[Any]]]] = (
    (SomeValue, "optional", lambda value: [shown(value.value)]),
    (Nothing, "optional", lambda value: []),
    (TypeName, "type", lambda value: [value.name]),
    (Timestamp, "timestamp", lambda value: [str(value)]),
    (Duration, "duration", lambda value: [str(value.nanos)]),
    (type(None), "null", lambda value: []),
    (bool, "bool", lambda value: [value]),
    (UInt, "uint", lambda value: [str(int(value))]),
    (int, "int", lambda value: [str(value)]),
    (float, "double", _double),
    (str, "string", lambda value: [value]),
    (bytes, "bytes", lambda value: [value.hex()]),
    (dict, "map", lambda value: [sorted(([shown(key), shown(item)] for key, item in value.items()), key=str)]),
    (list, "list", lambda value: [[shown(item) for item in value]]),
)
