"""What could stand in a field, by its published type: nothing, a zero, another type, values at and beyond bounds."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.differential.generated.published import Schema, resolved


class _Removed:
    """The field is left out."""

    def __repr__(self) -> str:
        return "REMOVED"


REMOVED = _Removed()
Candidate = tuple[str, Any]

_TEXTS: tuple[Candidate, ...] = (
    ("label", "other"),
    ("upper", "Other"),
    ("dotted", "other.example.com"),
    ("qualified", "example.com/other"),
    ("blank", "not a name"),
    ("dash", "-other"),
    ("underscore", "an_other"),
    ("63", "x" * 63),
    ("64", "x" * 64),
    ("253", "x" * 253),
    ("254", "x" * 254),
    ("address", "10.1.2.3"),
    ("address 6", "fd00::1"),
    ("range", "10.1.2.0/24"),
    ("url", "https://example.com/x?y#z"),
    ("path", "/var/x"),
    ("climbing", "../x"),
    ("number", "12"),
    ("percent", "150%"),
    ("system", "system:x"),
    ("kubernetes", "kubernetes.io/other"),
    ("expression", "1 + 1 == 2"),
    ("accent", "é"),
)
_WHOLE: tuple[int, ...] = (1, -1, 2, 7, 100, 101, 443, 65535, 65536, 86400, 2**31 - 1)
_BIG = (2**31, 2**63 - 1, 2**63)
_AMOUNTS = ("0", "1", "-1", "1.5", "100m", "1Ki", "2Gi", "1e3", "x", "", "0.1m")
_MIXED: tuple[Any, ...] = (0, 1, -1, 70000, "50%", "101%", "-1%", "http", "Not_One!", "x" * 16, "")
_TIMES = ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.678901Z", "2024-01-02", "yesterday")
_BYTES = ("YQ==", "not base64!", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==")
_MAPS: tuple[Candidate, ...] = (
    ("bad key", "not a key!"),
    ("empty key", ""),
    ("long key", "x" * 64),
    ("qualified key", "example.com/other"),
    ("other key", "other"),
)


def candidates(schema: Schema, value: Any) -> list[Candidate]:
    """Values for a field, each with a word for it; ``value`` is the one that a good object has."""
    form = _form(schema)
    found: list[Candidate] = [("null", None), ("wrong type", _WRONG.get(form, 3)), ("zero", _ZERO.get(form, {}))]
    if value is not None:
        found.append(("absent", REMOVED))
    return found + _OF_FORM[form](resolved(schema), value)


def filled(schema: Schema) -> Any:
    """A value with what its type requires."""
    form, schema = _form(schema), resolved(schema)
    if form == "struct":
        return {name: filled(schema["fields"][name]) for name in schema.get("required") or ()}
    if form == "text" and schema.get("enum"):
        return schema["enum"][0]
    return copy.copy(_GOOD[form])


_GOOD: Mapping[str, Any] = {
    "text": "x", "whole": 1, "number": 1.5, "flag": True, "list": [], "map": {}, "amount": "1", "mixed": 1,
    "time": _TIMES[0], "bytes": "YQ==", "any": {},
}  # fmt: skip
_WRONG: Mapping[str, Any] = {
    "text": 7, "whole": "x", "number": "x", "flag": "yes", "list": {"a": 1}, "map": [1], "struct": "x", "amount": {},
    "mixed": True, "time": 5, "bytes": 5, "any": 5,
}  # fmt: skip
_ZERO: Mapping[str, Any] = {
    "text": "", "whole": 0, "number": 0, "flag": False, "list": [], "amount": 0, "mixed": 0, "time": "", "bytes": "",
}  # fmt: skip


def _form(schema: Schema) -> str:
    name, schema = schema.get("ref", ""), resolved(schema)
    kind, form = schema.get("type"), schema.get("format")
    if form == "int-or-string":
        return "mixed"
    if name.endswith("resource.Quantity"):
        return "amount"
    if form in ("date-time", "byte"):
        return "time" if form == "date-time" else "bytes"
    if "fields" in schema:
        return "struct"
    if "members" in schema:
        return "map"
    return {"string": "text", "integer": "whole", "number": "number", "boolean": "flag", "array": "list"}.get(
        str(kind), "any"
    )


def _texts(schema: Schema, value: Any) -> list[Candidate]:
    found: list[Candidate] = [(f"option {option}", option) for option in schema.get("enum") or ()]
    several = _TEXTS[:3] if found else _TEXTS
    if isinstance(value, str) and value:
        several += (("more", f"{value}x"), ("doubled", f"{value} {value}"), ("capital", value.upper()))
    return [*found, *several]


def _wholes(schema: Schema, value: Any) -> list[Candidate]:
    found = [*_WHOLE, *(_BIG if schema.get("format") == "int64" else _BIG[:1])]
    if isinstance(value, int):
        found += [value - 1, value + 1, value * 1000]
    return [(str(number), number) for number in dict.fromkeys(found)]


def _listed(schema: Schema, value: Any) -> list[Candidate]:
    items = schema["items"]
    found: list[Candidate] = [("one item", [filled(items)]), ("null item", [None])]
    if isinstance(value, list) and value:
        found += [("doubled item", [*value, value[0]]), ("further item", [*value, filled(items)])]
        found += [("further item first", [filled(items), *value])]
    else:
        found.append(("two items", [filled(items), filled(items)]))
    return found


def _mapped(schema: Schema, value: Any) -> list[Candidate]:
    good = next(iter(value.values())) if isinstance(value, Mapping) and value else filled(schema["members"])
    found = [(word, {key: good}) for word, key in _MAPS]
    return [*found, ("wrong member", {"a": [1]}), ("null member", {"a": None})]


def _struct(schema: Schema, value: Any) -> list[Candidate]:
    good = dict(value) if isinstance(value, Mapping) else {}
    found: list[Candidate] = [("filled", filled_of(schema)), ("unknown field", {**good, "unknownField": 1})]
    return found


def filled_of(schema: Schema) -> dict[str, Any]:
    """Every field that is a text or a number, and what is required."""
    plain = {name: filled(field) for name, field in schema["fields"].items() if _form(field) in ("text", "whole")}
    required = {name: filled(schema["fields"][name]) for name in schema.get("required") or ()}
    return {**plain, **required}


_OF_FORM: Mapping[str, Any] = {
    "text": _texts,
    "whole": _wholes,
    "number": lambda *_: [("1.5", 1.5), ("-1.5", -1.5)],
    "flag": lambda *_: [("true", True), ("false", False)],
    "list": _listed,
    "map": _mapped,
    "struct": _struct,
    "amount": lambda *_: [(amount or "empty", amount) for amount in _AMOUNTS],
    "mixed": lambda *_: [(str(value) or "empty", value) for value in _MIXED],
    "time": lambda *_: [(text, text) for text in _TIMES],
    "bytes": lambda *_: [(text[:12], text) for text in _BYTES],
    "any": lambda *_: [("object", {"a": 1}), ("text", "x"), ("list", [1])],
}
