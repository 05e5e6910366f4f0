"""The value of a text or of bytes, from the word that has it in quotes."""

from __future__ import annotations

import re

from mews.kube.cel.syntax import ExpressionSyntaxError
from mews.kube.cel.tokens import Token

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unquoted(token: Token) -> str | bytes:
    """Return the value; raises ``ExpressionSyntaxError``."""
    text = token.text
    quote = re.search("[\"']", text)
    assert quote is not None
    prefix, body = text[: quote.start()].lower(), text[quote.start() :]
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width].replace("\r\n", "\n").replace("\r", "\n")
    is_bytes = "b" in prefix
    if "r" in prefix:
        return body.encode() if is_bytes else body
    return _unescaped_bytes(body, token) if is_bytes else _unescaped(body, token)


def _escape(match: re.Match[str]) -> tuple[str, int | None]:
    """Return the sign itself, or its number; the lexer takes no others."""
    word = match[1]
    if word[0] in "xXuU":
        return "", int(word[1:], 16)
    if word[0].isdigit():
        return "", int(word, 8)
    return _PLAIN.get(word, word), None


def _unescaped(body: str, token: Token) -> str:
    def put(match: re.Match[str]) -> str:
        plain, code = _escape(match)
        if code is not None and match[1][0] in "uU" and (code > 0x10FFFF or 0xD800 <= code <= 0xDFFF):
            raise ExpressionSyntaxError("invalid unicode code point", token.at)
        return plain if code is None else chr(code)

    return _ESCAPE.sub(put, body)


def _unescaped_bytes(body: str, token: Token) -> bytes:
    found, at = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        found += body[at : match.start()].encode()
        if match[1][0] in "uU":  # Bytes have no code points.
            raise ExpressionSyntaxError("unable to unescape string", token.at)
        plain, code = _escape(match)
        found += plain.encode() if code is None else bytes([code])
        at = match.end()
    return bytes(found + body[at:].encode())
