"""From text to tree: the grammar of CEL, and its macros expanded (cel-go's parser and ext/comprehensions)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from mews.kube.cel.macros import expanded
from mews.kube.cel.syntax import (
    CallNode,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
    SyntaxFault,
    qualified,
)
from mews.kube.cel.values import UInt

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<text>(?:[bB][rR]?|[rR][bB]?)?(?:\"{3}.*?(?<!\\)\"{3}|'{3}.*?(?<!\\)'{3}))
    |(?P<raw>(?:[bB][rR]|[rR][bB]?)(?:"[^"\n\r]*"|'[^'\n\r]*'))
    |(?P<string>[bB]?(?:"(?:\\.|[^\\"\n\r])*"|'(?:\\.|[^\\'\n\r])*'))
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<quoted>`[a-zA-Z0-9_.\-/ ]+`)
    |(?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,\[\](){}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RESERVED = frozenset((
    *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",),
    *("namespace", "return", "var", "void", "while",),
))  # fmt: skip
_MAX_DEPTH = 250
_TOO_DEEP = f"expression recursion limit exceeded: {_MAX_DEPTH}"
_END = "<EOF>"
_RELATIONS = {"==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in"}


class Token(NamedTuple):
    """A word of the text, its sort, and where it begins."""

    kind: str
    text: str
    at: int


def _tokens(source: str) -> list[Token]:
    found, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            shown = source[at].replace("\n", "\\n")
            raise SyntaxFault(f"Syntax error: token recognition error at: '{shown}'", at)
        if match.lastgroup != "space":
            found.append(Token(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*found, Token("end", _END, len(source))]


@lru_cache(maxsize=2048)
def parse(source: str) -> Node:
    """The tree of an expression.

    Raises ``SyntaxFault``.
    """
    reader = _Parser(_tokens(source))
    try:
        node = reader.expression()
    except RecursionError:
        raise SyntaxFault(_TOO_DEEP, 0) from None
    reader.expect("end")
    return node


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._place]

    def _take(self) -> Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._next.text in texts and self._next.kind in ("op", "ident", "end")

    def _unexpected(self, wanted: str = "") -> SyntaxFault:
        token = self._next
        if wanted:
            return SyntaxFault(f"Syntax error: missing '{wanted}' at '{token.text}'", token.at)
        options = (
            "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
        )
        word = "mismatched" if token.kind == "end" else "extraneous"
        return SyntaxFault(f"Syntax error: {word} input '{token.text}' expecting {options}IDENTIFIER}}", token.at)

    def expect(self, text: str) -> Token:
        """The next word, which must be that one."""
        if text == "end":
            if self._next.kind != "end":
                token = self._next
                raise SyntaxFault(f"Syntax error: extraneous input '{token.text}' expecting <EOF>", token.at)
            return self._next
        if not self._is(text):
            raise self._unexpected(text)
        return self._take()

    def expression(self) -> Node:
        """``a ? b : c`` or what binds tighter."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise SyntaxFault(_TOO_DEEP, self._next.at)
        node = self._logic("||", "_||_")
        if self._is("?"):
            at = self._take().at
            yes = self._logic("||", "_||_")
            self.expect(":")
            node = CallNode(at, "_?_:_", None, [node, yes, self.expression()])
        self._depth -= 1
        return node

    def _logic(self, operator: str, function: str) -> Node:
        """Long chains are balanced, as cel-go does, so that they do not nest."""
        terms, places = [self._and() if operator == "||" else self._relation()], []
        while self._is(operator):
            places.append(self._take().at)
            terms.append(self._and() if operator == "||" else self._relation())
        return _balanced(function, terms, places, 0, len(places) - 1) if places else terms[0]

    def _and(self) -> Node:
        return self._logic("&&", "_&&_")

    def _relation(self) -> Node:
        node = self._sum()
        while self._next.text in _RELATIONS and self._next.kind in ("op", "ident"):
            token = self._take()
            node = CallNode(token.at, _RELATIONS[token.text], None, [node, self._sum()])
        return node

    def _sum(self) -> Node:
        node = self._product()
        while self._is("+", "-"):
            token = self._take()
            node = CallNode(token.at, f"_{token.text}_", None, [node, self._product()])
        return node

    def _product(self) -> Node:
        node = self._unary()
        while self._is("*", "/", "%"):
            token = self._take()
            node = CallNode(token.at, f"_{token.text}_", None, [node, self._unary()])
        return node

    def _unary(self) -> Node:
        if self._is("!"):
            first, count = self._next.at, 0
            while self._is("!"):
                self._take()
                count += 1
            node = self._member()
            return CallNode(first, "!_", None, [node]) if count % 2 else node
        if self._is("-"):
            first, count = self._next.at, 0
            negative = self._tokens[self._place + 1]
            if negative.kind in ("int", "float"):
                self._take()
                self._take()
                return self._members(_number(Token(negative.kind, f"-{negative.text}", first)))
            while self._is("-"):
                self._take()
                count += 1
            node = self._member()
            return CallNode(first, "-_", None, [node]) if count % 2 else node
        return self._member()

    def _member(self) -> Node:
        return self._members(self._primary())

    def _members(self, node: Node) -> Node:
        while self._is(".", "[", "{"):
            if self._is("{"):
                name = qualified(node)
                if not name:
                    return node
                node = self._struct(name, self._take().at)
                continue
            token = self._take()
            optional = self._is("?")
            if optional:
                self._take()
            if token.text == "[":
                index = self.expression()
                self.expect("]")
                node = CallNode(token.at, "_[?_]" if optional else "_[_]", None, [node, index])
                continue
            place = self._next.at
            word = self._field_name()
            if self._is("(") and not optional:
                at = self._take().at
                node = expanded(word, node, self._arguments(")"), at)
            elif optional:
                node = CallNode(token.at, "_?._", None, [node, Literal(place, word)])
            else:
                node = Select(token.at, node, word)
        return node

    def _field_name(self) -> str:
        if self._next.kind not in ("ident", "quoted"):
            raise self._unexpected("IDENTIFIER")
        return self._take().text.strip("`")

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        while not self._is(end):
            found.append(self.expression())
            if not self._is(","):
                break
            self._take()
        self.expect(end)
        return found

    def _primary(self) -> Node:
        token = self._take()
        if token.kind in ("int", "uint", "float"):
            return _number(token)
        if token.kind in ("text", "raw", "string"):
            return Literal(token.at, _unquoted(token))
        if token.kind == "ident" or (token.text == "." and self._next.kind == "ident"):
            return self._name(token)
        if token.text == "(":
            node = self.expression()
            self.expect(")")
            return node
        if token.text == "[":
            return self._list(token)
        if token.text == "{":
            return self._map(token)
        self._place -= 1
        raise self._unexpected()

    def _name(self, token: Token) -> Node:
        if token.text == ".":
            token = self._take()
        word = token.text
        if word in ("true", "false", "null"):
            return Literal(token.at, {"true": True, "false": False, "null": None}[word])
        if word in _RESERVED:
            raise SyntaxFault(f"reserved identifier: {word}", token.at)
        if self._is("("):
            at = self._take().at
            return expanded(word, None, self._arguments(")"), at)
        return Ident(token.at, word)

    def _struct(self, name: str, at: int) -> Node:
        fields = []
        while not self._is("}"):
            optional = self._is("?")
            if optional:
                self._take()
            key = self._field_name()
            self.expect(":")
            fields.append((key, self.expression(), optional))
            if not self._is(","):
                break
            self._take()
        self.expect("}")
        return StructNode(at, name, fields)

    def _list(self, token: Token) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._is("?"):
                self._take()
                optional.add(len(items))
            items.append(self.expression())
            if not self._is(","):
                break
            self._take()
        self.expect("]")
        return ListNode(token.at, items, optional)

    def _map(self, token: Token) -> Node:
        entries = []
        while not self._is("}"):
            optional = self._is("?")
            if optional:
                self._take()
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self._is(","):
                break
            self._take()
        self.expect("}")
        return MapNode(token.at, entries)


def _balanced(function: str, terms: list[Node], places: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, places, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, places, middle + 1, high)
    return CallNode(places[middle], function, None, [left, right])


def _number(token: Token) -> Literal:
    text = token.text
    if token.kind == "float":
        return Literal(token.at, float(text))
    base = 16 if "0x" in text else 10
    value = int(text.rstrip("uU") if token.kind == "uint" else text, base)
    if token.kind == "uint":
        if value >= 1 << 64:
            raise SyntaxFault("invalid uint literal", token.at)
        return Literal(token.at, UInt(value))
    if not -(1 << 63) <= value < 1 << 63:
        raise SyntaxFault("invalid int literal", token.at)
    return Literal(token.at, value)


def _unquoted(token: Token) -> str | bytes:
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


def _escape(match: re.Match[str], token: Token) -> tuple[str, int | None]:
    """The sign itself, or its number."""
    word = match[1]
    if word[0] in "xXuU" and len(word) > 1:
        return "", int(word[1:], 16)
    if word[0] in "0123" and len(word) == 3:
        return "", int(word, 8)
    if word in _PLAIN:
        return _PLAIN[word], None
    if word in "\\'\"`?":
        return word, None
    raise SyntaxFault("Syntax error: token recognition error at: '" + token.text + "'", token.at)


def _unescaped(body: str, token: Token) -> str:
    def put(match: re.Match[str]) -> str:
        plain, code = _escape(match, token)
        return plain if code is None else chr(code)

    return _ESCAPE.sub(put, body)


def _unescaped_bytes(body: str, token: Token) -> bytes:
    found, at = bytearray(), 0
    for match in _ESCAPE.finditer(body):
        found += body[at : match.start()].encode()
        plain, code = _escape(match, token)
        found += plain.encode() if code is None else (bytes([code]) if match[1][0] not in "uU" else chr(code).encode())
        at = match.end()
    return bytes(found + body[at:].encode())
