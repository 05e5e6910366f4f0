"""Label and field selectors (k8s.io/apimachinery/pkg/labels and /fields)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Labels = Mapping[str, str]

_KEY = r"(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"^\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*$"), "set"),
    (re.compile(rf"^\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*$"), "equals"),
    (re.compile(rf"^\s*({_KEY})\s*(>|<)\s*(-?\d+)\s*$"), "compare"),
    (re.compile(rf"^\s*(!?)\s*({_KEY})\s*$"), "exists"),
)


def _split(selector: str) -> list[str]:
    """Split at commas outside parentheses."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(selector):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(selector[start:index])
            start = index + 1
    return [*parts, selector[start:]]


def _requirement(text: str) -> Callable[[Labels], bool]:
    for pattern, form in _FORMS:
        match = pattern.match(text)
        if match is None:
            continue
        if form == "exists":
            negated, key = bool(match[1]), match[2]
            return lambda labels: (key in labels) != negated
        key, operator, operand = match[1], match[2], match[3]
        if form == "set":
            values = {value.strip() for value in operand.split(",")}
            if operator == "in":
                return lambda labels: key in labels and labels[key] in values
            return lambda labels: key not in labels or labels[key] not in values
        if form == "equals":
            if operator == "!=":
                return lambda labels: labels.get(key) != operand
            return lambda labels: labels.get(key) == operand
        return _comparison(key, greater=operator == ">", bound=int(operand))
    raise ValueError(f"unable to parse requirement: {text.strip()!r}")


_WHOLE = re.compile(r"-?[0-9]{1,19}")


def _comparison(key: str, *, greater: bool, bound: int) -> Callable[[Labels], bool]:
    def holds(labels: Labels) -> bool:
        value = labels.get(key, "")
        if not _WHOLE.fullmatch(value):
            return False
        return int(value) > bound if greater else int(value) < bound

    return holds


def label_selector(selector: str) -> Callable[[Labels], bool]:
    """A predicate over labels for ``a=b,c in (d,e),!f``; "" selects everything.

    Raises ValueError, worded as the API server does, when the text cannot be read.
    """
    requirements = [_requirement(part) for part in _split(selector)] if selector.strip() else []
    return lambda labels: all(holds(labels) for holds in requirements)


def field_requirements(selector: str) -> list[tuple[str, bool, str]]:
    """``(path, equal, value)`` per term of ``a.b=c,d!=e``.

    Raises ValueError for any other form.
    """
    terms = []
    for part in selector.split(",") if selector.strip() else ():
        match = re.match(r"^\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
        if match is None:
            raise ValueError(f"invalid selector: '{selector}'; can't understand '{part}'")
        terms.append((match[1], match[2] != "!=", match[3]))
    return terms


def field_value(obj: Mapping[str, Any], path: str) -> str:
    """The value at a dotted path as text, "" when absent; booleans as ``true``/``false``."""
    value: Any = obj
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ""
        value = value[part]
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def match_expressions(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a metav1.LabelSelector (matchLabels, matchExpressions) selects the labels; {} selects everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(expression_holds(e, labels) for e in selector.get("matchExpressions") or ())


def expression_holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    """One ``{key, operator, values}`` of a label or node selector: In, NotIn, Exists, DoesNotExist, Gt, Lt."""
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or []
    match operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt":
            if len(values) != 1 or not _WHOLE.fullmatch(str(values[0])):
                return False  # as the scheduler does with what it cannot read
            return _comparison(key, greater=operator == "Gt", bound=int(values[0]))(labels)
    raise ValueError(
        f"{operator!r} is not a valid label selector operator; allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt"
    )
