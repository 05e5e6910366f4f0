"""What Go's decoder says of text that is no JSON (encoding/json/scanner.go), and of JSON that is no object."""

from __future__ import annotations

import re
from typing import Any

CUT = "unexpected end of JSON input"
_SPACE = " \t\r\n"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_LITERALS = ("true", "false", "null")


class _Error(Exception):
    """In the decoder's words."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at] in _SPACE:
            self._at += 1
        if self._at >= len(self._text):
            raise _Error(CUT)
        return self._text[self._at]

    def _unexpected(self, place: str) -> _Error:
        if self._at >= len(self._text):
            return _Error(CUT)
        return _Error(f"invalid character {_quoted(self._text[self._at])} {place}")

    def document(self) -> None:
        self.value()
        if self._text[self._at :].strip(_SPACE):
            self._peek()
            raise self._unexpected("after top-level value")

    def value(self) -> None:
        match self._peek():
            case "{":
                self._members()
            case "[":
                self._items()
            case '"':
                self._string()
            case char if char == "-" or char.isdigit():
                self._number()
            case _:
                self._literal()

    def _members(self) -> None:
        self._at += 1
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() != '"':
                raise self._unexpected("looking for beginning of object key string")
            self._string()
            if self._peek() != ":":
                raise self._unexpected("after object key")
            self._at += 1
            self.value()
            if self._closes("}", "after object key:value pair"):
                return

    def _items(self) -> None:
        self._at += 1
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            self.value()
            if self._closes("]", "after array element"):
                return

    def _closes(self, bracket: str, place: str) -> bool:
        char = self._peek()
        if char not in (bracket, ","):
            raise self._unexpected(place)
        self._at += 1
        return char == bracket

    def _string(self) -> None:
        found = _STRING.match(self._text, self._at)
        if found is None:
            end = len(self._text)
            control = next((i for i in range(self._at + 1, end) if self._text[i] < " "), None)
            if control is None:
                raise _Error(CUT)
            self._at = control
            raise self._unexpected("in string literal")
        self._at = found.end()

    def _number(self) -> None:
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            self._at += 1
            raise self._unexpected("in numeric literal")
        self._at = found.end()

    def _literal(self) -> None:
        start = self._text[self._at]
        word = next((word for word in _LITERALS if word[0] == start), None)
        if word is None:
            raise self._unexpected("looking for beginning of value")
        for index, letter in enumerate(word):
            if self._at + index >= len(self._text):  # the decoder pretends that a space comes after the end
                raise _Error(f"invalid character ' ' in literal {word} (expecting {_quoted(letter)})")
            if self._text[self._at + index] != letter:
                self._at += index
                raise self._unexpected(f"in literal {word} (expecting {_quoted(letter)})")
        self._at += len(word)


def _quoted(char: str) -> str:
    """Return a character as Go quotes it."""
    escapes = {"'": r"'\''", '"': "'\"'", "\n": r"'\n'", "\t": r"'\t'", "\r": r"'\r'", "\x00": r"'\x00'"}
    return escapes.get(char, f"'{char}'" if char.isprintable() else f"'\\x{ord(char):02x}'")


def json_error(raw: bytes) -> str:
    """Return what is wrong with a body that could not be read as JSON."""
    scanner = _Scanner(raw.decode("utf-8", errors="replace"))
    try:
        scanner.document()
    except _Error as error:
        return str(error)
    except RecursionError:
        return "invalid character '[' exceeded max depth"
    return "invalid JSON"


def not_a_struct(body: Any) -> str:
    """Go's decoder about a body that is no object."""
    word = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
    fields = r'{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
    return f"json: cannot unmarshal {word} into Go value of type struct {fields}"
