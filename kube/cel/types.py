"""The types of CEL, and when one stands for another (cel-go's checker/types.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name and parameters; a struct has fields, by which it is not compared, and a name of its own."""

    name: str
    params: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, hash=False)
    is_var: bool = False

    def __str__(self) -> str:
        name = _SHOWN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name

    @property
    def full_name(self) -> str:
        """As cel-go's types name themselves, where ``str`` is how its checker shows them."""
        return f"{self.name}({', '.join(each.full_name for each in self.params)})" if self.params else self.name


_SHOWN: Mapping[str, str] = {
    "null_type": "null",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Any": "any",
}


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL, DYN = Type("string"), Type("bytes"), Type("null_type"), Type("dyn")
ANY = Type("google.protobuf.Any")
"""As ``dyn``, by another name."""
TIMESTAMP, DURATION = Type("google.protobuf.Timestamp"), Type("google.protobuf.Duration")
ERROR = Type("!error!")
TYPE = Type("type")
_UNKNOWN = (DYN.name, ANY.name)
_NULLABLE = frozenset({TIMESTAMP.name, DURATION.name, "optional_type", "net.IP", "net.CIDR"})

Bindings = dict[Type, Type]


def list_of(item: Type) -> Type:
    """``list(item)``."""
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    """``map(key, value)``."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """``optional_type(value)``."""
    return Type("optional_type", (value,))


def struct(name: str, fields: Mapping[str, Type] | None = None) -> Type:
    """Return a message."""
    return Type(name, (), fields if fields is not None else {})


_OPAQUE: Mapping[str, Type] = MappingProxyType({})


def opaque(name: str) -> Type:
    """Return a type of a library, of whose insides nothing may be named."""
    return Type(name, (), _OPAQUE)


def is_opaque(type_: Type) -> bool:
    """Return a type of a library."""
    return type_.fields is _OPAQUE


def is_loose(type_: Type) -> bool:
    """Anything goes."""
    return type_.name in ("dyn", ANY.name, "!error!") and not type_.is_var


def is_struct(type_: Type) -> bool:
    """Return a message."""
    return type_.fields is not None


def assignable(bound: Bindings, one: Type, other: Type) -> Bindings | None:
    """Return the bindings under which one may stand for the other, None when it may not."""
    tried = dict(bound)
    return tried if _assignable(tried, one, other) else None


def all_assignable(bound: Bindings, ones: list[Type], others: tuple[Type, ...]) -> Bindings | None:
    """Return the same of lists."""
    tried = dict(bound)
    if len(ones) != len(others) or not all(_assignable(tried, *pair) for pair in zip(ones, others, strict=True)):
        return None
    return tried


def _assignable(bound: Bindings, one: Type, other: Type) -> bool:
    if other.is_var:
        fits, known = _bind(bound, one, other)
        if fits or known:
            return fits
    if one.is_var:
        return _bind(bound, other, one)[0]
    if is_loose(one) or is_loose(other):
        return True
    if one.name == "null_type" or other.name == "null_type":
        rest = other if one.name == "null_type" else one
        return rest.name == "null_type" or is_struct(rest) or rest.name in _NULLABLE
    if one.name == "type" and other.name == "type":
        return True
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(_assignable(bound, *pair) for pair in zip(one.params, other.params, strict=True))


def _bind(bound: Bindings, given: Type, var: Type) -> tuple[bool, bool]:
    if given == var:
        return True, True
    known = bound.get(var)
    if known is not None:
        if given == known:
            return True, True
        if _assignable(bound, given, known):
            general = most_general(given, known)
            if _is_free(bound, var, general):
                bound[var] = general
            return True, True
        return False, True
    if _is_free(bound, var, given):
        bound[var] = given
        return True, False
    return False, False


def _is_free(bound: Bindings, var: Type, within: Type) -> bool:
    if var == within:
        return False
    if within.is_var:
        return within not in bound or _is_free(bound, var, bound[within])
    return all(_is_free(bound, var, part) for part in within.params)


def most_general(one: Type, other: Type) -> Type:
    """Return the looser of two types of which one may stand for the other."""
    return one if _is_looser(one, other) else other


def _is_looser(one: Type, other: Type) -> bool:
    if one.name in _UNKNOWN or one.is_var:
        return True
    if other.name in _UNKNOWN or other.is_var or one.name != other.name or len(one.params) != len(other.params):
        return False
    return one.name == "type" or all(_is_looser(*pair) for pair in zip(one.params, other.params, strict=True))


def substituted(bound: Bindings, type_: Type, *, loose: bool = False) -> Type:
    """Return the type with what its variables stand for; ``loose`` makes those that stand for nothing ``dyn``."""
    if type_ in bound:
        return substituted(bound, bound[type_], loose=loose)
    if type_.is_var:
        return DYN if loose else type_
    if not type_.params:
        return type_
    return Type(type_.name, tuple(substituted(bound, part, loose=loose) for part in type_.params), type_.fields)
