"""CEL: values, errors and what is found before an expression is evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from mews.kube.cel.checking import check
from mews.kube.cel.evaluation import compiled
from mews.kube.cel.values import CelError

OBJECT = {"spec": {"replicas": 3, "boxes": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]}, "none": None}


def value(source: str) -> Any:
    checked = check(source, {"object": "dyn"})
    assert checked.tree is not None, checked.faults
    return compiled(checked.tree)({"object": OBJECT})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 - -4", 11),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7u + 1u == 8u", True),
        ("1 == 1.0 && 2 > 1.5", True),
        ("'a' + 'b' == 'ab'", True),
        ("[1, 2] + [3]", [1, 2, 3]),
        ("object.spec.replicas > 2 ? 'many' : 'few'", "many"),
        ("has(object.spec.nope)", False),
        ("has(object.none.x)", False),
        ("object.spec.nope == 1 || true", True),
        ("false && object.spec.nope == 1", False),
        ("object.spec.boxes.all(b, b.name in ['a', 'b'])", True),
        ("object.spec.boxes.exists_one(b, b.image.endsWith(':1'))", True),
        ("object.spec.boxes.filter(b, b.name == 'a').map(b, b.image)", ["x:1"]),
        ("object.spec.boxes.map(b, b.name == 'b', b.image)", ["y"]),
        ("object.?spec.?nope.orValue(5)", 5),
        ("object.spec[?'replicas'].hasValue()", True),
        ("{?'a': object.?nope, 'b': 1}", {"b": 1}),
        ("optional.of(2).optMap(x, x * 2).value()", 4),
        ("cel.bind(n, size(object.spec.boxes), n * n)", 4),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("r'\\d' + \"\\n\\u0041\"", "\\d\nA"),
        ("type('a') == string && type([]) != map", True),
        ("timestamp('2024-02-29T01:02:03Z') + duration('24h') == timestamp('2024-03-01T01:02:03Z')", True),
        ("string(duration('90m'))", "5400s"),
        ("'%s|%d|%.2f|%x'.format(['a', 1, 1.5, 255])", "a|1|1.50|ff"),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("quantity('1Gi').add(quantity('1Mi')).isGreaterThan(quantity('1Gi'))", True),
        ("cidr('10.0.0.0/8').containsIP('10.1.2.3')", True),
        ("url('https://u.v:80/w?x=y').getQuery()['x'][0]", "y"),
        ("sets.equivalent([1, 1, 2], [2, 1])", True),
        ("semver('1.10.0').isGreaterThan(semver('1.9.0'))", True),
        ("Object{spec: Object.spec{replicas: 1}}", {"spec": {"replicas": 1}}),
    ],
)
def test_an_expression_has_this_value(source: str, expected: Any) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("object.spec.nope", "no such key: nope"),
        ("object.spec.boxes[5]", "index out of bounds: 5"),
        ("1 / (object.spec.replicas - 3)", "division by zero"),
        ("object.spec.replicas + 'a'", "no such overload"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("int('x' + 'y')", "type conversion error from 'string' to 'int'"),
        ("object.spec.nope || object.spec.other", "no such key: nope"),
    ],
)
def test_an_expression_fails_like_this(source: str, text: str) -> None:
    with pytest.raises(CelError) as caught:
        value(source)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("source", "report"),
    [
        ("foo == 1", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^"),
        (
            "1 + 'a'",
            "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n | 1 + 'a'\n | ..^",
        ),
        ("object.x(", "ERROR: <input>:1:10: Syntax error: mismatched input '<EOF>' expecting"),
        ("has(object)", "ERROR: <input>:1:5: invalid argument to has() macro"),
        ("'a'.nope()", "ERROR: <input>:1:9: undeclared reference to 'nope' (in container '')"),
    ],
)
def test_a_fault_is_shown_where_it_is(source: str, report: str) -> None:
    assert check(source, {"object": "dyn"}).report(source).startswith(report)


def test_an_expression_without_end_in_depth_is_refused_not_crashed() -> None:
    deep = "(" * 5000 + "1" + ")" * 5000
    assert "recursion limit" in check(deep, {}).report(deep)
