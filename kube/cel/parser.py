"""From text to tree: the grammar of CEL, and its macros expanded (cel-go's parser and ext/comprehensions)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mews.kube.cel.macros import expanded
from mews.kube.cel.quoting import unquoted
from mews.kube.cel.syntax import (
    CallNode,
    ExpressionSyntaxError,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
    qualified,
)
from mews.kube.cel.tokens import END, Token, tokens_of
from mews.kube.cel.values import UInt

_RESERVED = frozenset((
    *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",),
    *("namespace", "return", "var", "void", "while",),
))  # fmt: skip
_CLOSED_BY = {"(": ")", "[": "]", "{": "}"}
_CLOSERS = tuple(_CLOSED_BY.values())
_BEGINNINGS = ("[", "{", "(", ".", "-", "!")
_LITERALS = "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_EXPRESSION = "{'[', '{', '(', '.', '-', '!', " + _LITERALS
_INDEX = _EXPRESSION.replace("'!', ", "'!', '?', ")
_ARGUMENTS = "{'[', '{', '(', ')', '.', '-', '!', " + _LITERALS
_ITEMS = "{'[', ']', '{', '(', '.', ',', '-', '!', '?', " + _LITERALS
_ENTRIES = "{'[', '{', '}', '(', '.', ',', '-', '!', '?', " + _LITERALS
"""What may come where an expression, an argument, a list's item or a map's entry may begin, in ANTLR's order."""

_MAX_DEPTH = 250
_TOO_DEEP = f"expression recursion limit exceeded: {_MAX_DEPTH}"
_RELATIONS = {"==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in"}


@lru_cache(maxsize=2048)
def parse(source: str, *, bindings: bool = False) -> Node:
    """Return the tree of an expression; ``bindings``: ``cel.bind(name, value, expression)`` is a macro, as device
    selectors have it.

    Raises ``ExpressionSyntaxError``.
    """
    errors: list[tuple[int, str]] = []
    reader = _Parser(source, errors, bindings=bindings)
    try:
        node = reader.expression()
        reader.expect("end")
    except RecursionError:
        raise ExpressionSyntaxError(_TOO_DEEP, 0) from None
    except ExpressionSyntaxError as error:
        raise ExpressionSyntaxError(error.text, error.at, errors) from None
    if errors:
        at, text = errors[-1]
        raise ExpressionSyntaxError(text, at, errors[:-1])
    return node


def _begins(token: Token) -> bool:
    """Return whether an expression may begin with that word."""
    return (token.kind not in ("op", "end", "quoted") and token.text != "in") or token.text in _BEGINNINGS


def _open_brackets(tokens: Sequence[Token]) -> list[str]:
    """Return what closes the brackets that are open, the innermost last."""
    found: list[str] = []
    for token in tokens:
        if token.kind == "op" and token.text in _CLOSED_BY:
            found.append(_CLOSED_BY[token.text])
        elif token.kind == "op" and found and token.text == found[-1]:
            found.pop()
    return found


class _Parser:
    """Reads on after what ANTLR's default strategy mends: a word too many, or one that is missing. What cannot be
    mended ends it; upstream then looks for a place to go on from and may find more."""

    def __init__(self, source: str, errors: list[tuple[int, str]], *, bindings: bool = False) -> None:
        self._bindings = bindings
        self._source = source
        self._tokens = tokens_of(source, errors)
        self._errors = errors
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

    def _after(self) -> Token:
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def _skip(self, wanted: str) -> None:
        """Leave out the next word, which is too many."""
        token = self._take()
        self._errors.append((token.at, f"Syntax error: extraneous input '{token.text}' expecting {wanted}"))

    def _sync(self, wanted: str = _EXPRESSION, *others: str) -> None:
        """See to it that an expression begins here, or one of the other words comes."""
        if _begins(self._next) or self._is(*others):
            return
        after = self._after()
        if self._next.kind != "end" and (_begins(after) or after.text in others):
            self._skip(wanted)
            return
        raise self._mismatched(wanted)

    def _mismatched(self, wanted: str) -> ExpressionSyntaxError:
        return ExpressionSyntaxError(
            f"Syntax error: mismatched input '{self._next.text}' expecting {wanted}", self._next.at
        )

    def _no_alternative(self, begin: Token) -> ExpressionSyntaxError:
        """Return that of several ways to go on from a word none does."""
        end = self._next.at + (0 if self._next.kind == "end" else len(self._next.text))
        text = self._source[begin.at : end]
        return ExpressionSyntaxError(f"Syntax error: no viable alternative at input '{text}'", self._next.at)

    def expect(self, text: str) -> Token:
        """Return the next word, which must be that one; it is added where it alone is missing."""
        if text == "end":
            if self._next.kind != "end" and self._after().kind == "end":
                self._skip(END)
            if self._next.kind != "end":
                raise self._mismatched(END)
            return self._next
        if self._is(text):
            return self._take()
        if self._next.kind != "end" and self._after().text == text:
            self._skip(f"'{text}'")
            return self._take()
        if text == ":" and not _begins(self._next):
            raise self._mismatched("':'")
        if text in _CLOSERS and not self._may_follow():
            raise self._mismatched(f"'{text}'")
        self._errors.append((self._next.at, f"Syntax error: missing '{text}' at '{self._next.text}'"))
        return Token("op", text, self._next.at)

    def _may_follow(self) -> bool:
        """Return whether the next word may stand behind a bracket that closes here."""
        if _begins(self._next):
            return self._next.text in ("-", "[", ".")
        outside = _open_brackets(self._tokens[: self._place])[:-1]
        if self._next.kind == "end":
            return not outside
        if self._next.text in _CLOSERS:
            return bool(outside) and outside[-1] == self._next.text
        is_choice = any(token.text == "?" for token in self._tokens[: self._place])
        return self._next.text not in (",", ":") or bool(outside) or (self._next.text == ":" and is_choice)

    def expression(self) -> Node:
        """``a ? b : c`` or what binds tighter."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ExpressionSyntaxError(_TOO_DEEP, self._next.at)
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
        self._sync()
        if self._is("!"):
            first, count = self._next.at, 0
            while self._is("!"):
                self._take()
                count += 1
            node = self._member()
            return CallNode(first, "!_", None, [node]) if count % 2 else node
        if self._is("-"):
            begin, count = self._next, 0
            first, negative = begin.at, self._tokens[self._place + 1]
            if negative.kind in ("int", "float"):
                self._take()
                self._take()
                return self._members(_number(Token(negative.kind, f"-{negative.text}", first)))
            while self._is("-"):
                self._take()
                count += 1
            if not _begins(self._next):
                raise self._no_alternative(begin)
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
                self._sync(_EXPRESSION if optional else _INDEX)
                index = self.expression()
                self.expect("]")
                node = CallNode(token.at, "_[?_]" if optional else "_[_]", None, [node, index])
                continue
            place = self._next.at
            if self._next.kind not in ("ident", "quoted") or self._next.text == "in":
                raise self._no_alternative(token)
            word = self._field_name()
            if self._is("(") and not optional:
                at = self._take().at
                node = expanded(word, node, self._arguments(")"), at, bindings=self._bindings)
            elif optional:
                node = CallNode(token.at, "_?._", None, [node, Literal(place, word)])
            else:
                node = Select(token.at, node, word)
        return node

    def _field_name(self) -> str:
        if self._next.kind not in ("ident", "quoted"):
            raise self._mismatched("IDENTIFIER")
        return self._take().text.strip("`")

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        self._sync(_ARGUMENTS, end)
        while not self._is(end):
            found.append(self.expression())
            if not self._is(","):
                break
            self._take()
            self._sync()
        self.expect(end)
        return found

    def _primary(self) -> Node:
        token = self._take()
        if token.kind in ("int", "uint", "float"):
            return _number(token)
        if token.kind in ("text", "raw", "string"):
            return Literal(token.at, unquoted(token))
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
        if token.text == ".":
            raise self._no_alternative(token)
        self._place -= 1
        raise self._mismatched(_EXPRESSION)

    def _name(self, token: Token) -> Node:
        if token.text == ".":
            token = self._take()
        word = token.text
        if word in ("true", "false", "null"):
            return Literal(token.at, {"true": True, "false": False, "null": None}[word])
        if word in _RESERVED:
            raise ExpressionSyntaxError(f"reserved identifier: {word}", token.at)
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

    def _goes_on(self) -> bool:
        """Return whether a comma with something behind it comes; it is taken then."""
        after = self._after()
        if not self._is(",") or not (_begins(after) or after.text == "?"):
            return False
        self._take()
        return True

    def _close(self, closer: str, *, has_members: bool) -> None:
        """Take what ends a list or a map, and the comma that may stand before it."""
        if self._is(","):
            self._take()
        elif has_members and not self._is(closer):
            wanted = f"{{'{closer}', ','}}"
            if self._after().text not in (closer, ","):
                raise self._mismatched(wanted)
            self._skip(wanted)
        self.expect(closer)

    def _list(self, token: Token) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        self._sync(_ITEMS, "]", ",", "?")
        while not self._is("]", ","):
            if self._is("?"):
                self._take()
                optional.add(len(items))
            items.append(self.expression())
            if not self._goes_on():
                break
        self._close("]", has_members=bool(items))
        return ListNode(token.at, items, optional)

    def _map(self, token: Token) -> Node:
        entries = []
        self._sync(_ENTRIES, "}", ",", "?")
        while not self._is("}", ","):
            optional = self._is("?")
            if optional:
                self._take()
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self._goes_on():
                break
        self._close("}", has_members=bool(entries))
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
            raise ExpressionSyntaxError("invalid uint literal", token.at)
        return Literal(token.at, UInt(value))
    if not -(1 << 63) <= value < 1 << 63:
        raise ExpressionSyntaxError("invalid int literal", token.at)
    return Literal(token.at, value)
