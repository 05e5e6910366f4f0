"""CEL: what expressions are worth, what is wrong with them, and what they may cost."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.cel import types
from mews.kube.cel.checker import check
from mews.kube.cel.costs import cost
from mews.kube.cel.evaluation import Program
from mews.kube.cel.expressions import compiled, program
from mews.kube.cel.parser import parse
from mews.kube.cel.signatures import AUTHORIZER, RESOURCE_CHECK
from mews.kube.cel.syntax import ExpressionSyntaxError, report
from mews.kube.cel.values import CelError, LazyMap, Listed, Receiver

_FIELDS = {"a": types.INT, "names": types.list_of(types.STRING), "sizes": types.map_of(types.STRING, types.INT)}
_SELF = {"self": types.struct("thing", _FIELDS)}
_VALUE = {"self": {"a": 2, "names": ["ab", "ac"], "sizes": {"q": 4}}}


def _worth(text: str) -> Any:
    tree = parse(text)
    checked = check(tree, _SELF)
    assert not checked.errors, report(text, checked.errors)
    return Program(tree).evaluate(_VALUE)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("self.a * 3 - 1", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("self.names.all(x, x.startsWith('a'))", True),
        ("self.names.exists(x, x == 'zz')", False),
        ("self.names.exists_one(x, x.endsWith('c'))", True),
        ("self.names.map(x, x + '!').join(',')", "ab!,ac!"),
        ("self.names.filter(x, x != 'ab')", ["ac"]),
        ("self.sizes.all(k, v, v > 3)", True),
        ("has(self.a) && !has(self.names) || true", True),
        ("false && 1 / 0 > 1", False),
        ("1 / 0 > 1 || true", True),
        ("self.?a.orValue(9)", 2),
        ("[1, 2, 3].map(x, x > 1, x * 2)", [4, 6]),
        ("duration('90m') > duration('1h')", True),
        ("timestamp('2024-02-29T12:00:00Z').getDayOfMonth()", 28),
        ("quantity('1Gi').compareTo(quantity('1024Mi'))", 0),
        ("cidr('10.0.0.0/8').containsIP('10.2.3.4')", True),
        ("url('https://h:80/p?q=1').getHost()", "h:80"),
        ("'%s is %d, %.2f'.format(['x', 3, 1.5])", "x is 3, 1.50"),
        ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
        ("'a-b-c'.split('-', 2)", ["a", "b-c"]),
        ("b'\\x41' == bytes('A')", True),
        ("type(self.a) == int", True),
        ("1 < 1.5 && dyn(1u) == 1", True),
        ("self.names.transformMap(i, x, x + string(i)) == {0: 'ab0', 1: 'ac1'}", True),
    ],
)
def test_an_expression_is_worth_what_the_language_says(text: str, value: Any) -> None:
    assert _worth(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("self.zz == 1", "ERROR: <input>:1:5: undefined field 'zz'\n | self.zz == 1\n | ....^"),
        ("has(self.zz)", "ERROR: <input>:1:4: undefined field 'zz'\n | has(self.zz)\n | ...^"),
        (
            "self.a + 'x'",
            "ERROR: <input>:1:8: found no matching overload for '_+_' applied to '(int, string)'\n"
            " | self.a + 'x'\n | .......^",
        ),
        ("foo(1)", "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(1)\n | ...^"),
        ("self.a.b", "ERROR: <input>:1:7: type 'int' does not support field selection\n | self.a.b\n | ......^"),
        ("'a'.matches('(')", "ERROR: <input>:1:13: invalid matches argument\n | 'a'.matches('(')\n | ............^"),
        ("self.a.all(x, true)", "expression of type 'int' cannot be range of a comprehension"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, error: str) -> None:
    assert error in report(text, check(parse(text), _SELF).errors)


@pytest.mark.parametrize("text", ["self.a ==", "(1", "1 +* 2", "'a", "has(1)", "[1].all(1, true)", "for", "a b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ExpressionSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.names[5]", "index out of bounds: 5"),
        ("self.sizes['zz']", "no such key: zz"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("dyn(self.a) + 'x'", "no such overload"),
        ("int('x')", "type conversion error from 'string' to 'int'"),
    ],
)
def test_what_cannot_be_evaluated_says_why(text: str, why: str) -> None:
    with pytest.raises(CelError, match=why.replace("(", r"\(")):
        _worth(text)


def test_costs_grow_with_what_the_expression_walks_through() -> None:
    def price(text: str, most: int) -> int:
        return cost(check(parse(text), _SELF), lambda path: most if path == ("self", "names") else 10)

    once, twice = "self.names.all(x, x == 'a')", "self.names.all(x, self.names.all(y, x == y))"
    assert price(once, 100) < price(once, 1000)
    assert price(twice, 1000) > 100 * price(once, 1000)


def test_a_run_that_takes_too_many_steps_is_ended() -> None:
    tree = parse("self.names.all(x, self.names.all(y, x == y || x != y))")
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        Program(tree).evaluate({"self": {"names": [str(number) for number in range(2000)]}})


OBJECT = {"spec": {"replicas": 3, "boxes": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}, "none": None}


def _dynamic(text: str, **names: Any) -> Any:
    """The value of an expression over an object of which no type is known."""
    assert not compiled(text, {"object": types.DYN, **dict.fromkeys(names, types.DYN)}, frozenset({"Object"})).error
    return program(text).evaluate({"object": OBJECT, **names})[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - -4", 11),
        ("7u + 1u == 8u", True),
        ("dyn(1) == 1.0 && 2 > 1.5", True),
        ("optional.none().optFlatMap(x, optional.of(1)).hasValue()", False),
        ("'a' + 'b' == 'ab'", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("object.spec.replicas > 2 ? 'many' : 'few'", "many"),
        ("has(object.spec.nope)", False),
        ("has(object.none.x)", False),
        ("has(object.spec.replicas.x)", False),
        ("object.spec.nope == 1 || true", True),
        ("false && object.spec.nope == 1", False),
        ("object.spec.boxes.all(b, b.name in ['a', 'b'])", True),
        ("object.spec.boxes.exists_one(b, b.image.endsWith(':1'))", True),
        ("object.spec.boxes.filter(b, b.name == 'a').map(b, b.image)", ["x:1"]),
        ("object.spec.boxes.map(b, b.name == 'b', b.image)", ["y"]),
        ("object.?spec.?nope.orValue(5)", 5),
        ("object.spec[?'replicas'].hasValue()", True),
        ("{?'a': object.?nope, 'b': dyn(1)}", {"b": 1}),
        ("optional.of(2).optMap(x, x * 2).value()", 4),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("r'\\d' + \"\\n\\u0041\"", "\\d\nA"),
        ("type('a') == string && type([]) != map", True),
        ("timestamp('2024-02-29T01:02:03Z') + duration('24h') == timestamp('2024-03-01T01:02:03Z')", True),
        ("string(duration('90m'))", "5400s"),
        ("'%s|%d|%.2f|%x'.format(['a', 1, 1.5, 255])", "a|1|1.50|ff"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("quantity('1Gi').add(quantity('1Mi')).isGreaterThan(quantity('1Gi'))", True),
        ("url('https://u.v:80/w?x=y').getQuery()['x'][0]", "y"),
        ("sets.equivalent([1, 1, 2], [2, 1])", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("Object{spec: Object.spec{replicas: 1, ?paused: object.?nope}}", {"spec": {"replicas": 1}}),
    ],
)
def test_an_expression_over_what_has_no_type_has_this_value(text: str, value: Any) -> None:
    assert _dynamic(text) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("object.spec.nope", "no such key: nope"),
        ("object.none.x", "no such key: x"),
        ("object.spec.replicas.x", "no such key: x"),
        ("object.spec.boxes.x", "unsupported index type 'string' in list"),
        (
            "'%d'.format([object.none])",
            "error during formatting: decimal clause can only be used on integers, was given null_type",
        ),
        ("object.spec.boxes[5]", "index out of bounds: 5"),
        ("1 / (object.spec.replicas - 3)", "division by zero"),
        ("object.spec.replicas + 'a'", "no such overload"),
        ("uint('x' + 'y')", "type conversion error from 'string' to 'uint'"),
        ("bool('x' + 'y')", "type conversion error from 'string' to 'bool'"),
        ("object.spec.nope || object.spec.other", "no such key: nope"),
    ],
)
def test_an_expression_over_what_has_no_type_fails_like_this(text: str, why: str) -> None:
    with pytest.raises(CelError) as caught:
        _dynamic(text)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "'%s %d'.format(['a', 'b'])",
            "1:22: error during formatting: decimal clause can only be used on integers, was",
        ),
        ("'%s %s'.format(['a'])", "ERROR: <input>:1:15: index 1 out of range"),
        (
            "'%s'.format(['a', 1])",
            "ERROR: <input>:1:12: too many arguments supplied to string.format (expected 1, got 2)",
        ),
        ("'%q'.format(['a'])", 'could not parse formatting clause: unrecognized formatting clause "q"'),
        ("foo == 1", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^"),
        ("object.x(", "ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting"),
        ("has(object)", "ERROR: <input>:1:5: invalid argument to has() macro"),
        ("'a'.nope()", "ERROR: <input>:1:9: undeclared reference to 'nope' (in container '')"),
        ("Object{a: 1}", "ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')"),
        ("cel.bind(n, 1, n)", "ERROR: <input>:1:1: undeclared reference to 'cel' (in container '')"),
        ("[1].reverse()", "ERROR: <input>:1:12: undeclared reference to 'reverse' (in container '')"),
        ("1 == authorizer.group('').resource('pods')", "found no matching overload for '_==_'"),
        ("authorizer.x", "unexpected failed resolution of 'kubernetes.authorization.Authorizer'"),
        ("authorizer.path('/x').allowed()", "found no matching overload for 'allowed'"),
    ],
)
def test_a_error_is_shown_where_it_is(text: str, error: str) -> None:
    assert error in compiled(text, {"object": types.DYN, "authorizer": AUTHORIZER}).error


@pytest.mark.parametrize("text", ["(" * 5000 + "1" + ")" * 5000, "1" + " + 1" * 5000])
def test_an_expression_that_is_too_deep_is_refused_not_crashed(text: str) -> None:
    assert "recursion limit" in compiled(text, {}).error


def _authorizer(asked: list[str]) -> Receiver:
    def check(verb: str) -> Receiver:
        asked.append(verb)
        return Receiver("kubernetes.authorization.Decision", {"allowed": lambda: verb == "get"})

    resource = Receiver("kubernetes.authorization.ResourceCheck", {"check": check})
    group = Receiver("kubernetes.authorization.GroupCheck", {"resource": lambda _name: resource})
    return Receiver(AUTHORIZER.name, {"group": lambda _name: group}, {"requestResource": resource})


def test_what_a_user_may_do_is_asked_of_the_authorizer() -> None:
    asked: list[str] = []
    text = "authorizer.group('').resource('pods').check('get').allowed() && "
    text += "!authorizer.requestResource.check('delete').allowed()"
    assert not compiled(text, {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}).error
    assert program(text).evaluate({"authorizer": _authorizer(asked)})[0] is True
    assert asked == ["get", "delete"]


def test_no_expression_asks_the_authorizer_three_times() -> None:
    text = "['a', 'b', 'c'].all(verb, authorizer.requestResource.check(verb).allowed() || true)"
    with pytest.raises(CelError, match="actual cost limit exceeded"):
        program(text).evaluate({"authorizer": _authorizer([])})


def test_a_lazy_map_makes_a_value_once_and_only_when_it_is_asked_for() -> None:
    made: list[str] = []
    known = LazyMap({"a": lambda: made.append("a") or 1, "b": lambda: made.append("b") or 2})  # type: ignore[func-returns-value]
    assert program("variables.a + variables.a").evaluate({"variables": known})[0] == 2
    assert made == ["a"]


def test_lists_that_are_sets_are_united_and_lists_by_key_are_merged_in_place() -> None:
    names = {"set": Listed(["a", "b"]), "map": Listed([{"n": 1, "v": 1}, {"n": 2, "v": 1}], ("n",))}
    united = program("set + ['b', 'c']").evaluate(names)[0]
    assert united == ["a", "b", "c"]
    assert program("all == ['c', 'a', 'b']").evaluate({"all": united})[0] is True
    merged = program("map + [{'n': 1, 'v': 9}, {'n': 3, 'v': 3}]").evaluate(names)[0]
    assert merged == [{"n": 1, "v": 9}, {"n": 2, "v": 1}, {"n": 3, "v": 3}]
    assert (type(merged), merged.keys) == (Listed, ("n",))


def test_a_compiled_expression_has_the_type_of_its_value_and_any_where_it_cannot_be_read() -> None:
    assert compiled("1 + 1", {}).type == types.INT
    assert compiled("1 +", {}).type == types.DYN
    assert program("type(authorizer)").evaluate({"authorizer": _authorizer([])})[0].name == AUTHORIZER.name


_BEGINNINGS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("", [f"1:0: Syntax error: mismatched input '<EOF>' expecting {_BEGINNINGS}"]),
        ("a b c", ["1:3: Syntax error: mismatched input 'b' expecting <EOF>"]),
        ("a)", ["1:2: Syntax error: extraneous input ')' expecting <EOF>"]),
        ("&& a", [f"1:1: Syntax error: extraneous input '&&' expecting {_BEGINNINGS}"]),
        ("../x", ["1:2: Syntax error: no viable alternative at input '..'"]),
        ("a ? b", ["1:6: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        ("[1,", ["1:4: Syntax error: missing ']' at '<EOF>'"]),
        (
            "'x",
            [
                "1:1: Syntax error: token recognition error at: ''x'",
                f"1:3: Syntax error: mismatched input '<EOF>' expecting {_BEGINNINGS}",
            ],
        ),
    ],
)
def test_what_cannot_be_read_is_said_in_the_words_of_antlr(source: str, texts: list[str]) -> None:
    from mews.kube.cel.parser import parse
    from mews.kube.cel.syntax import ExpressionSyntaxError, report

    with pytest.raises(ExpressionSyntaxError) as refused:
        parse(source)
    lines = [line for line in report(source, refused.value.errors).splitlines() if line.startswith("ERROR")]
    assert lines == [f"ERROR: <input>:{text}" for text in texts]
