"""Texts in quotes, as Go prints them in errors."""

from __future__ import annotations

_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quoted(text: str) -> str:
    """``%q``."""
    found = []
    for char in text:
        if char in _QUOTED:
            found.append(_QUOTED[char])
        elif char in '"\\':
            found.append("\\" + char)
        elif char.isprintable():
            found.append(char)
        else:
            code = ord(char)
            found.append(f"\\x{code:02x}" if code < 128 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
    return '"' + "".join(found) + '"'
