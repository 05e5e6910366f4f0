"""Label and field selectors (k8s.io/apimachinery/pkg/labels and /fields)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.api.label_selectors import comparison, predicate, requirements

Labels = Mapping[str, str]

_WHOLE = re.compile(r"-?[0-9]{1,19}")


def label_selector(selector: str) -> Callable[[Labels], bool]:
    """Return a predicate over labels for ``a=b,c in (d,e),!f``; "" selects everything.

    Raises ValueError, worded as the API server does, when the text cannot be read.
    """
    terms = [predicate(requirement) for requirement in requirements(selector)]
    return lambda labels: all(holds(labels) for holds in terms)


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


def match_expressions(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Return whether a metav1.LabelSelector (matchLabels, matchExpressions) selects the labels; {} selects
    everything."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(expression_holds(e, labels) for e in selector.get("matchExpressions") or ())


def expression_holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    """Return one ``{key, operator, values}`` of a label or node selector: In, NotIn, Exists, DoesNotExist, Gt, Lt."""
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
            return comparison(key, greater=operator == "Gt", bound=int(values[0]))(labels)
    raise ValueError(
        f"{operator!r} is not a valid label selector operator; allowed: In, NotIn, Exists, DoesNotExist, Gt, Lt"
    )
