"""The rules of a custom kind's schema in CEL: checked and priced when it is defined, held against its objects.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel (compilation.go, validation.go) and
pkg/apis/apiextensions/validation (cel_validation.go). CEL is loaded with the first rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.json import encode
from msgspec.structs import replace

from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.long_work import sliced
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types.custom import field_paths, go_text, internal
from mews.kube.emulated.types.custom.trees import item_of
from mews.kube.emulated.types.custom.values import UNRELATED, list_key, old_items, same

if TYPE_CHECKING:
    from mews.kube.cel.evaluation import Program
    from mews.kube.emulated.types.cel_types import Declared

Schema = Mapping[str, Any]

_RULES = "x-kubernetes-validations"
_SELF = "selfType1"
"""Upstream names the type of ``self`` by the clock."""
_RULE_LIMIT, _SCHEMA_LIMIT, _BUDGET = 10_000_000, 100_000_000, 10_000_000
_UNBOUNDED = (1 << 64) - 1
_MESSAGE_BYTES = 5 * 1024
_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


def has_rules(schema: Schema) -> bool:
    """Return whether a schema or a part of it has rules."""
    return _has_rules(_Same(schema))


class _Same:
    """A schema by its identity, for caches: the schemas of served kinds do not change."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema


@lru_cache(maxsize=512)
def _has_rules(schema: _Same) -> bool:
    return any(part.get(_RULES) for part in internal.parts(schema.schema))


# Definitions


class _Rule(Struct):
    """A compiled rule: its program or why there is none, its price, and the same of its message."""

    given: Mapping[str, Any]
    program: Program | None = None
    error: str = ""
    price: int = 0
    looks_back: bool = False
    message: Program | None = None
    message_error: str = ""
    message_price: int = 0


def _compiled(rule: Mapping[str, Any], scope: Declared) -> _Rule:
    from mews.kube.cel.types import BOOL, STRING, optional_of

    found = _Rule(rule)
    before = optional_of(scope.type) if rule.get("optionalOldSelf") else scope.type
    names = {"self": scope.type, "oldSelf": before}
    made = _expression(rule["rule"], names, BOOL, scope)
    found.program, found.error, found.price, used = made
    found.looks_back = "oldSelf" in used
    if not found.error and rule.get("messageExpression"):
        made = _expression(rule["messageExpression"], names, STRING, scope)
        found.message, found.message_error, found.message_price, _ = made
    return found


def _expression(source: str, names: Mapping[str, Any], wanted: Any, scope: Declared) -> Any:
    """Program, what is wrong, price, free names."""
    from mews.kube.cel.costs import cost
    from mews.kube.cel.evaluation import Program
    from mews.kube.cel.expressions import compiled

    prefix = "" if wanted.name == "bool" else "messageExpression "
    found = compiled(source, names)
    checked = found.checked
    if found.error or checked is None:
        return None, f"{prefix}compilation failed: {found.error}", 0, ()
    if checked.type != wanted:
        text = "cel expression must evaluate to a bool" if not prefix else "messageExpression must evaluate to a string"
        return None, text, 0, ()
    price = cost(checked, lambda path: scope.size_at(path) if path[0] in ("self", "oldSelf") else None)
    return Program(checked.tree), "", price, checked.names


class _Total(Struct):
    """The price of all rules of a schema, and of those that matter in it."""

    price: int = 0
    dear: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, price: int) -> None:
        """Count a rule."""
        self.price = min(self.price + price, _UNBOUNDED)
        if price >= _SCHEMA_LIMIT // 100:
            self.dear = sorted([*self.dear, (price, path)], key=lambda one: -one[0])[:4]


class _Spot(Struct, frozen=True):
    """A part of a schema: its type where rules above it or on it need one, how often it can be there (None: without
    bound), and the nearest part above whose old values are not known."""

    scope: Declared | None
    count: int | None = 1
    lost: str = ""


def definition_errors(schema: Schema, path: str, *, spoilt: list[str], unchanged: bool) -> list[FieldError]:
    """Return what is wrong with the rules of a schema at that path, but for parts with errors of their own
    (``spoilt``)."""
    if not any(part.get(_RULES) for part in internal.parts(schema)):
        return []
    total = _Total()
    found = [*_part_errors(schema, path, _Spot(None), total, spoilt, unchanged, is_root=True)]
    if total.price > _SCHEMA_LIMIT:
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        found += [refusals.forbidden_field(place, text) for _, place in total.dear]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        found.append(refusals.forbidden_field(path, _too_dear(what, total.price, _SCHEMA_LIMIT)))
    return found


def _part_errors(
    schema: Any, path: str, spot: _Spot, total: _Total, spoilt: list[str], unchanged: bool, *, is_root: bool = False
) -> Iterator[FieldError]:
    from mews.kube.emulated.types.cel_types import declared, escaped

    if not isinstance(schema, Mapping):
        return
    scope = spot.scope
    embedded = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    if scope is None and schema.get(_RULES):
        scope = declared(schema, _SELF, is_root=embedded)
    count = _multiplied(spot.count, schema)
    fresh = replace(spot, scope=None, count=count)
    rest = (total, spoilt, unchanged)
    extra = schema.get("additionalProperties")
    if isinstance(extra, Mapping):
        inner = replace(fresh, scope=scope.item if scope is not None else None)
        yield from _part_errors(extra, f"{path}.additionalProperties", inner, *rest)
    for key, child in (schema.get("properties") or {}).items():
        below = scope.fields.get(escaped(key)) if scope is not None else None
        yield from _part_errors(child, f"{path}.properties[{key}]", replace(fresh, scope=below), *rest)
    if isinstance(schema.get("items"), Mapping):
        lost = spot.lost or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        inner = _Spot(scope.item if scope is not None else None, count, lost)
        yield from _part_errors(schema["items"], f"{path}.items", inner, *rest)
    if schema.get(_RULES) and not any(one == path or one.startswith((f"{path}.", f"{path}[")) for one in spoilt):
        if scope is None:
            text = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to "
            text += "convert structural schema to CEL declarations"
            yield FieldError(f"{path}.{_RULES}", "InternalError", text)
            return
        # Within a scope that a rule above opened, the names of types begin there; of its own they begin here.
        own = declared(schema, _SELF, is_root=embedded) or scope
        for index, rule in enumerate(schema[_RULES]):
            yield from _rule_errors(_compiled(rule, own), f"{path}.{_RULES}[{index}]", own, spot, total, unchanged)


def _multiplied(count: int | None, schema: Schema) -> int | None:
    """Return how often what is below a part can be there."""
    if count is None:
        return None
    most: int | None = 1
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    elif schema.get("type") == "array":
        most = schema.get("maxItems")
    return None if most is None else min(count * max(most, 0), _UNBOUNDED)


def _rule_errors(
    rule: _Rule, path: str, scope: Declared, spot: _Spot, total: _Total, unchanged: bool
) -> Iterator[FieldError]:
    from mews.kube.emulated.types.cel_types import cardinality

    count = spot.count if spot.count is not None else cardinality(scope.least_bytes)
    price = min(rule.price * count, _UNBOUNDED)
    if not unchanged and price > _RULE_LIMIT:
        yield refusals.forbidden_field(f"{path}.rule", _too_dear("estimated rule cost", price, _RULE_LIMIT))
    total.add(f"{path}.rule", price)
    shown = go_text.struct_text(internal.rule_struct(rule.given))
    if rule.error:
        yield FieldError(f"{path}.rule", "FieldValueInvalid", f"{shown}: {rule.error}")
    where = f"{path}.messageExpression"
    if rule.message_error:
        yield FieldError(where, "FieldValueInvalid", f"{shown}: {rule.message_error}")
    elif rule.message is not None:
        if not unchanged and rule.message_price > _RULE_LIMIT:
            text = _too_dear("estimated messageExpression cost", rule.message_price, _RULE_LIMIT)
            yield refusals.forbidden_field(where, text)
        total.add(where, rule.message_price)
    if rule.looks_back and spot.lost:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {spot.lost}"
        yield go_text.wrong(f"{path}.rule", rule.given["rule"], text)
    elif not rule.looks_back and rule.given.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        yield go_text.wrong(f"{path}.optionalOldSelf", rule.given["optionalOldSelf"], text)


def _too_dear(what: str, price: int, limit: int) -> str:
    times = price / limit
    factor = "more than 100x" if times > 100 else f"{times:f}x" if times < 1.5 else f"{times:.1f}x"
    hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings"
    return f"{what} exceeds budget by factor of {factor} {hint} are declared)"


# Objects


class _Checks(Struct):
    """The compiled rules of a part of a schema, and of what is below it."""

    schema: Schema
    rules: list[_Rule]
    is_root: bool
    properties: dict[str, _Checks]
    item: _Checks | None
    extra: _Checks | None


def _checks(schema: Any, *, is_root: bool = False) -> _Checks | None:
    from mews.kube.emulated.types.cel_types import declared

    if not isinstance(schema, Mapping):
        return None
    is_root = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    below = {key: found for key, one in (schema.get("properties") or {}).items() if (found := _checks(one))}
    item, extra = _checks(item_of(schema)), _checks(schema.get("additionalProperties"))
    given = schema.get(_RULES) or []
    if not (given or below or item or extra):
        return None
    scope = declared(schema, _SELF, is_root=is_root) if given else None
    rules = [_compiled(rule, scope) for rule in given] if scope is not None else []
    return _Checks(schema, rules, is_root, below, item, extra)


@lru_cache(maxsize=256)
def _checks_of(schema: _Same, is_root: bool) -> _Checks | None:
    return _checks(schema.schema, is_root=is_root)


class _SpentError(Exception):
    """No more rules may run."""


class _Run(Struct):
    """One look at an object: what was found and what may still be spent."""

    found: list[FieldError] = field(default_factory=list)
    left: int = _BUDGET


def object_errors(new: Any, old: Any, schema: Schema) -> list[FieldError]:
    """Return what the rules have against an object; ``old`` is what it was, None for a new one."""
    return _errors(new, old, _checks_of(_Same(schema), True), "", ratchet=old if old is not None else UNRELATED)


def default_errors(value: Any, schema: Schema, place: str) -> list[FieldError]:
    """Return what the rules have against a default."""
    checks = _checks(schema)
    found = _errors(value, value, checks, place, ratchet=UNRELATED)
    return found or _errors(value, None, checks, place, ratchet=UNRELATED)


def _errors(new: Any, old: Any, checks: _Checks | None, path: str, *, ratchet: Any) -> list[FieldError]:
    def found() -> list[FieldError]:
        run = _Run()
        with suppress(_SpentError):
            _look(run, new, old, checks, path, ratchet)
        return run.found

    return sliced(found, lambda: (id(checks), path, encode(new), encode(old)))


def _look(run: _Run, new: Any, old: Any, checks: _Checks | None, path: str, ratchet: Any) -> None:
    """``old`` is what ``oldSelf`` stands for, ``ratchet`` what a part must differ from for its errors to count."""
    if checks is None or new is None:
        return
    for rule in checks.rules:
        _apply(run, rule, checks, new, old, path, is_kept=ratchet is not UNRELATED and same(new, ratchet))
    if isinstance(new, list) and checks.item is not None:
        keys, known = checks.schema.get("x-kubernetes-list-map-keys") or [], old_items(checks.schema, old)
        kept = old_items(checks.schema, ratchet) if ratchet is not UNRELATED else {}
        for index, item in enumerate(new):
            key = list_key(item, keys)
            _look(run, item, known.get(key), checks.item, f"{path}[{index}]", kept.get(key, UNRELATED))
    elif isinstance(new, dict):
        for key, item in new.items():
            before = old.get(key) if isinstance(old, dict) else None
            if checks.extra is not None:
                _look(run, item, before, checks.extra, f"{path}[{key}]", _kept_member(ratchet, key, path))
            if key in checks.properties:
                place = f"{path}.{key}" if path else key
                _look(run, item, before, checks.properties[key], place, _kept_member(ratchet, key, path))


def _kept_member(ratchet: Any, key: str, path: str) -> Any:
    if not isinstance(ratchet, dict) or key not in ratchet or (not path and key in ("apiVersion", "kind")):
        return UNRELATED
    return ratchet[key]


def _apply(run: _Run, rule: _Rule, checks: _Checks, new: Any, old: Any, path: str, *, is_kept: bool) -> None:
    from mews.kube.cel.frames import CostExceededError
    from mews.kube.cel.values import CelError

    place, type_ = path or "<nil>", go_text.shown(checks.schema.get("type") or "")

    def invalid(text: str) -> None:
        run.found.append(FieldError(place, "FieldValueInvalid", f"{type_}: {text}"))

    if rule.error:
        invalid(f"rule compile error: {rule.error}")
    if rule.program is None or (rule.looks_back and old is None and not rule.given.get("optionalOldSelf")):
        return
    if run.left <= 0:
        invalid(_SPENT)
        raise _SpentError
    shown = (rule.given.get("message") or rule.given["rule"]).strip()
    try:
        names = _names(rule, checks, new, old)
        value, spent = rule.program.evaluate(names)
    except CostExceededError as error:
        invalid(f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}")
        raise _SpentError from None
    except CelError as error:
        if str(error).startswith("no such overload"):
            text = "call arguments did not match a supported operator, function or macro signature for rule"
            invalid(f"'{error}': {text}: {shown}")
        else:
            invalid(f"{error} evaluating rule: {shown}")
        return
    run.left -= spent
    if run.left < 0:
        invalid(_SPENT)
        raise _SpentError
    if value is not True and not (is_kept and not rule.looks_back):
        run.found.append(_refusal(rule, checks, names, path))


def _names(rule: _Rule, checks: _Checks, new: Any, old: Any) -> dict[str, Any]:
    from mews.kube.cel.values import NOTHING, SomeValue
    from mews.kube.emulated.types.cel_types import value_of

    found = {"self": value_of(new, checks.schema, is_root=checks.is_root)}
    if rule.looks_back or rule.given.get("messageExpression"):
        before = value_of(old, checks.schema, is_root=checks.is_root) if old is not None else None
        if rule.given.get("optionalOldSelf"):
            found["oldSelf"] = SomeValue(before) if old is not None else NOTHING
        elif old is not None:
            found["oldSelf"] = before
    return found


def _refusal(rule: _Rule, checks: _Checks, names: Mapping[str, Any], path: str) -> FieldError:
    given = rule.given
    default_text = given["message"].strip() if given.get("message") else f"failed rule: {given['rule'].strip()}"
    text = _message(rule, names) or default_text
    place = path
    if given.get("fieldPath"):
        try:
            inner = field_paths.resolve(given["fieldPath"], checks.schema)[0]
        except field_paths.FieldPathError:
            inner = ""
        place = f"{path}.{inner}" if path and inner else path or inner
    reason, type_ = given.get("reason") or "FieldValueInvalid", go_text.shown(checks.schema.get("type") or "")
    if reason in ("FieldValueRequired", "FieldValueForbidden"):
        return FieldError(place or "<nil>", reason, text)
    return FieldError(place or "<nil>", reason, type_ if reason == "FieldValueDuplicate" else f"{type_}: {text}")


def _message(rule: _Rule, names: Mapping[str, Any]) -> str:
    """Return what the rule's own expression says, "" where it says nothing that can be shown."""
    from mews.kube.cel.values import CelError

    if rule.message is None:
        return ""
    try:
        value, _ = rule.message.evaluate(names)
    except CelError:
        return ""
    text = value.strip() if isinstance(value, str) else ""
    return "" if len(text.encode()) > _MESSAGE_BYTES or re.search(r"\n", text) else text
