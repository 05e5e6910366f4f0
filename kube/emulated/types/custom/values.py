"""Values against a schema, with the API server's verdicts in its words and its order.

Source: k8s.io/kube-openapi/pkg/validation/validate, and k8s.io/apiextensions-apiserver/pkg/apiserver/validation with
its ratcheting: what an update leaves alone is not held against it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.api.quoted_text import quoted
from mews.kube.cel.regexes import PatternError, compiled
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import formats, go_text

Schema = Mapping[str, Any]

UNRELATED: Any = object()
"""The old value of what an update cannot be compared with."""


class Verdict(Struct):
    """What was found wrong: refusals by what they say, since each is said once; ``score`` counts the checks passed, by
    which ``anyOf`` chooses whose complaints it shows."""

    errors: dict[str, FieldError] = field(default_factory=dict)
    score: int = 0

    def add(self, text: str, error: FieldError) -> None:
        """Add a complaint."""
        self.errors.setdefault(text, error)

    def merge(self, other: Verdict) -> None:
        """Add all that another check found."""
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.score += other.score


def value_errors(value: Any, schema: Schema, path: str = "", *, old: Any = UNRELATED) -> list[FieldError]:
    """Return what is wrong with a value whose field errors begin at ``path``; with ``old`` only what a change brings
    in."""
    return [_placed(error, path) for error in _check(value, schema, "", old).errors.values()]


def _placed(error: FieldError, path: str) -> FieldError:
    inner = error.path.removeprefix(".")
    whole = f"{path}.{inner}" if path and inner else path or inner
    return FieldError(whole or "<nil>", error.reason, error.text)


def type_name(value: Any) -> str:
    """Return a value's type as a schema names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _check(value: Any, schema: Schema, path: str, old: Any) -> Verdict:
    found = Verdict()
    if value is None:
        found.merge(_typed(value, schema, path))
        _enumerated(value, schema, path, found)
        return _ratcheted(found, value, old)
    kind = type_name(value)
    if types_of(schema) or _format(schema):
        found.merge(_typed(value, schema, path))
        found.score += 1
    found.merge(_joined(value, schema, path))
    found.score += 1
    if kind == "string":
        _text(value, schema, path, found)
        found.score += 1
        if name := formats.known(schema.get("format", "")):
            if not formats.FORMATS[name](value):
                _mistyped(found, path, schema["format"], value)
            found.score += 1
    elif kind in ("integer", "number"):
        _bounded(value, schema, path, found)
        found.score += 2
    elif kind == "array":
        found.merge(_items(value, schema, path, old))
        found.score += 1
    _enumerated(value, schema, path, found)
    found.score += 1
    if kind == "object":
        found.merge(_members(value, schema, path, old))
        found.score += 1
    found.score += 1
    return _ratcheted(found, value, old)


def _ratcheted(found: Verdict, value: Any, old: Any) -> Verdict:
    return Verdict(score=found.score) if found.errors and old is not UNRELATED and same(value, old) else found


def same(one: Any, other: Any) -> bool:
    """Deeply equal, and not only as Python has it: ``True`` is no 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the types that a schema allows."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _format(schema: Schema) -> str:
    name: str = schema.get("format", "")
    return name if formats.known(name) else ""


def _mistyped(found: Verdict, path: str, wanted: str, value: str) -> None:
    text = f"{path} in body must be of type {wanted}: {quoted(value)}"
    found.add(text, go_text.wrong_type(path, value, text))


def _typed(value: Any, schema: Schema, path: str) -> Verdict:
    found = Verdict(score=1)
    wanted, format_ = types_of(schema), _format(schema)
    if value is None:
        if wanted and "null" not in wanted and not schema.get("nullable"):
            found = Verdict()
            _mistyped(found, path, ",".join(wanted), "null")
        return found
    kind = type_name(value)
    fits = kind in wanted or (kind == "integer" and "number" in wanted) or _is_whole(value, wanted)
    if kind not in ("string", "array") and format_ and not fits:
        found = Verdict()
        _mistyped(found, path, format_, {"integer": "int64", "number": "float64"}.get(kind, ""))
        return found
    if format_ and kind in ("string", "array") and not {"number", "integer"} & set(wanted):
        return found
    if not fits:
        found = Verdict()
        _mistyped(found, path, ",".join(wanted), kind)
    return found


def _is_whole(value: Any, wanted: tuple[str, ...]) -> bool:
    return isinstance(value, float) and value.is_integer() and "integer" in wanted


def _composite(found: Verdict, text: str) -> None:
    found.add(text, FieldError("", "FieldValueInvalid", f'"": {text}'))


def _joined(value: Any, schema: Schema, path: str) -> Verdict:
    """anyOf, oneOf, allOf, not. What a branch finds is never ratcheted."""
    found, name = Verdict(score=1), quoted(path)
    if branches := schema.get("anyOf"):
        _any_of(found, [_check(value, branch, path, UNRELATED) for branch in branches], name)
    if branches := schema.get("oneOf"):
        _one_of(found, [_check(value, branch, path, UNRELATED) for branch in branches], name)
    if branches := schema.get("allOf"):
        verdicts = [_check(value, branch, path, UNRELATED) for branch in branches]
        for verdict in verdicts:
            found.merge(verdict)
        if wrong := [verdict for verdict in verdicts if verdict.errors]:
            tail = ". None validated" if len(wrong) == len(verdicts) else ""
            _composite(found, f"{name} must validate all the schemas (allOf){tail}")
    if schema.get("not") is not None and not _check(value, schema["not"], path, UNRELATED).errors:
        _composite(found, f"{name} must not validate the schema (not)")
    return found


def _best(verdicts: list[Verdict]) -> Verdict:
    return max(verdicts, key=lambda verdict: verdict.score)  # the first of the best


def _any_of(found: Verdict, verdicts: list[Verdict], name: str) -> None:
    passed = next((verdict for verdict in verdicts if not verdict.errors), None)
    if passed is None:
        _composite(found, f"{name} must validate at least one schema (anyOf)")
    found.merge(passed or _best(verdicts))


def _one_of(found: Verdict, verdicts: list[Verdict], name: str) -> None:
    passed = [verdict for verdict in verdicts if not verdict.errors]
    if len(passed) == 1:
        found.merge(passed[0])
        return
    tail = f"Found {len(passed)} valid alternatives" if passed else "Found none valid"
    _composite(found, f"{name} must validate one and only one schema (oneOf). {tail}")
    if not passed:
        found.merge(_best(verdicts))


def _text(value: str, schema: Schema, path: str, found: Verdict) -> None:
    """Of length and pattern the first that is wrong."""
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        text = f"{path} in body should be at most {longest} chars long"
        found.add(text, FieldError(path, "FieldValueTooLong", f"may not be more than {longest} bytes"))
    elif shortest is not None and len(value) < shortest:
        text = f"{path} in body should be at least {shortest} chars long"
        found.add(text, go_text.wrong(path, value, text))
    elif pattern:
        try:
            wrong = "" if compiled(pattern)(value) else pattern
        except PatternError as error:
            wrong = f"{pattern}, but pattern is invalid: {error}"
        if wrong:
            text = f"{path} in body should match '{wrong}'"
            found.add(text, go_text.wrong(path, value, text))


def _bounded(value: float, schema: Schema, path: str, found: Verdict) -> None:
    factor, high, low = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
    if factor is not None:
        _multiple(value, factor, path, found)
    if low is not None:
        low, exclusive = _as_kind(low, value), schema.get("exclusiveMinimum")
        if value < low or (exclusive and value == low):
            word = "greater than" if exclusive else "greater than or equal to"
            text = f"{path} in body should be {word} {go_text.number(low)}"
            found.add(text, go_text.wrong(path, value, text))
    if high is not None:
        high, exclusive = _as_kind(high, value), schema.get("exclusiveMaximum")
        if value > high or (exclusive and value == high):
            word = "less than" if exclusive else "less than or equal to"
            text = f"{path} in body should be {word} {go_text.number(high)}"
            found.add(text, go_text.wrong(path, value, text))


def _as_kind(bound: float, value: float) -> float:
    """An integer is compared with the integer part of a bound, as upstream converts it."""
    return int(bound) if isinstance(value, int) else float(bound)


def _multiple(value: float, factor: float, path: str, found: Verdict) -> None:
    factor = _as_kind(factor, value)
    if factor <= 0:
        text = f"factor MultipleOf declared for {path} must be positive: {go_text.number(factor)}"
        found.add(text, go_text.wrong(path, factor, text))
    elif not _is_multiple(value, factor):
        text = f"{path} in body should be a multiple of {go_text.number(factor)}"
        found.add(text, go_text.wrong(path, value, text))


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int):
        return value % int(factor) == 0
    times = 1 / factor * value if factor < 1 else value / factor
    if abs(times) > 2**53 - 1:
        return False
    nearest = float(int(times))
    gap = abs(times - nearest)
    return times == nearest or gap < 1e-9 * min(abs(times) + abs(nearest), 1.7976931348623157e308) or times == 0


def _items(value: list[Any], schema: Schema, path: str, old: Any) -> Verdict:
    found = Verdict()
    items = schema.get("items")
    if isinstance(items, Mapping):
        keys, known = schema.get("x-kubernetes-list-map-keys") or [], old_items(schema, old)
        for index, item in enumerate(value):
            before = known.get(list_key(item, keys), UNRELATED) if known else UNRELATED
            found.merge(_check(item, items, f"{path}[{index}]", before))
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} items"
        found.add(text, go_text.wrong(path, len(value), text))
    if most is not None and len(value) > most:
        text = f"{path} in body should have at most {most} items"
        found.add(text, FieldError(path, "FieldValueTooMany", f"{len(value)}: must have at most {_items_of(most)}"))
    if schema.get("uniqueItems") and any(same(item, one) for i, item in enumerate(value) for one in value[:i]):
        text = f"{path} in body shouldn't contain duplicates"
        found.add(text, go_text.wrong(path, "", text))
    found.score += 1
    return found


def _items_of(most: int) -> str:
    return f"{most} item" if most == 1 else f"{most} items"


def list_key(item: Any, keys: list[str]) -> str:
    """Return what an item of a list that is a map is known by."""
    return json.dumps([item.get(key) for key in keys], sort_keys=True) if isinstance(item, dict) else ""


def old_items(schema: Schema, old: Any) -> dict[str, Any]:
    """Return the items of an old list by their key; empty for one that is no map."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not keys or not isinstance(old, list):
        return {}
    return {list_key(item, keys): item for item in reversed(old) if isinstance(item, dict)}


# Complex: one block for each keyword, in the order of upstream's messages.
def _members(value: Mapping[str, Any], schema: Schema, path: str, old: Any) -> Verdict:  # noqa: C901
    found = Verdict()
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} properties"
        found.add(text, go_text.wrong(path, len(value), text))
    if most is not None and len(value) > most:
        text = f"{path} in body should have at most {most} properties"
        found.add(text, FieldError(path, "FieldValueTooMany", f"{len(value)}: must have at most {_items_of(most)}"))
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    if extra is False:
        for key in (key for key in value if key not in properties):
            text = f"{path}.{key} in body is a forbidden property"
            found.add(text, go_text.wrong(path, key, text))
    elif isinstance(extra, Mapping):
        for key in (key for key in value if key not in properties):
            found.merge(_check(value[key], extra, f"{path}.{key}", _old_member(old, key, schema, path)))
    for key, child in properties.items():
        if key in value:
            place = f"{path}.{key}" if path else key
            found.merge(_check(value[key], child, place, _old_member(old, key, schema, path)))
    for key in schema.get("required") or ():
        if key not in value:
            place = f"{path}.{key}"
            found.add(f"{place} in body is required", FieldError(place, "FieldValueRequired", ""))
    return found


def _old_member(old: Any, key: str, schema: Schema, path: str) -> Any:
    if old is UNRELATED or not isinstance(old, Mapping) or key not in old:
        return UNRELATED
    return UNRELATED if not path and key in ("kind", "apiVersion") else old[key]


def _enumerated(value: Any, schema: Schema, path: str, found: Verdict) -> None:
    allowed = schema.get("enum")
    if not allowed or any(_is_option(value, option) for option in allowed):
        return
    text = f"{path} in body should be one of {allowed}"
    options = [option if isinstance(option, str) else go_text.marshalled(option) for option in allowed]
    found.add(text, go_text.unsupported(path, value, options))


def _is_option(value: Any, option: Any) -> bool:
    """An option is compared after a number became one of its kind."""
    if value is None or option is None:
        return False
    numbers = [isinstance(one, (int, float)) and not isinstance(one, bool) for one in (value, option)]
    return bool(type(option)(value) == option) if all(numbers) else same(value, option)
