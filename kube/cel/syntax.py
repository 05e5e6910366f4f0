"""From the text of an expression to its tree (github.com/google/cel-spec, langdef; optionals as in cel-go)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mews.kube.cel.values import CelSyntaxError, Uint

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<int>(?:0[xX][0-9a-fA-F]+|\d+)[uU]?)
    |(?P<text>[rRbB]{0,2}(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<op>\[\?|\.\?|==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))", re.I
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
        "in",
    ]
)
_DEPTH = 250
_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_LEVEL_OF = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@dataclass(frozen=True, slots=True)
class Expr:
    """A node of the tree; ``at`` is where it stands in the text (the operator of a call)."""

    at: int


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class Ident(Expr):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """``operand.field``; ``test`` asks whether it is there, ``optional`` is ``.?``."""

    operand: Expr
    field: str
    test: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall(Expr):
    """A function, an operator (``_+_``) or, with a target, a method."""

    function: str
    args: tuple[Expr, ...]
    target: Expr | None = None


@dataclass(frozen=True, slots=True)
class ListExpr(Expr):
    """``[a, ?b]``."""

    items: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class MapExpr(Expr):
    """``{k: v, ?k: v}``."""

    entries: tuple[tuple[Expr, Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class MessageExpr(Expr):
    """``Object.spec{field: value}``."""

    name: str
    entries: tuple[tuple[str, Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class MacroExpr(Expr):
    """A macro that binds variables: all, exists, exists_one, map, filter, bind, optMap, optFlatMap."""

    macro: str
    target: Expr
    names: tuple[str, ...]
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(source: str) -> Expr:
    """The tree of an expression.

    Raises ``CelSyntaxError`` where it cannot be read.
    """
    return _Parser(source).whole()


def _tokens(source: str) -> list[_Token]:
    found, at = [], 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CelSyntaxError(at, f"Syntax error: token recognition error at: '{source[at : at + 1]}'")
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(_Token(kind, match.group(), at))
        at = match.end()
    found.append(_Token("end", "<EOF>", len(source)))
    return found


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = _tokens(source)
        self._next = 0
        self._depth = 0

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, *ops: str) -> _Token | None:
        token = self._peek()
        if token.text in ops and (token.kind == "op" or token.text == "in"):
            self._next += 1
            return token
        return None

    def _expect(self, op: str) -> _Token:
        token = self._take(op)
        if token is None:
            found = self._peek()
            if found.kind == "end":
                raise CelSyntaxError(found.at, f"Syntax error: missing '{op}' at '<EOF>'")
            raise CelSyntaxError(found.at, f"Syntax error: mismatched input '{found.text}' expecting '{op}'")
        return token

    def whole(self) -> Expr:
        found = self._expression()
        token = self._peek()
        if token.kind != "end":
            raise CelSyntaxError(token.at, f"Syntax error: extraneous input '{token.text}' expecting <EOF>")
        return found

    def _expression(self) -> Expr:
        self._depth += 1
        if self._depth > _DEPTH:
            raise CelSyntaxError(self._peek().at, f"expression recursion limit exceeded: {_DEPTH}")
        condition = self._binary(0)
        token = self._take("?")
        if token is not None:
            yes = self._binary(0)
            self._expect(":")
            condition = FunctionCall(token.at, "_?_:_", (condition, yes, self._expression()))
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> Expr:
        """Operators that bind at least as tightly as that level; few calls deep, as parentheses may be many."""
        left = self._unary()
        while True:
            token = self._peek()
            found = _LEVEL_OF.get(token.text, -1) if token.kind == "op" or token.text == "in" else -1
            if found < level:
                return left
            self._next += 1
            name = "@in" if token.text == "in" else f"_{token.text}_"
            left = FunctionCall(token.at, name, (left, self._binary(found + 1)))

    def _unary(self) -> Expr:
        token = self._take("!", "-")
        if token is None:
            return self._member()
        self._depth += 1
        if self._depth > _DEPTH:
            raise CelSyntaxError(token.at, f"expression recursion limit exceeded: {_DEPTH}")
        operand = self._unary()
        self._depth -= 1
        if token.text == "-" and isinstance(operand, Literal) and type(operand.value) in (int, float):
            return Literal(token.at, -operand.value)
        return FunctionCall(token.at, "!_" if token.text == "!" else "-_", (operand,))

    def _member(self) -> Expr:
        found = self._primary()
        while True:
            if token := self._take(".", ".?"):
                found = self._selected(found, token)
            elif token := self._take("[", "[?"):
                index = self._expression()
                self._expect("]")
                name = "_[_]" if token.text == "[" else "_[?_]"
                found = FunctionCall(token.at, name, (found, index))
            elif self._peek().text == "{" and (name := _message_name(found)):
                found = self._message(name, self._expect("{"))
            else:
                return found

    def _selected(self, operand: Expr, dot: _Token) -> Expr:
        token = self._peek()
        if token.kind not in ("name", "quoted"):
            raise CelSyntaxError(token.at, f"Syntax error: no viable alternative at input '.{token.text}'")
        self._next += 1
        optional = dot.text == ".?"
        if token.kind == "name" and not optional and (opening := self._take("(")):
            return self._method(operand, token, opening, self._arguments(")"))
        return Select(dot.at, operand, token.text.strip("`"), optional=optional)

    def _method(self, target: Expr, name: _Token, opening: _Token, args: tuple[Expr, ...]) -> Expr:
        macro = name.text
        if isinstance(target, Ident) and target.name == "cel" and macro == "bind" and len(args) == 3:
            return MacroExpr(opening.at, "bind", args[1], (self._variable(args[0]),), (args[2],))
        counts = {"all": (2, 3), "exists": (2, 3), "exists_one": (2,), "existsOne": (2, 3), "map": (2, 3)}
        counts |= {"filter": (2,), "optMap": (2,), "optFlatMap": (2,)}
        if len(args) not in counts.get(macro, ()):
            return FunctionCall(opening.at, macro, args, target)
        names = [self._variable(args[0])]
        rest = args[1:]
        if len(args) == 3 and macro in ("all", "exists", "existsOne"):
            names.append(self._variable(args[1]))
            rest = args[2:]
        return MacroExpr(opening.at, "exists_one" if macro == "existsOne" else macro, target, tuple(names), rest)

    def _variable(self, arg: Expr) -> str:
        if not isinstance(arg, Ident):
            raise CelSyntaxError(arg.at, "argument must be a simple name")
        return arg.name

    def _arguments(self, closing: str) -> tuple[Expr, ...]:
        found: list[Expr] = []
        while not self._take(closing):
            if found:
                self._expect(",")
                if self._take(closing):
                    break
            found.append(self._expression())
        return tuple(found)

    def _message(self, name: str, opening: _Token) -> Expr:
        entries: list[tuple[str, Expr, bool]] = []
        while not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            optional = self._take("?") is not None
            token = self._peek()
            if token.kind not in ("name", "quoted"):
                raise CelSyntaxError(token.at, f"Syntax error: mismatched input '{token.text}' expecting a field")
            self._next += 1
            self._expect(":")
            entries.append((token.text.strip("`"), self._expression(), optional))
        return MessageExpr(opening.at, name, tuple(entries))

    def _primary(self) -> Expr:
        token = self._peek()
        self._next += 1
        match token.kind:
            case "int":
                return _number(token)
            case "float":
                return Literal(token.at, float(token.text))
            case "text":
                return Literal(token.at, _unquoted(token))
            case "name":
                return self._named(token)
        match token.text:
            case "(":
                found = self._expression()
                self._expect(")")
                return found
            case "[" | "[?":
                return self._list(token)
            case "{":
                return self._map(token)
            case ".":
                return self._primary()
        raise CelSyntaxError(token.at, f"Syntax error: mismatched input '{token.text}' expecting {_STARTS}")

    def _named(self, token: _Token) -> Expr:
        constants = {"true": True, "false": False, "null": None}
        if token.text in constants:
            return Literal(token.at, constants[token.text])
        if token.text in _RESERVED:
            raise CelSyntaxError(token.at, f"reserved identifier: {token.text}")
        opening = self._take("(")
        if opening is None:
            return Ident(token.at, token.text)
        args = self._arguments(")")
        if token.text == "has" and len(args) == 1:
            if not isinstance(args[0], Select) or args[0].optional:
                raise CelSyntaxError(args[0].at, "invalid argument to has() macro")
            return Select(opening.at, args[0].operand, args[0].field, test=True)
        return FunctionCall(opening.at, token.text, args)

    def _list(self, opening: _Token) -> Expr:
        items: list[tuple[Expr, bool]] = []
        optional = opening.text == "[?"
        if not optional and self._take("]"):
            return ListExpr(opening.at, ())
        while True:
            optional = optional or self._take("?") is not None
            items.append((self._expression(), optional))
            optional = False
            if self._take("]"):
                break
            self._expect(",")
            if self._take("]"):
                break
        return ListExpr(opening.at, tuple(items))

    def _map(self, opening: _Token) -> Expr:
        entries: list[tuple[Expr, Expr, bool]] = []
        while not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            optional = self._take("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), optional))
        return MapExpr(opening.at, tuple(entries))


def _message_name(expr: Expr) -> str:
    """``Object.spec`` of a chain of names that may begin a message; "" for anything else."""
    if isinstance(expr, Ident):
        return expr.name if expr.name[:1].isupper() else ""
    if isinstance(expr, Select) and not expr.test and not expr.optional:
        head = _message_name(expr.operand)
        return f"{head}.{expr.field}" if head else ""
    return ""


def _number(token: _Token) -> Literal:
    text = token.text.rstrip("uU")
    value = int(text, 16) if text[:2].lower() == "0x" else int(text)
    if token.text != text:
        if value >= 1 << 64:
            raise CelSyntaxError(token.at, "invalid uint literal")
        return Literal(token.at, Uint(value))
    if value > 1 << 63:
        raise CelSyntaxError(token.at, "invalid int literal")
    return Literal(token.at, value)


def _unquoted(token: _Token) -> str | bytes:
    text = token.text
    quote = min(position for position in (text.find('"'), text.find("'")) if position >= 0)
    marks, text = text[:quote].lower(), text[quote:]
    body = text[3:-3] if text[:3] in ('"""', "'''") else text[1:-1]
    if "r" not in marks:
        body = _ESCAPE.sub(_escaped, body)
    return body.encode() if "b" in marks else body


def _escaped(match: re.Match[str]) -> str:
    simple, *codes, octal = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    if octal:
        return chr(int(octal, 8))
    return chr(int(next(code for code in codes if code), 16))


def children(expr: Expr) -> Sequence[Expr]:
    """The nodes right below one."""
    match expr:
        case Select():
            return (expr.operand,)
        case FunctionCall():
            return (*((expr.target,) if expr.target is not None else ()), *expr.args)
        case ListExpr():
            return tuple(item for item, _ in expr.items)
        case MapExpr():
            return tuple(each for key, value, _ in expr.entries for each in (key, value))
        case MessageExpr():
            return tuple(value for _, value, _ in expr.entries)
        case MacroExpr():
            return (expr.target, *expr.args)
    return ()
