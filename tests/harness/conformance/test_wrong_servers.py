"""Servers that are wrong on purpose are told by exactly the clauses that they break."""

from __future__ import annotations

import pytest

from mews.dialects import OURS
from mews.harness.conformance.dialects.registry import clauses_of
from tests.harness.conformance.judging import broken, judged
from tests.harness.conformance.wrong import wrong_server

pytestmark = pytest.mark.wall


@pytest.mark.parametrize(
    ("how", "dialect", "expected"),
    [
        ("", "h3api", set()),
        ("", "resource-pool", set()),
        ("any-port", "h3api", {"2.unknown-port"}),
        ("any-port", "resource-pool", {"3.unknown-port"}),
        ("loses", "h3api", {"2.lost"}),
        ("loses", "resource-pool", {"3.lost"}),
        ("lies", "h3api", {"2.attach"}),
        ("lies", "resource-pool", {"3.attach"}),
    ],
)
def test_a_wrong_server_breaks_exactly_its_clauses(how, dialect, expected):
    with wrong_server(how) as (url, _):
        results = judged(url, dialect)
    assert broken(results) == expected, {clause: result.reason for clause, result in results.items()}
    for clause in expected:
        assert results[clause].reason
        assert results[clause].exchanges
        assert "chassis.md" in results[clause].clause.reference


@pytest.mark.parametrize("dialect", sorted(OURS))
def test_every_clause_has_one_name_and_a_reference_into_the_contract(dialect):
    clauses = clauses_of(dialect).clauses
    section = {"h3api": "2", "resource-pool": "3", "redfish": "4"}[dialect]
    assert len({clause.id for clause in clauses}) == len(clauses)
    for clause in clauses:
        assert clause.id.startswith(f"{section}.")
        assert clause.reference.startswith("chassis.md ")
        assert clause.title
