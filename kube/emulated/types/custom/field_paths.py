"""Paths into objects of custom kinds: ``fieldPath`` of rules and selectable fields.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel (ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """A path that is none, or that the schema does not know."""


def resolve(path: str, schema: Schema, *, arrays: bool = True) -> tuple[str, Schema]:
    """Return the path as refusals write it, and the schema of what it points to.

    Raises ``FieldPathError``.
    """
    found, tokens = "", iter(_TOKEN.findall(path))
    for token in tokens:
        if token == "[":
            if not arrays:
                raise FieldPathError("array notation is not allowed")
            found, schema = _step(_quoted(_next(tokens)), schema, found)
            if (end := _next(tokens)) != "]":
                raise FieldPathError(f"expected ] but got {end}")
        elif token == ".":
            found, schema = _step(_next(tokens), schema, found)
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return found, schema


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return token


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def unescaped(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", unescaped, token[1:-1])


def _step(name: str, schema: Schema, path: str) -> tuple[str, Schema]:
    properties, extra = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        if name not in properties:
            raise FieldPathError("does not refer to a valid field")
        return (f"{path}.{name}" if path else name), properties[name]
    if extra is None or extra is False:
        raise FieldPathError("does not refer to a valid field")
    return f"{path}[{name}]", extra if isinstance(extra, Mapping) else {}
