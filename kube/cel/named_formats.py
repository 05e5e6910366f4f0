"""The formats that ``format.NAME()`` gives (apiserver/pkg/cel/library/format.go; the names' rules are those of
apimachinery/pkg/api/validation and util/validation)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import ClassVar

from msgspec import Struct

from mews.kube.cel.urls import url_error


class NamedFormat(Struct, frozen=True):
    """A format by name, and what is wrong with a text by it."""

    cel_name: ClassVar[str] = "kubernetes.NamedFormat"
    name: str
    errors: Callable[[str], list[str]]


class _NameRule(Struct, frozen=True):
    pattern: str
    longest: int
    words: str
    examples: tuple[str, ...]

    def errors(self, value: str) -> list[str]:
        found = [f"must be no more than {self.longest} characters"] if len(value) > self.longest else []
        return found if re.fullmatch(self.pattern, value) else [*found, self.complaint()]

    def complaint(self) -> str:
        shown = " or ".join(f"'{example}', " for example in self.examples)
        return f"{self.words} (e.g. {shown}regex used for validation is '{self.pattern}')"


_LABEL, _LABEL_1035 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?", "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_ENDS = "and must start and end with an alphanumeric character"
_SIGNS = f"consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_DNS_LABEL = _NameRule(
    _LABEL,
    63,
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ENDS}",
    ("my-name", "123-abc"),
)
_SUBDOMAIN = _NameRule(
    rf"{_LABEL}(\.{_LABEL})*",
    253,
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS}",
    ("example.com",),
)
_DNS_1035 = _NameRule(
    _LABEL_1035,
    63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    ("my-name", "abc-123"),
)
_LABEL_VALUE = _NameRule(
    f"({_QUALIFIED})?",
    63,
    f"a valid label must be an empty string or {_SIGNS}",
    ("MyValue", "my_value", "12345"),
)
_NAME_PART = _NameRule(_QUALIFIED, 63, f"must {_SIGNS}", ("MyName", "my.name", "123-abc"))


def _prefix_of(rule: _NameRule) -> Callable[[str], list[str]]:
    """Return the rule for what a generated name begins with, which may end with a dash."""
    return lambda value: rule.errors(f"{value[:-2]}a" if len(value) > 1 and value.endswith("-") else value)


def _qualified_name(value: str) -> list[str]:
    prefix, *rest = value.split("/")
    if len(rest) > 1:
        words = _NAME_PART.complaint().removeprefix("must ")
        return [
            f"a qualified name must {words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    name, found = rest[0] if rest else prefix, []
    if rest:
        errors = _SUBDOMAIN.errors(prefix) if prefix else ["must be non-empty"]
        found = [f"prefix part {error}" for error in errors]
    if not name:
        found.append("name part must be non-empty")
    return found + [f"name part {error}" for error in _NAME_PART.errors(name)]


def _uri(value: str) -> list[str]:
    why = url_error(value)
    return [why] if why else []


def _matching(pattern: str, words: str) -> Callable[[str], list[str]]:
    return lambda value: [] if re.fullmatch(pattern, value) else [words]


_CLOCK = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"


def _date(value: str) -> list[str]:
    return [] if _is_date(value) else ["invalid date"]


def _datetime(value: str) -> list[str]:
    is_one = re.fullmatch(rf"[^Tt]*[Tt]{_CLOCK}", value, re.ASCII) and _is_date(re.split("[Tt]", value)[0])
    return [] if is_one else ["invalid datetime"]


def _is_date(value: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        return False
    year = int(value[:4]) or 400  # As leap as the year 0, which Python lacks.
    try:
        date(year, int(value[5:7]), int(value[8:]))
    except ValueError:
        return False
    return True


_ERRORS: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": _DNS_LABEL.errors,
    "dns1123Subdomain": _SUBDOMAIN.errors,
    "dns1035Label": _DNS_1035.errors,
    "qualifiedName": _qualified_name,
    "dns1123LabelPrefix": _prefix_of(_DNS_LABEL),
    "dns1123SubdomainPrefix": _prefix_of(_SUBDOMAIN),
    "dns1035LabelPrefix": _prefix_of(_DNS_1035),
    "labelValue": _LABEL_VALUE.errors,
    "uri": _uri,
    "uuid": _matching(
        r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", "does not match the UUID format"
    ),
    "byte": _matching("([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", "invalid base64"),
    "date": _date,
    "datetime": _datetime,
}
FORMAT_NAMES = tuple(_ERRORS)


def named_format(name: str) -> NamedFormat | None:
    """Return the format of that name."""
    return NamedFormat(name, _ERRORS[name]) if name in _ERRORS else None
