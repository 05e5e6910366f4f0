"""What a client sent, as values: text and JSON that cannot make a handler fail later. Pure.

Whatever is decoded here can be encoded again: no lone surrogates, no numbers beyond all bounds, no nesting that ends
in a RecursionError. Every refusal is a ValueError of one line.
"""

from __future__ import annotations

import hmac
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

DEEPEST = 100
"""Levels of lists and objects in a document; no scenario step has ten."""
_TOO_DEEP = f"the body is nested too deeply: {DEEPEST} levels are allowed"
_LONGEST_INT = 1 << 63
_MOST_DIGITS = 308
"""Of a whole number that a float64 holds."""
_SECRETS = re.compile(
    r"""(?ix) (\b(?:bearer|basic)\s+ | \b(?:x-auth-token|x-mews-token)["']?\s*[:=]\s*["']?
              | \b(?:password|token|client-key-data|access_token)["']?\s*[:=]\s*["']?) [^\s"'&,;]+ """
)


def redacted(text: str) -> str:
    """Return the text with tokens and passwords left out, for a log: of headers, of queries, of JSON."""
    return _SECRETS.sub(r"\1***", text)


def readable(value: str) -> str:
    """Return a text that can be encoded: bytes that were no UTF-8, and lone surrogates, are shown as they are
    written."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def bears(headers: Mapping[str, str], token: str) -> bool:
    """Return whether ``Authorization: Bearer TOKEN`` is there; in constant time. An empty token lets nobody in."""
    given = headers.get("authorization", "").encode("utf-8", "surrogateescape")
    return bool(token) and hmac.compare_digest(given, f"Bearer {token}".encode())


def read_json(raw: bytes) -> Any:
    """Return a document in UTF-8, whatever charset its media type claims (RFC 8259 section 8.1).

    Raises ValueError.
    """
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"the body is not JSON: {' '.join(str(error).split())}") from None
    check_values(value)
    return value


def check_values(value: Any, depth: int = 0) -> None:
    """Raise ValueError for a number that no field can hold, and for nesting that no document needs."""
    if depth >= DEEPEST and isinstance(value, (dict, list)):
        raise ValueError(_TOO_DEEP)
    if isinstance(value, dict):
        for item in value.values():
            check_values(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            check_values(item, depth + 1)
    elif isinstance(value, int) and not -_LONGEST_INT <= value < _LONGEST_INT:
        raise ValueError(f"the body has a number of {len(str(abs(value)))} digits: must fit 64 bits")


def whole_number(text: str, name: str, *, most: int = _LONGEST_INT - 1) -> int:
    """Return a parameter that counts something. ``name`` says which in the error.

    Raises ValueError.
    """
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
        raise ValueError(f"{name}={readable(text[:40])!r}: must be a whole number from 0 to {most}")
    return int(text)


def read_like_go(raw: bytes) -> Any:
    """Return a document as Go's encoding/json reads one into an ``interface{}``: what is no text becomes U+FFFD, a
    number that no float64 holds is refused, and so are NaN and Infinity.

    Raises ValueError.
    """
    text = raw.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if "\\u" in text or text.count("[") + text.count("{") > DEEPEST:
        return _cleaned(value, 0)
    return value


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits: at most {_MOST_DIGITS} are allowed")
    return int(digits)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]}: exceeds a float64")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _cleaned(value: Any, depth: int) -> Any:
    """Return the value without lone surrogates; not deeper than documents are."""
    if depth >= DEEPEST and isinstance(value, (dict, list)):
        raise ValueError(_TOO_DEEP)
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_cleaned(name, depth): _cleaned(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    return value
