"""What cel-go says of values that a function does not take (common/types/err.go, common/decls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.cel.values import CelError, type_of

NO_OVERLOAD = "no such overload"


class RefusedOperandError(CelError):
    """A function that takes such a value, and found out late that it does not: cel-go does not name it."""


GO_TYPES: Mapping[str, str] = {
    "null_type": "types.Null", "bytes": "types.Bytes", "list": "*types.baseList", "map": "*types.baseMap",
    "google.protobuf.Timestamp": "types.Timestamp", "google.protobuf.Duration": "types.Duration",
    "string": "types.String", "bool": "types.Bool", "int": "types.Int", "uint": "types.Uint", "double": "types.Double",
    "optional_type": "*types.Optional", "type": "*types.Type", "net.IP": "cel.IP", "net.CIDR": "cel.CIDR",
    "kubernetes.Quantity": "cel.Quantity", "kubernetes.URL": "cel.URL", "kubernetes.Semver": "cel.Semver",
}  # fmt: skip
"""The Go type of a value, by its type in CEL."""
_NUMBERS = frozenset(("int", "uint", "double"))
_TIMES = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))
ADDABLE = _NUMBERS | _TIMES | {"bytes", "list", "string"}
ORDERED = _NUMBERS | _TIMES | {"bool", "string", "bytes"}
_TAKE: Mapping[str, frozenset[str]] = {
    "_+_": ADDABLE, "_-_": _NUMBERS | _TIMES, "_*_": _NUMBERS,
    "_/_": _NUMBERS, "_%_": frozenset(("int", "uint")), "size": frozenset(),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), ORDERED),
}  # fmt: skip
"""What the first operand of an operator may be at all (the traits in cel-go's common/types)."""
_PLAIN = frozenset((
    "!_", "-_", "@in", "contains", "startsWith", "endsWith", "matches", "find", "cel.@mapInsert",
))  # fmt: skip


def no_overload(name: str, values: list[Any]) -> str:
    """Return what cel-go says of a call on values that the function does not take (common/types/err.go, decls)."""
    if name in _TAKE:
        return NO_OVERLOAD if type_of(values[0]) in _TAKE[name] else f"{NO_OVERLOAD}: {name}"
    if name in _PLAIN:
        return NO_OVERLOAD
    return f"{NO_OVERLOAD}: {name}({', '.join(type_of(value) for value in values)})"
