"""From a JSON value to the object that the API server would hold: what Go's decoder and the defaults make of it.

One pass over the value, by closures that are compiled from ``gotypes`` when a type is first met: it copies, drops what
is null, unknown or empty without being meant, writes quantities as they are stored, and fills in defaults and what is
always shown. What is wrong is only noticed here; ``strictness`` says it in the server's words.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from mews.kube.api.objects import SCALARS, clone
from mews.kube.api.quantities import canonical, milli
from mews.kube.emulated.types.gotypes import JSON_SCHEMA, Field, plain_ref, struct

Decode = Callable[[Any, list[str]], Any]
"""``(value, unknown)`` -> the decoded value; names of fields that are not known are appended to ``unknown``."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")


class UndecodableError(ValueError):
    """A value has another shape than its type."""


def _text(value: Any, _: list[str]) -> Any:
    if type(value) is str or isinstance(value, str):
        return value
    raise UndecodableError


def _flag(value: Any, _: list[str]) -> Any:
    if value is True or value is False:
        return value
    raise UndecodableError


def _integer(bits: int) -> Decode:
    low, high = -(2**bits), 2**bits - 1

    def decode(value: Any, _: list[str]) -> Any:
        if type(value) is int and low <= value <= high:
            return value
        raise UndecodableError

    return decode


def _number(value: Any, _: list[str]) -> Any:
    if type(value) is int or type(value) is float:
        return value
    raise UndecodableError


def _coded(value: Any, _: list[str]) -> Any:
    try:
        if isinstance(value, list):
            return base64.b64encode(bytes(item or 0 for item in value)).decode()
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (AttributeError, TypeError, binascii.Error, ValueError):
        raise UndecodableError from None
    return value


def _time(value: Any, _: list[str]) -> Any:
    if type(value) is not str or (match := TIME.fullmatch(value)) is None:
        raise UndecodableError
    if match[1]:
        value = value.replace(match[1], "", 1)
    return value


def _micro_time(value: Any, _: list[str]) -> Any:
    if type(value) is str and MICRO_TIME.fullmatch(value):
        return value
    raise UndecodableError


def _quantity(value: Any, _: list[str]) -> Any:
    if value is True or value is False or not isinstance(value, (str, int, float)):
        raise UndecodableError
    return canonical(value)


def _amounts(value: Any, _: list[str]) -> Any:
    """Amounts of resources, which hold no less than thousandths (SetDefaults_ResourceList)."""
    if not isinstance(value, Mapping):
        raise UndecodableError
    found = {name: "0" if amount is None else _quantity(amount, _) for name, amount in value.items()}
    return {name: canonical(f"{milli(text)}m") if text[-1] in "un" else text for name, text in found.items()}


def _int_or_text(value: Any, _: list[str]) -> Any:
    if type(value) is str or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    raise UndecodableError


def _anything(value: Any, _: list[str]) -> Any:
    return clone(value)


def _schema_or_list(value: Any, _: list[str]) -> Any:
    """Return a part that decodes itself: what is unknown in it is dropped in silence, as upstream does."""
    if isinstance(value, list):
        return [decoder(JSON_SCHEMA)({} if item is None else item, []) for item in value]
    return decoder(JSON_SCHEMA)(value, []) if isinstance(value, Mapping) else None


def _schema_or_bool(value: Any, _: list[str]) -> Any:
    if value is True or value is False:
        return value
    if isinstance(value, Mapping):
        return decoder(JSON_SCHEMA)(value, [])
    raise UndecodableError


_SCALARS: Mapping[str, Decode] = {
    "string": _text,
    "bool": _flag,
    "int32": _integer(31),
    "int64": _integer(63),
    "float64": _number,
    "bytes": _coded,
    "time": _time,
    "microtime": _micro_time,
    "quantity": _quantity,
    "intstr": _int_or_text,
    "fields": _anything,
    "raw": _anything,
    "any": _anything,
    "schemaorlist": _schema_or_list,
    "schemaorbool": _schema_or_bool,
}
_MEANT_WHEN_EMPTY = ("raw", "any", "fields", "schemaorlist", "schemaorbool")
_ZEROS: Mapping[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "bytes": "",
    "quantity": "0",
    "intstr": 0,
}


@cache
def decoder(type_: str) -> Decode:
    """Return the decoder of a type expression. It raises ``ValueError`` for a value of another shape."""
    if type_ in _SCALARS:
        return _SCALARS[type_]
    if type_.startswith("[]"):
        return _list(type_[2:])
    if type_.startswith("{}"):
        return _map(type_[2:])
    return _struct(type_)


def zero(type_: str) -> Any:
    """Return what a null in a list stands for."""
    if type_ in _SCALARS or type_[:2] in ("[]", "{}"):
        return _ZEROS.get(type_)
    return decoder(type_)({}, [])


@cache
def nothing(ref: str) -> Mapping[str, Any]:
    """Return what an object of that type shows that says nothing and was given no defaults."""
    found: dict[str, Any] = {}
    for name, field in struct(ref).fields.items():
        if field.empty == "null":
            found[name] = None
        elif field.empty == "keep":
            found[name] = nothing(field.type) if _is_struct(field.type) else _ZEROS.get(field.type)
    return found


def _list(item_type: str) -> Decode:
    each: Decode | None = None

    def decode(value: Any, unknown: list[str]) -> Any:
        nonlocal each
        each = each or decoder(item_type)
        if type(value) is not list and type(value) is not tuple:
            raise UndecodableError
        return [zero(item_type) if item is None else each(item, unknown) for item in value]

    return decode


def _map(item_type: str) -> Decode:
    each: Decode | None = None

    def decode(value: Any, unknown: list[str]) -> Any:
        nonlocal each
        each = each or decoder(item_type)
        if not isinstance(value, Mapping):
            raise UndecodableError
        return {key: zero(item_type) if item is None else each(item, unknown) for key, item in value.items()}

    return decode


# Complex: one flat body: it runs for every object of every request.
def _struct(ref: str) -> Decode:  # noqa: C901
    compiled: list[Any] = []

    # Complex: one flat body: it runs for every object of every request.
    def decode(value: Any, unknown: list[str]) -> Any:  # noqa: C901
        # Compiled at first use, since types refer to one another in circles. One flat body although it is long: it runs
        # for every object of every request, and each field would pay for a call.
        if not compiled:
            compiled.extend(_compiled(ref))
        known, constants, makers = compiled
        if type(value) is not dict and not isinstance(value, Mapping):
            raise UndecodableError
        found = {}
        for key, item in value.items():
            if item is None:
                if key not in known:
                    unknown.append(key)
                continue
            entry = known.get(key)
            if entry is None:
                unknown.append(key)
                continue
            if entry[0] is not _text or type(item) is not str:
                item = entry[0](item, unknown)
            if item or entry[1]:
                found[key] = item
        for key, constant in constants:
            if key not in found:
                found[key] = constant
        for key, make in makers:
            if key not in found:
                found[key] = make()
        return found

    return decode


def decode_patched(ref: str, value: Mapping[str, Any], stored: Mapping[str, Any], unknown: list[str]) -> dict[str, Any]:
    """Return what ``decoder(ref)`` makes of a value that a patch made of a stored one.

    Parts that the patch left alone are the very ones that are stored. They were decoded when they came, and decoding
    changes nothing a second time: of them a copy is enough.
    """
    known, constants, makers = _compiled(ref)
    found: dict[str, Any] = {}
    for key, item in value.items():
        before, entry = stored.get(key), known.get(key)
        if entry is None:
            unknown.append(key)
        elif item is None:
            continue
        elif item is before:
            found[key] = item if type(item) in SCALARS else clone(item)
        else:
            if entry[2] and type(item) is dict and type(before) is dict:
                item = decode_patched(entry[2], item, before, unknown)
            else:
                item = entry[0](item, unknown)
            if item or entry[1]:
                found[key] = item
    for key, constant in constants:
        found.setdefault(key, constant)
    for key, make in makers:
        if key not in found:
            found[key] = make()
    return found


_Known = dict[str, tuple[Decode, bool, str]]


@cache
def _compiled(ref: str) -> tuple[_Known, list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Return them by field its decoder, whether it keeps what is empty and which struct it is; constants and made
    values of absent fields."""
    fields = struct(ref).fields
    known = {
        name: (
            _field_decoder(field),
            _keeps_empty(field) or (plain_ref(ref), name) in _REFUSED_EMPTY,
            field.type if _is_struct(field.type) else "",
        )
        for name, field in fields.items()
    }
    constants, makers = [], []
    for name, field in fields.items():
        if field.default is not None:
            if isinstance(field.default, (dict, list)):
                makers.append((name, _copier(field.default)))
            else:
                constants.append((name, field.default))
        elif field.empty == "null":
            constants.append((name, None))
        elif field.empty == "keep":
            if _is_struct(field.type):
                makers.append((name, _maker(field.type)))
            else:
                constants.append((name, _ZEROS.get(field.type)))
    return known, constants, makers


def _field_decoder(field: Field) -> Decode:
    return _amounts if field.go_type == "v1.ResourceList" else decoder(field.type)


# An empty list is stored as none at all, but what refuses it knows it from one that is not given.
_REFUSED_EMPTY = frozenset(
    (
        ("apiextensions/v1.CustomResourceDefinitionSpec", "versions"),
        ("autoscaling/v2.HPAScalingRules", "policies"),
        ("core/v1.EphemeralContainer", "ports"),
        ("core/v1.EphemeralContainer", "resizePolicy"),
        ("core/v1.PodSpec", "overhead"),
    )
)


def _keeps_empty(field: Field) -> bool:
    if field.type[:2] in ("[]", "{}"):
        return False
    return _is_struct(field.type) or field.pointer or field.empty == "keep" or field.type in _MEANT_WHEN_EMPTY


def _is_struct(type_: str) -> bool:
    return type_ not in _SCALARS and type_[:2] not in ("[]", "{}")


def _copier(value: Any) -> Callable[[], Any]:
    return lambda: clone(value)


def _maker(type_: str) -> Callable[[], Any]:
    each = decoder(type_)
    return lambda: each({}, [])
