"""Expressions drawn by a seed: of every function with arguments that suit it, now and then with one that does not, and
some with a letter too many or too few."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from mews.kube.cel import types
from mews.kube.cel.signatures import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL, Overload, functions
from mews.kube.cel.types import Type

_OPTIONAL = types.optional_of(types.INT)
_PLAIN = (
    types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES, types.TIMESTAMP, types.DURATION,
)  # fmt: skip
_RARE = (QUANTITY, URL, SEMVER, IP, CIDR)
_RESULTS = (
    *_PLAIN, *_PLAIN, *_RARE, FORMAT, types.DYN, types.TYPE, types.NULL, _OPTIONAL, types.list_of(types.INT),
    types.list_of(types.STRING), types.map_of(types.STRING, types.INT), types.list_of(types.list_of(types.INT)),
)  # fmt: skip
_UNDRAWN = ("@not_strictly_false", "cel.@mapInsert")
_UNKNOWN = (
    "reverse()", "sort()", "flatten()", "distinct()", "slice(0, 1)", "quote()", "sum()", "charAt(0)", "nope(1)", "size",
    "getFullYear()", "isIP()", "value()", "optMap(x, x)", "sortBy(e, e)",
)  # fmt: skip
_STRINGS = (
    "''", "'a'", "'ab'", "'é€𝄞'", "'a,b,,c'", "'  x\\t'", "'Hello'", "r'\\d'", "'\\u00e9\\x41\\101'", "\"q'q\"",
    "'''a\nb'''", "self.s", "self.names[0]", "object.spec.title", "'%'", "'10'", "'-1'", "'true'", "'1.5'", "'\\n'",
)  # fmt: skip
_TEXTS: Mapping[str, Sequence[str]] = {
    "quantity": ("1Gi", "500m", "1.5k", "-1", "x", "1e3", "1E", "0", "100000000000000000000", "1.25Mi", "+5", "12e"),
    "url": ("https://u.v:80/w?x=y&x=z#f", "http://h", "/path/a%20b", "x", "https://[::1]:443/", "a:b", "ftp://u@h/p"),
    "ip": ("10.0.0.1", "::1", "127.0.0.1", "fe80::1", "::ffff:1.2.3.4", "0.0.0.0", "x", "01.2.3.4", "::1%e"),
    "cidr": ("10.0.0.0/8", "::/0", "10.1.2.3/24", "x", "10.0.0.0/33", "fe80::/10", "10.0.0.0", "0.0.0.0/0"),
    "semver": ("1.2.3", "1.10.0", "v1.2", "1.2.3-alpha.1+b", "x", "01.2.3", "1.2.3-alpha.beta", "1.0.0-1"),
    "duration": ("1h30m", "90s", "-5ms", "0", "1.5h", "x", "", "9223372036s", "3us4ns", "1d"),
    "timestamp": (
        "2024-02-29T12:00:00Z", "2023-02-29T12:00:00Z", "1970-01-01T00:00:00.123456789+02:00", "x",
        "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2024-1-1T00:00:00Z", "2024-12-31T24:00:00Z",
    ),
    "zone": ("UTC", "Europe/Berlin", "+02:00", "-11:30", "x", "America/New_York", ""),
    "number": ("10", "-1", "0x1f", "1.5", "x", "9223372036854775807", "9223372036854775808", "1e3", "NaN", "-Inf"),
    "bool": ("true", "false", "True", "TRUE", "t", "x", "1"),
    "pattern": ("a.*b", "(", "^[a-z]+$", "\\\\d{2,3}", "", "(a|b)*", "[", "a**", "(?i)AB", "x{1001}"),
    "format": ("%s", "%d and %s", "%.3f", "%x%X%o%b", "%e", "%%", "%q", "%", "%s%s", "%.2e|%s", "a", "%.f"),
    "name": ("dns1123Label", "uuid", "date", "nope", "labelValue", "byte"),
    "value": ("abc", "A_b", "", "2024-01-01", "a.b", "-x", "0b6e4d3e-1111-2222-3333-444455556666", "YQ=="),
}  # fmt: skip
_KINDS: Mapping[str, str] = {
    "string_to_int64": "number", "string_to_uint64": "number", "string_to_double": "number", "string_to_bool": "bool",
    "string_to_duration": "duration", "string_to_timestamp": "timestamp", "string_to_quantity": "quantity",
    "is_quantity_string": "quantity", "string_to_url": "url", "is_url_string": "url", "string_to_ip": "ip",
    "is_ip": "ip", "ip_is_canonical": "ip", "string_to_cidr": "cidr", "is_cidr": "cidr",
    "cidr_contains_ip_string": "ip", "cidr_contains_cidr_string": "cidr", "string_to_semver": "semver",
    "string_bool_to_semver": "semver", "is_semver_string": "semver", "is_semver_string_bool": "semver",
    "matches": "pattern", "matches_string": "pattern", "string_find_string": "pattern",
    "string_find_all_string": "pattern", "string_find_all_string_int": "pattern", "string_format": "format",
    "format-named": "name", "format-validate": "value",
}  # fmt: skip
_INTS = ("0", "1", "2", "-1", "3", "7", "self.a", "object.spec.replicas", "0x1F", "-0x2", "9223372036854775807", "100")
_LEAVES: Mapping[Type, Sequence[str]] = {
    types.BOOL: ("true", "false", "self.b", "object.spec.on", "has(self.none)", "has(object.spec.nope)"),
    types.INT: _INTS,
    types.UINT: ("0u", "1u", "5u", "18446744073709551615u", "0xAu", "uint(self.a)"),
    types.DOUBLE: ("0.0", "1.5", "-2.25", "1e300", ".5", "1e-3", "self.d", "object.spec.ratio", "double('NaN')"),
    types.STRING: _STRINGS,
    types.BYTES: ("b''", "b'a'", "b'\\xff'", "bytes(self.s)", "b'\\u00e9'", "rb'\\x'"),
    types.NULL: ("null", "object.none"),
    types.TIMESTAMP: ("self.when", "timestamp('2024-12-31T23:59:59.5Z')", "timestamp(0)", "timestamp(1e9)"),
    types.DURATION: ("self.lasts", "duration('1s')", "duration('-1h1ms')", "duration(60)"),
    types.TYPE: ("int", "string", "type(self.a)", "type(null)", "google.protobuf.Duration", "type(self.names)", "list"),
    types.DYN: ("dyn(1)", "object.spec", "object.spec.labels.k", "object.none", "object.nope", "dyn('x')", "dyn([1])"),
    QUANTITY: ("quantity('1Gi')", "quantity('250m')"),
    URL: ("url('https://u.v:80/w?x=y')", "url('/a')"),
    SEMVER: ("semver('1.2.3')", "semver('1.2.3-rc.1')"),
    IP: ("ip('10.0.0.1')", "ip('::1')"),
    CIDR: ("cidr('10.0.0.0/8')", "cidr('fe80::/10')"),
    FORMAT: ("format.dns1123Label()", "format.date()"),
}
_MACROS: Sequence[tuple[str, Type]] = (
    ("{list}.all(x, {body})", types.BOOL),
    ("{list}.exists(x, {body})", types.BOOL),
    ("{list}.exists_one(x, {body})", types.BOOL),
    ("{list}.existsOne(i, x, {body})", types.BOOL),
    ("{list}.all(i, x, i < 2 || {body})", types.BOOL),
    ("{{'q': {int}}}.exists(x, v, {body} && v > 0)", types.BOOL),
    ("{list}.filter(x, {body})", types.list_of(types.STRING)),
    ("{list}.map(x, x + {string})", types.list_of(types.STRING)),
    ("{list}.map(x, {body}, size(x))", types.list_of(types.INT)),
    ("{list}.transformList(i, x, {body}, i)", types.list_of(types.INT)),
    ("{map}.transformMap(x, v, {body}, v + 1)", types.map_of(types.STRING, types.INT)),
    ("{map}.transformMapEntry(x, v, {{x + {string}: v}})", types.map_of(types.STRING, types.INT)),
    ("self.items.map(x, x.name)", types.list_of(types.STRING)),
    ("self.items.all(x, has(x.count) ? x.count > {int} : {bool})", types.BOOL),
    ("self.items.exists(x, x.count == {int})", types.BOOL),
    ("object.spec.boxes.exists(x, x.image.endsWith({string}))", types.BOOL),
    ("{optional}.optMap(x, x + {int})", _OPTIONAL),
    ("{optional}.optFlatMap(x, optional.of(x * {int}))", _OPTIONAL),
    ("self.?none.orValue({string})", types.STRING),
    ("object.?spec.?labels[?'k'].orValue({string})", types.STRING),
    ("has(self.none) ? {string} : {string}", types.STRING),
    ("{{'a': {int}, ?'b': {optional}}}", types.map_of(types.STRING, types.INT)),
    ("[{int}, ?{optional}, {int}]", types.list_of(types.INT)),
)
_LETTERS = "()[]{}'\".,:?!&|=<>+-*/%0x1eu \\;#@é"


def drawn(seed: int, count: int) -> list[str]:
    """Return so many expressions; each depends on the seed and its number only."""
    return [_Draw(random.Random(f"cel/{seed}/{number}")).expression() for number in range(count)]


class _Draw:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def expression(self) -> str:
        text = self._of(self._rng.choice(_RESULTS), self._rng.choice((1, 2, 2, 3)))
        if self._rng.random() < 0.08:
            text = self._misspelt(text)
        return text

    def _of(self, type_: Type, depth: int) -> str:
        """An expression of that type, or now and then of another."""
        if self._rng.random() < 0.03:
            type_ = self._rng.choice(_RESULTS)
        if depth <= 0:
            return self._leaf(type_)
        way = self._rng.random()
        if way < 0.2 and (macros := [macro for macro, result in _MACROS if result == type_]):
            return self._macro(self._rng.choice(macros), depth - 1)
        if way < 0.24 and type_ != types.DYN:
            return f"{self._operand(type_, depth - 1)}.{self._rng.choice(_UNKNOWN)}"
        if way < 0.85 and (calls := _calls(type_)):
            name, overload = self._rng.choice(calls)
            return self._call(name, overload, type_, depth - 1)
        return self._leaf(type_)

    def _leaf(self, type_: Type) -> str:
        if type_ in _LEAVES:
            return self._rng.choice(_LEAVES[type_])
        if type_.name == "list":
            if type_.params[0] == types.STRING and self._rng.random() < 0.5:
                return "self.names"
            return f"[{', '.join(self._leaf(type_.params[0]) for _ in range(self._rng.randrange(4)))}]"
        if type_.name == "map":
            if type_.params == (types.STRING, types.INT) and self._rng.random() < 0.5:
                return "self.sizes"
            pairs = [
                f"{self._leaf(type_.params[0])}: {self._leaf(type_.params[1])}" for _ in range(self._rng.randrange(3))
            ]
            return "{" + ", ".join(pairs) + "}"
        if type_.name == "optional_type":
            return self._rng.choice((f"optional.of({self._leaf(type_.params[0])})", "optional.none()"))
        return "object"

    def _macro(self, macro: str, depth: int) -> str:
        bodies: Mapping[str, Callable[[], str]] = {
            "list": lambda: self._operand(types.list_of(types.STRING), depth),
            "map": lambda: self._operand(types.map_of(types.STRING, types.INT), depth),
            "optional": lambda: self._operand(_OPTIONAL, depth),
            "body": lambda: self._rng.choice(
                (
                    "x != 'b'",
                    "x in ['ab', 'q']",
                    f"x.startsWith({self._of(types.STRING, 0)})",
                    f"size(x) > {self._of(types.INT, 0)}",
                )
            ),
            "string": lambda: self._of(types.STRING, depth),
            "int": lambda: self._of(types.INT, depth),
            "bool": lambda: self._of(types.BOOL, depth),
        }
        for word, body in bodies.items():
            while "{" + word + "}" in macro:
                macro = macro.replace("{" + word + "}", body(), 1)
        return macro.replace("{{", "{").replace("}}", "}")

    def _operand(self, type_: Type, depth: int) -> str:
        text = self._of(type_, depth)
        return text if _is_closed(text) else f"({text})"

    def _call(self, name: str, overload: Overload, result: Type, depth: int) -> str:
        bound = {overload.result: result} if overload.result.is_var else _bound(overload.result, result)
        args = [self._argument(overload, number, bound, depth) for number in range(len(overload.args))]
        if name == "_?_:_":
            return "{} ? {} : {}".format(*map(_closed, args))
        if name in ("_[_]", "_[?_]"):
            return f"{_closed(args[0])}{name[1:-2]}{args[1]}]"
        if name in ("-_", "!_"):
            return f"{name[0]}{_closed(args[0])}"
        if name == "@in":
            return f"{_closed(args[0])} in {_closed(args[1])}"
        if name.startswith("_"):
            return f"{_closed(args[0])} {name[1:-1]} {_closed(args[1])}"
        if overload.member:
            return f"{_closed(args[0])}.{name}({', '.join(args[1:])})"
        return f"{name}({', '.join(args)})"

    def _argument(self, overload: Overload, number: int, bound: dict[Type, Type], depth: int) -> str:
        type_ = overload.args[number]
        kind = "zone" if overload.id.endswith("_with_tz") else _KINDS.get(overload.id)
        is_text = type_ == types.STRING and (
            number == len(overload.args) - 1 or not overload.member or kind == "format"
        )
        if kind and is_text and (kind != "format" or number == 0) and self._rng.random() < 0.9:
            return repr(self._rng.choice(_TEXTS[kind])).replace("\\\\\\\\", "\\\\")
        if overload.id == "string_format" and number == 1:
            return f"[{', '.join(self._of(self._rng.choice(_RESULTS), 0) for _ in range(self._rng.randrange(4)))}]"
        return self._of(self._concrete(type_, bound), self._rng.randint(0, depth))

    def _concrete(self, type_: Type, bound: dict[Type, Type]) -> Type:
        if type_.is_var:
            if type_ not in bound:
                bound[type_] = self._rng.choice((types.INT, types.STRING, types.STRING, types.DOUBLE, types.BOOL))
            return bound[type_]
        return Type(type_.name, tuple(self._concrete(part, bound) for part in type_.params), type_.fields)

    def _misspelt(self, text: str) -> str:
        at = self._rng.randrange(len(text) + 1)
        way = self._rng.randrange(3)
        if way == 0:
            return text[:at] + text[at + 1 :]
        return text[:at] + self._rng.choice(_LETTERS) + text[at + (way - 1) :]


def _calls(result: Type) -> list[tuple[str, Overload]]:
    """The overloads whose result may be that."""
    return [
        (name, each)
        for name, overloads in functions().items()
        for each in overloads
        if name not in _UNDRAWN
        and (each.result.is_var or _bound(each.result, result) or each.result == result)
        and not any("authorization" in part.name for part in (*each.args, each.result))
    ]


def _bound(pattern: Type, type_: Type) -> dict[Type, Type]:
    """What the variables of a pattern stand for; nothing where it has none, or does not fit."""
    if pattern.name != type_.name or len(pattern.params) != len(type_.params):
        return {}
    return {one: other for one, other in zip(pattern.params, type_.params, strict=True) if one.is_var}


def _is_closed(text: str) -> bool:
    return text.replace("_", "").replace(".", "").isalnum()


def _closed(text: str) -> str:
    return text if _is_closed(text) else f"({text})"
