"""What is wrong with a body, in the words of Go's decoder: values of wrong types, unknown and duplicate fields.

Only asked when ``decoding`` noticed something. Source: contract apiserver.md section 2; sigs.k8s.io/json.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.quantities import canonical
from mews.kube.emulated.types.decoding import MICRO_TIME, TIME
from mews.kube.emulated.types.gotypes import JSON_SCHEMA, SCALARS, Field, Struct, go_name, struct

QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_BITS = {"int32": 31, "int64": 63, "uint8": 8}
_LEAST = {"int32": -(2**31), "int64": -(2**63), "uint8": 0}
_LAYOUTS = {"time": "2006-01-02T15:04:05Z07:00", "microtime": "2006-01-02T15:04:05.000000Z07:00"}


class _AbortError(Exception):
    """A value's own decoder failed: this comes before all mismatches."""


def mismatch(value: Mapping[str, Any], root: Struct) -> str:
    """Return the decoder's complaint about the first value of a wrong type, "" when there is none."""
    try:
        return next(_in_struct(value, root, ()), "")
    except _AbortError as error:
        return str(error)


Path = tuple[str, ...]


def _in_struct(value: Mapping[str, Any], shape: Struct, path: Path) -> Iterator[str]:
    found = []
    for name, item in value.items():
        field = shape.fields.get(name)
        if field is not None and item is not None:
            found += list(_in_field(item, field.type, (shape, field), (*path, *_named(field))))
    yield from found


def _named(field: Field) -> tuple[str, ...]:
    """Return the steps to a field of a struct: through the embedded one that has it, where the decoder names that."""
    return (field.within, field.name) if field.within else (field.name,)


def _in_field(value: Any, type_: str, place: tuple[Struct, Field], path: Path) -> Iterator[str]:
    """Complaints about a field's value, or about an item of it."""
    if value is None:
        return
    if type_.startswith("[]"):
        if not isinstance(value, (list, tuple)):
            yield _wrong(value, type_, place, path)
        else:
            for item in value:
                yield from _in_field(item, type_[2:], place, path)
    elif type_.startswith("{}"):
        if not isinstance(value, Mapping):
            yield _wrong(value, type_, place, path)
        else:
            for item in value.values():
                yield from _in_field(item, type_[2:], place, path)
    elif type_ not in SCALARS:
        if not isinstance(value, Mapping):
            yield _wrong(value, type_, place, path)
        else:
            yield from _in_struct(value, struct(type_), path)
    else:
        yield from _in_scalar(value, type_, place, path)


# Complex: one case for each scalar of Go.
def _in_scalar(value: Any, type_: str, place: tuple[Struct, Field], path: Path) -> Iterator[str]:  # noqa: C901
    # One case per scalar of the Go types; they differ in what they accept and in the word by which encoding/json names
    # them in its error (a time is called a string, a quantity has an error of its own).
    match type_:
        case "quantity":
            _check_quantity(value)
        case "time" | "microtime":
            if not isinstance(value, str):
                raise _AbortError(_wrong(value, "string", place, path, named="string"))
            _check_time(value, type_)
        case "bytes":
            yield from _in_bytes(value, type_, place, path)
        case "string":
            if not isinstance(value, str):
                yield _wrong(value, type_, place, path)
        case "bool":
            if not isinstance(value, bool):
                yield _wrong(value, type_, place, path)
        case "int32" | "int64":
            yield from _in_integer(value, type_, place, path)
        case "intstr":
            for text in () if isinstance(value, str) else _in_integer(value, "int32", place, path, named="int32"):
                raise _AbortError(text)
        case "float64":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                yield _wrong(value, type_, place, path)
        case "schemaorlist" | "schemaorbool":
            yield from _in_schemas(value, type_, place, path)


def _in_schemas(value: Any, type_: str, place: tuple[Struct, Field], path: Path) -> Iterator[str]:
    """Such a part decodes itself, so its complaint knows nothing of what is around it."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping) and (text := mismatch(one, struct(JSON_SCHEMA))):
            raise _AbortError(text)
    for one in value if isinstance(value, list) and type_ == "schemaorlist" else ():
        if one is not None and not isinstance(one, Mapping):
            yield _wrong(one, type_, place, path, named="v1.JSONSchemaProps")
    if type_ == "schemaorbool" and not isinstance(value, (bool, Mapping)):
        raise _AbortError("boolean or JSON schema expected")


def _in_bytes(value: Any, type_: str, place: tuple[Struct, Field], path: Path) -> Iterator[str]:
    """Yield bytes in base64, or one by one."""
    if isinstance(value, str):
        _check_base64(value)
    elif not isinstance(value, list):
        yield _wrong(value, type_, place, path)
    else:
        for item in value:
            if item is not None:
                yield from _in_integer(item, "uint8", place, path, named="uint8")


def _in_integer(value: Any, type_: str, place: tuple[Struct, Field], path: Path, *, named: str = "") -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        yield _wrong(value, type_, place, path, named=named)
    elif isinstance(value, float) or not _LEAST[type_] <= value < 2 ** _BITS[type_]:
        yield _wrong(value, type_, place, path, given=f"number {_number(value)}", named=named)


def _number(value: float) -> str:
    text = repr(value)
    return text if "e" not in text else text.replace("e+", "e")


def _wrong(value: Any, type_: str, place: tuple[Struct, Field], path: Path, *, given: str = "", named: str = "") -> str:
    shape, field = place
    go = named or (field.go_type if type_ == field.type else _item_name(field, type_))
    return (
        f"json: cannot unmarshal {given or json_type(value)} into Go struct field {shape.name}.{'.'.join(path)} of "
        f"type {go}"
    )


def _item_name(field: Field, type_: str) -> str:
    """Return the Go type of an item of a field whose Go type is known: ``[]v1.FinalizerName`` holds
    ``v1.FinalizerName``."""
    depth = (len(field.type) - len(type_)) // 2
    name = field.go_type
    for _ in range(depth):
        if name.startswith("[]"):
            name = name[2:]
        elif name.startswith("map["):
            name = name.partition("]")[2]
        else:
            return go_name(type_)
    return name


def json_type(value: Any) -> str:
    """Return a value's type in the decoder's words."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, Mapping):
        return "object"
    return "string" if isinstance(value, str) else "array"


def _check_quantity(value: Any) -> None:
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError
        canonical(value)
    except ValueError:
        raise _AbortError(QUANTITY) from None


def _check_time(value: str, type_: str) -> None:
    pattern = TIME if type_ == "time" else MICRO_TIME
    if pattern.fullmatch(value):
        return
    left, wanted = _unparsed(value)
    if type_ == "microtime" and TIME.fullmatch(value):
        left, wanted = value[19:], ".000000"
    raise _AbortError(f'parsing time "{value}" as "{_LAYOUTS[type_]}": cannot parse "{left}" as "{wanted}"')


_STEPS = (
    (r"\d{4}", "2006"), ("-", "-"), (r"\d\d", "01"), ("-", "-"), (r"\d\d", "02"), ("T", "T"), (r"\d\d", "15"),
    (":", ":"), (r"\d\d", "04"), (":", ":"), (r"\d\d(\.\d+)?", "05"), (r"Z|[+-]\d\d:\d\d", "Z07:00"),
)  # fmt: skip


def _unparsed(value: str) -> tuple[str, str]:
    """Return what Go's parser of times has left, and the element of the layout that it is not."""
    for pattern, element in _STEPS:
        found = re.match(pattern, value)
        if found is None:
            return value, element
        value = value[found.end() :]
    return value, ""


def _check_base64(value: str) -> None:
    try:
        base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        place = next((i for i, char in enumerate(value) if char not in alphabet and char != "="), len(value))
        raise _AbortError(f"illegal base64 data at input byte {place}") from None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its members."""


def has_duplicates(raw: bytes) -> bool:
    """Return whether some object of a JSON text says a member twice."""
    found = False

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        members = dict(pairs)
        found = found or len(members) != len(pairs)
        return members

    try:
        json.loads(raw, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return False
    return found


def strict_errors(body: Any, root: Struct | None) -> list[str]:
    """``unknown field "spec.a"``, ``duplicate field "b"``, in the order of the body: a value, or the JSON text itself.
    Without a root only duplicates are found."""
    value = json.loads(body.decode(errors="replace"), object_pairs_hook=_Pairs) if isinstance(body, bytes) else body
    return list(_strict(value, root.ref if root else "any", ""))


def _strict(value: Any, type_: str, path: str) -> Iterator[str]:
    if isinstance(value, (_Pairs, Mapping)):
        yield from _strict_members(value if isinstance(value, _Pairs) else list(value.items()), type_, path)
    elif isinstance(value, list):
        item_type = type_[2:] if type_.startswith("[]") else "any"
        for index, item in enumerate(value):
            yield from _strict(item, item_type, f"{path}[{index}]")


def _strict_members(members: list[tuple[str, Any]], type_: str, path: str) -> Iterator[str]:
    is_struct = type_ not in SCALARS and type_[:2] not in ("[]", "{}")
    fields = struct(type_).fields if is_struct else {}
    item_type = type_[2:] if type_.startswith("{}") else "any"
    seen = set()
    for name, item in members:
        below = f"{path}.{name}" if path else name
        if name in seen:
            yield f'duplicate field "{below}"'
        seen.add(name)
        if is_struct and name not in fields:
            yield f'unknown field "{below}"'
        else:
            yield from _strict(item, fields[name].type if is_struct else item_type, below)


def conversion_error(value: Any, type_: str) -> str:
    """Return why a strategic patch's value cannot become its type, "" when it can (apimachinery's converter)."""
    if value is None:
        return ""
    if type_.startswith("[]"):
        if not isinstance(value, list):
            return f"cannot restore slice from {_kind(value)}"
        return next((error for item in value if (error := conversion_error(item, type_[2:]))), "")
    if type_.startswith("{}"):
        if not isinstance(value, Mapping):
            return f"cannot restore map from {_kind(value)}"
        return next((error for item in value.values() if (error := conversion_error(item, type_[2:]))), "")
    if type_ in SCALARS:
        return _scalar_error(value, type_)
    if not isinstance(value, (dict, Mapping)):
        return f"cannot restore struct from: {_kind(value)}"
    fields = struct(type_).fields
    found = (conversion_error(item, fields[name].type) for name, item in value.items() if name in fields)
    return next((error for error in found if error), "")


def _kind(value: Any) -> str:
    """Return the kind of the Go value that JSON becomes."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "int64" if isinstance(value, int) else "float64"
    if isinstance(value, str):
        return "string"
    return "map" if isinstance(value, Mapping) else "slice"


def _scalar_error(value: Any, type_: str) -> str:
    kind = _kind(value)
    if type_ == "string":
        return (
            ""
            if kind == "string"
            else f"cannot convert {kind} to string"
            if kind == "int64"
            else "unrecognized type: string"
        )
    if type_ == "bool":
        return "" if kind == "bool" else "unrecognized type: bool"
    if type_ in _BITS:
        return (
            ""
            if kind == "int64"
            else f"cannot convert float64 to {type_}"
            if kind == "float64"
            else f"unrecognized type: {type_}"
        )
    try:
        complaint = next(_in_scalar(value, type_, (_NOWHERE, Field("", type_)), ()), "")
    except _AbortError as error:
        return str(error)
    return re.sub(r"Go struct field \S+ of", "Go value of", complaint)


_NOWHERE = Struct("", {})
