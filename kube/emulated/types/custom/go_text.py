"""Values and numbers as Go prints them in refusals."""

from __future__ import annotations

import json
import math
from typing import Any

from mews.kube.api.quoted_text import quoted
from mews.kube.emulated.core.store.refusals import FieldError

HTML_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What json.Marshal escapes, since HTML would trip over it."""


def marshalled(value: Any) -> str:
    """``json.Marshal``: keys sorted, no spaces, what HTML would trip over escaped."""
    return escaped(json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True))


def escaped(text: str) -> str:
    """Return a JSON text with what HTML would trip over escaped, as ``json.Marshal`` does."""
    for char, code in HTML_ESCAPED.items():
        text = text.replace(char, code)
    return text


def _plain(value: Any) -> Any:
    """``1.0`` is written ``1``."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def number(value: float) -> str:
    """``%v`` of an int64 or a float64."""
    if isinstance(value, int):
        return str(value)
    if value == 0 or math.isinf(value) or math.isnan(value):
        return "0" if value == 0 else {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    digits, _, exponent = f"{abs(value):e}".partition("e")
    shortest = repr(abs(value))
    mantissa, _, given = shortest.partition("e")
    power = int(given) if given else int(exponent)
    if not given:
        plain = mantissa.replace(".", "").lstrip("0").rstrip("0") or "0"
        digits = plain[0] + ("." + plain[1:] if len(plain) > 1 else "")
    else:
        digits = mantissa.removesuffix(".0")
    sign = "-" if value < 0 else ""
    if -4 <= power < 21:
        text = f"{abs(value):.25f}".rstrip("0").rstrip(".") if given else shortest.removesuffix(".0")
        return sign + text
    return f"{sign}{digits}e{'-' if power < 0 else '+'}{abs(power):02d}"


def shown(value: Any) -> str:
    """Return a value in a refusal: numbers and flags plain, texts quoted, null as a word, the rest as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return number(value)
    return quoted(value) if isinstance(value, str) else marshalled(value)


def wrong(path: str, value: Any, text: str) -> FieldError:
    """``Invalid value``."""
    return FieldError(path, "FieldValueInvalid", f"{shown(value)}: {text}")


def wrong_type(path: str, value: Any, text: str) -> FieldError:
    """``Invalid value`` whose cause is another type."""
    return FieldError(path, "FieldValueTypeInvalid", f"{shown(value)}: {text}")


def unsupported(path: str, value: Any, allowed: list[str] | tuple[str, ...]) -> FieldError:
    """``Unsupported value`` with what is supported."""
    text = f": supported values: {', '.join(quoted(one) for one in allowed)}" if allowed else ""
    return FieldError(path, "FieldValueNotSupported", f"{shown(value)}{text}")


def struct_text(value: Any) -> str:
    """Return a struct as ``json.Marshal`` writes it: its members in their order."""
    return escaped(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
