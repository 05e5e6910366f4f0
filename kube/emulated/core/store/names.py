"""Which names, labels and annotations an object may have (k8s.io/apimachinery/pkg/util/validation)."""

from __future__ import annotations

import re
from functools import lru_cache

from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
LABEL_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{LABEL_VALUE}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_TWICE_QUALIFIED_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_MAX_SUBDOMAIN = 253
_MAX_LABEL = 63
_MAX_QUALIFIED = _MAX_SUBDOMAIN + 1 + _MAX_LABEL
_NAMES_KNOWN = 4096

DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def is_dns_1035(text: str) -> bool:
    """Return an RFC 1035 label, as the names of custom kinds must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", text) is not None


def dns_1035_errors(text: str) -> list[str]:
    """Return why a text is no RFC 1035 label, in the server's words."""
    found = [f"must be no more than {_MAX_LABEL} characters"] if len(text) > _MAX_LABEL else []
    return [*found, *([] if re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", text) else [DNS_1035_TEXT])]


def label_texts(text: str) -> list[str]:
    """Return why a text is no RFC 1123 label."""
    found = [f"must be no more than {_MAX_LABEL} characters"] if len(text) > _MAX_LABEL else []
    if re.fullmatch(_LABEL, text):
        return found
    return [*found, "must not contain dots" if re.fullmatch(_SUBDOMAIN, text) else LABEL_TEXT]


def segment_texts(text: str) -> list[str]:
    """Return why a text may not stand between the slashes of a path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in text]


def is_label(text: str) -> bool:
    """Return an RFC 1123 label, as container and namespace names must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch(_LABEL, text) is not None


def qualified_texts(text: str) -> list[str]:
    """Return why a text is no qualified name."""
    if len(text) <= _MAX_QUALIFIED and _is_qualified(text):
        return []
    return [error.text.partition(": ")[2] for error in qualified_errors("", text)]


def qualified_errors(path: str, text: str) -> list[FieldError]:
    """Return what is wrong with a qualified name: ``prefix/name`` or ``name``."""
    return [] if len(text) <= _MAX_QUALIFIED and _is_qualified(text) else _qualified_errors(path, text)


@lru_cache(maxsize=_NAMES_KNOWN)
def _is_qualified(text: str) -> bool:
    """The same few labels and resources are named by every pod."""
    return not _qualified_errors("", text)


def _qualified_errors(path: str, text: str) -> list[FieldError]:
    parts = text.split("/")
    if len(parts) > 2:
        return [refusals.bad(path, text, _TWICE_QUALIFIED_TEXT)]
    found, name = [], parts[-1]
    if len(parts) == 2 and not parts[0]:
        found.append(refusals.bad(path, text, "prefix part must be non-empty"))
    elif len(parts) == 2:
        found += [refusals.bad(path, text, f"prefix part {error}") for error in subdomain_texts(parts[0])]
    if not name:
        found.append(refusals.bad(path, text, "name part must be non-empty"))
    elif len(name) > _MAX_LABEL:
        found.append(refusals.bad(path, text, f"name part must be no more than {_MAX_LABEL} characters"))
    if not re.fullmatch(_QUALIFIED, name):
        found.append(refusals.bad(path, text, _QUALIFIED_TEXT))
    return found


def subdomain_texts(text: str) -> list[str]:
    """Return why a text is no RFC 1123 subdomain."""
    if len(text) <= _MAX_SUBDOMAIN:
        return [] if _is_subdomain(text) else [SUBDOMAIN_TEXT]
    found = [f"must be no more than {_MAX_SUBDOMAIN} characters"]
    return found if re.fullmatch(_SUBDOMAIN, text) else [*found, SUBDOMAIN_TEXT]


@lru_cache(maxsize=_NAMES_KNOWN)
def _is_subdomain(text: str) -> bool:
    """An object's name is looked at with each write of it."""
    return re.fullmatch(_SUBDOMAIN, text) is not None


def label_value_texts(value: str) -> list[str]:
    """Return why a text is no label's value."""
    found = [f"must be no more than {_MAX_LABEL} characters"] if len(value) > _MAX_LABEL else []
    return found if re.fullmatch(LABEL_VALUE, value) else [*found, LABEL_VALUE_TEXT]


def label_value_errors(path: str, value: str) -> list[FieldError]:
    """Return what is wrong with a label's value."""
    return [refusals.bad(path, value, text) for text in label_value_texts(value)]


def label_pair_errors(path: str, key: str, value: str) -> list[FieldError]:
    """Return what is wrong with a label."""
    return [] if _is_label_pair(key, value) else [*qualified_errors(path, key), *label_value_errors(path, value)]


@lru_cache(maxsize=_NAMES_KNOWN)
def _is_label_pair(key: str, value: str) -> bool:
    """Labels are looked at with each write of the object that has them."""
    return not qualified_errors("", key) and not label_value_texts(value)


def subdomain_errors(path: str, text: str) -> list[FieldError]:
    """Return what is wrong with an RFC 1123 subdomain."""
    return [refusals.bad(path, text, error) for error in subdomain_texts(text)]
