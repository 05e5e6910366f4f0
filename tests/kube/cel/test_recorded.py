"""Ours makes of an expression what Kubernetes' CEL makes of it: the type or the report, the estimated and the actual
cost, the value or the error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.cel.answers import Answer, answer
from tests.kube.cel.recorded import expressions, recorded

PARTS = 20
KNOWN = {
    "{[1]: 1}": "a list is no key here",
    "type(int)": "the type of a type's name is found at run time, and costs a step",
    "'%e'.format([double('Infinity')])": "golang.org/x/text pads the sign",
    "'%f'.format(['NaN'])": "a text that stands for a number is none here",
    "'%s'.format([['a\"b', b'x', true, null, 1u, duration('1h'), timestamp(0), int, [1], {'k': 1.5}]])": (
        "the type's name keeps the list from being a constant"
    ),
    "(([cidr('fe80::*/10'), cidr('fe80::/10'), cidr('fe80::/10')])[0]).prefixLength()": "an IPv6 address is just wrong",
    "((optional.of(quantity('1Gi'))).optMap(x, x)).value()": "an optional quantity has a value here",
    "[object.spec.boxes, object.spec.labels].sum()": "the second member is what cannot be added",
}
"""Expression -> why ours answers otherwise."""


def normal(found: Answer) -> Answer:
    """An answer without what is not compared: an error's cost, the least estimate, the order of a map, whether a
    constant was found wrong before or as the expression ran, and what follows the first error of a text that cannot be
    read, as upstream then looks for a place to go on from."""
    found = dict(found)
    if "estimate" in found and isinstance(found["estimate"], list):
        found["estimate"] = found["estimate"][1]
    if "error" in found:
        found.pop("cost", None)
        found["error"] = found["error"].removeprefix("program: ")
    if any(words in found.get("issues", "") for words in ("Syntax error", "unable to unescape")):
        found["issues"] = found["issues"].split("\n")[0]
    return {key: in_order(value) for key, value in found.items()}


def in_order(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if value[:1] == ["map"]:
        return ["map", sorted(map(in_order, value[1]), key=json.dumps)]
    return [in_order(item) for item in value]


@pytest.mark.parametrize("part", range(PARTS))
def test_an_expression_is_what_kubernetes_makes_of_it(part: int) -> None:
    assert dict(differences(part)) == {}


def differences(part: int) -> Iterator[tuple[str, tuple[Answer, Answer]]]:
    """Expression -> what differs there and here, of every so manieth."""
    for text, found in list(recorded().items())[part::PARTS]:
        there, here = normal(found), normal(answer(text))
        if text not in KNOWN and there != here:
            keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
            yield text, ({key: there.get(key) for key in keys}, {key: here.get(key) for key in keys})


@pytest.mark.parametrize("text", KNOWN)
def test_what_is_known_to_differ_does(text: str) -> None:
    assert normal(recorded()[text]) != normal(answer(text))


def test_the_record_is_of_the_expressions_that_are_drawn_and_listed_now() -> None:
    asked = set(expressions())
    assert recorded().keys() <= asked
    assert len(recorded()) > 0.99 * len(asked)


def test_the_record_has_every_sort_of_answer() -> None:
    found = [next(key for key in ("issues", "error", "value") if key in each) for each in recorded().values()]
    assert min(found.count(sort) for sort in ("issues", "error", "value")) > 300
