"""CEL: what expressions are worth, what is wrong with them, and what they may cost."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.cel import types
from mews.kube.cel.checker import check
from mews.kube.cel.costs import cost
from mews.kube.cel.evaluation import Program
from mews.kube.cel.parser import parse
from mews.kube.cel.syntax import SyntaxFault, report
from mews.kube.cel.values import CelError

_FIELDS = {"a": types.INT, "names": types.list_of(types.STRING), "sizes": types.map_of(types.STRING, types.INT)}
_SELF = {"self": types.struct("thing", _FIELDS)}
_VALUE = {"self": {"a": 2, "names": ["ab", "ac"], "sizes": {"q": 4}}}


def _worth(text: str) -> Any:
    tree = parse(text)
    checked = check(tree, _SELF)
    assert not checked.faults, report(text, checked.faults)
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
    ("text", "fault"),
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
def test_what_is_wrong_is_told_with_its_place(text: str, fault: str) -> None:
    assert fault in report(text, check(parse(text), _SELF).faults)


@pytest.mark.parametrize("text", ["self.a ==", "(1", "1 +* 2", "'a", "has(1)", "[1].all(1, true)", "for", "a b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(SyntaxFault):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("self.names[5]", "index out of bounds: 5"),
        ("self.sizes['zz']", "no such key: zz"),
        ("1 / 0", "division by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("dyn(self.a) + 'x'", "no such overload"),
        ("int('x')", 'strconv.ParseInt: parsing "x": invalid syntax'),
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
