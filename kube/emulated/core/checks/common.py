"""What many kinds are checked for, in upstream's words (apimachinery's validation packages)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.quantities import parse
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.types import internal_kinds

Part = Mapping[str, Any]

IMMUTABLE = "field is immutable"
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_PATH_TEXT = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
_CONDITION_TYPE = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_CONDITION_TYPE}')"
)


def bads(path: str, value: Any, texts: Iterable[str]) -> list[FieldError]:
    """Return one error for each text."""
    return [refusals.bad(path, value, text) for text in texts]


def label(path: str, text: str) -> list[FieldError]:
    """Return an RFC 1123 label."""
    return bads(path, text, names.label_texts(text))


def path_segment(path: str, text: str) -> list[FieldError]:
    """Return a name that may stand in a path of the API."""
    return bads(path, text, names.segment_texts(text))


def not_negative(path: str, value: Any) -> list[FieldError]:
    """Return a number, if given, that may be zero."""
    if isinstance(value, int) and value < 0:
        return [refusals.bad(path, value, "must be greater than or equal to 0")]
    return []


def amount_not_negative(path: str, amount: Any) -> list[FieldError]:
    """Return a quantity that may be zero."""
    if amount is not None and parse(amount) < 0:
        return [refusals.bad(path, amount, "must be greater than or equal to 0")]
    return []


def option(path: str, value: Any, allowed: Sequence[str]) -> list[FieldError]:
    """Return one of the texts."""
    return [] if value in allowed else [refusals.unsupported(path, value, allowed)]


def fixed(path: str, new: Any, old: Any, type_: str = "") -> list[FieldError]:
    """Return what may not change; a struct is shown as the internal ``type_``."""
    if new == old:
        return []
    return [refusals.bad(path, internal_kinds.internal(new, type_) if type_ else new, IMMUTABLE)]


def too_long(path: str, limit: int) -> FieldError:
    """Return a text of too many bytes."""
    return FieldError(path, "FieldValueTooLong", f"may not be more than {limit} bytes")


def too_many(path: str, given: int, limit: int) -> FieldError:
    """Return a list of too many items."""
    return FieldError(path, "FieldValueTooMany", f"{given}: must have at most {limit} items")


def wildcard_subdomain(path: str, text: str) -> list[FieldError]:
    """``*.example.com``."""
    found = [f"must be no more than {253} characters"] if len(text) > 253 else []
    if not (text.startswith("*.") and not names.subdomain_errors(path, text[2:])):
        found.append(_WILDCARD_TEXT)
    return bads(path, text, found)


def domain_path(path: str, text: str) -> list[FieldError]:
    """``example.com/controller``."""
    if not text:
        return [refusals.required(path)]
    host, slash, rest = text.partition("/")
    if not slash or not host or not rest:
        return [refusals.bad(path, text, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    found = [refusals.bad(path, host, error.text.partition(": ")[2]) for error in names.subdomain_errors(path, host)]
    if not re.fullmatch(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", rest):
        found.append(refusals.bad(path, rest, _PATH_TEXT))
    return found


def percent_or_count(path: str, value: Any) -> list[FieldError]:
    """Return a number or a share in percent, neither below zero."""
    if isinstance(value, str):
        return [] if re.fullmatch("[0-9]+%", value) else [refusals.bad(path, value, _PERCENT_TEXT)]
    return not_negative(path, value)


def at_most_everything(path: str, value: Any) -> list[FieldError]:
    """Return a share of not more than 100 %."""
    if isinstance(value, str) and re.fullmatch("[0-9]+%", value) and int(value[:-1]) > 100:
        return [refusals.bad(path, value, "must not be greater than 100%")]
    return []


def port(path: str, number: int) -> list[FieldError]:
    """Return the number of a port."""
    return [] if 1 <= number <= 65535 else [refusals.bad(path, number, "must be between 1 and 65535, inclusive")]


_STATUSES = ("False", "True", "Unknown")


def conditions(path: str, given: Sequence[Part]) -> Iterator[FieldError]:
    """Conditions of the common type (metav1.Condition)."""
    seen: set[str] = set()
    for index, condition in enumerate(given or ()):
        here, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            yield refusals.duplicate(f"{here}.type", kind)
        seen.add(kind)
        yield from _condition(here, condition)


def _condition(path: str, condition: Part) -> Iterator[FieldError]:
    yield from names.qualified_errors(f"{path}.type", condition.get("type", ""))
    status = condition.get("status", "")
    if status not in _STATUSES:
        yield refusals.unsupported(f"{path}.status", status, _STATUSES)
    if condition.get("observedGeneration", 0) < 0:
        yield refusals.bad(f"{path}.observedGeneration", condition["observedGeneration"], NOT_NEGATIVE)
    if not condition.get("lastTransitionTime"):
        yield refusals.required(f"{path}.lastTransitionTime")
    reason = condition.get("reason", "")
    if not reason:
        yield refusals.required(f"{path}.reason")
    else:
        if len(reason) > 1024:
            yield too_long(f"{path}.reason", 1024)
        if not re.fullmatch(_CONDITION_TYPE, reason):
            yield refusals.bad(f"{path}.reason", reason, _REASON_TEXT)
    if len(condition.get("message", "")) > 32 * 1024:
        yield too_long(f"{path}.message", 32 * 1024)


NOT_NEGATIVE = "must be greater than or equal to zero"


def items(part: Part, name: str) -> Sequence[Any]:
    """Return the list of that name, which may not be there."""
    found: Sequence[Any] = part.get(name) or ()
    return found


def part_of(obj: Part, name: str) -> Part:
    """Return the struct of that name, which may not be there."""
    found: Part = obj.get(name) or {}
    return found
