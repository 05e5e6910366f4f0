"""The words of an expression (the lexer of cel-go's grammar)."""

from __future__ import annotations

import re
from typing import NamedTuple

END = "<EOF>"
_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_LINE = rf"""(?:"(?:{_ESCAPE}|[^\\"\n\r])*"|'(?:{_ESCAPE}|[^\\'\n\r])*')"""
_BLOCK = rf"""(?:\"{{3}}(?:{_ESCAPE}|[^\\])*?\"{{3}}|'{{3}}(?:{_ESCAPE}|[^\\])*?'{{3}})"""
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<text>[bB]?[rR](?:\"{3}.*?\"{3}|'{3}.*?'{3})|[bB]?BLOCK)
    |(?P<raw>[bB]?[rR](?:"[^"\n\r]*"|'[^'\n\r]*'))
    |(?P<string>[bB]?LINE)
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[a-zA-Z0-9_.\-/ ]+`)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,\[\](){}])""".replace("BLOCK", _BLOCK).replace("LINE", _LINE),
    re.VERBOSE | re.DOTALL,
)
_HALF_ESCAPE = r"(?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?)?"
_NO_TOKEN = re.compile(
    rf"""(?:"(?:{_ESCAPE}|[^\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*){_HALF_ESCAPE}.?|`[a-zA-Z0-9_.\-/ ]*.?|[&|=].?|.""",
    re.DOTALL,
)
"""How much ANTLR's lexer takes for the beginning of a word before it sees that it is none."""


class Token(NamedTuple):
    """A word of the text, its sort, and where it begins."""

    kind: str
    text: str
    at: int


def tokens_of(source: str, errors: list[tuple[int, str]]) -> list[Token]:
    """Return the words; what is none is noted and left out, as ANTLR's lexer does."""
    found, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            wrong = _NO_TOKEN.match(source, at)
            assert wrong is not None
            shown = wrong[0].replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
            errors.append((at, f"Syntax error: token recognition error at: '{shown}'"))
            at += len(wrong[0])
            continue
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*found, Token("end", END, len(source))]
