import re

import pytest

from mews.kube.api.selectors import (
    expression_holds,
    field_requirements,
    label_selector,
    match_expressions,
)

LABELS = {"app": "trainer", "tier": "gpu", "rank": "3"}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("app=trainer", True),
        ("app==other", False),
        ("app!=other", True),
        ("absent!=x", True),
        ("app in (a, trainer),tier", True),
        ("app notin (trainer)", False),
        ("absent notin (x)", True),
        ("!absent", True),
        ("! app", False),
        ("rank>2", True),
        ("rank<3", False),
        ("app>2", False),
        ("app=", False),
    ],
)
def test_label_selectors_select_as_in_kubernetes(selector: str, selected: bool) -> None:
    assert label_selector(selector)(LABELS) is selected


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("in (x)", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a in x", "unable to parse requirement: found 'x' expected: '('"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a>b", "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value "
         "must be an integer"),
    ],
)  # fmt: skip
def test_a_label_selector_that_cannot_be_read_is_refused_as_upstream_does(selector: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        label_selector(selector)


def test_field_selectors_give_path_sense_and_value() -> None:
    assert field_requirements("status.phase!=Failed,spec.nodeName=") == [
        ("status.phase", False, "Failed"),
        ("spec.nodeName", True, ""),
    ]
    with pytest.raises(ValueError, match="invalid selector"):
        field_requirements("status.phase")


def test_selectors_of_objects_join_labels_and_expressions() -> None:
    selector = {
        "matchLabels": {"app": "trainer"},
        "matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["2"]}],
    }
    assert match_expressions(selector, LABELS)
    assert not match_expressions(selector, {**LABELS, "rank": "2"})
    assert match_expressions({}, {})


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed: In, NotIn"):
        expression_holds({"key": "a", "operator": "Like"}, LABELS)
