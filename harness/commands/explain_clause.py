"""``mews conform --explain``."""

from __future__ import annotations

from mews.dialects import OURS
from mews.harness import terminal
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.explain import explanation, find_clause


def explain_clause(name: str, dialect: str) -> int:
    """Print the text and the source of a clause, of that dialect or of ours.

    Raises BadInputError.
    """
    dialects = dict.fromkeys((dialect, *OURS))
    known = [(each, clause) for each in dialects for clause in clauses_of(each).clauses]
    found, clause = find_clause(name, known)
    terminal.out(explanation(clause, found))
    return 0
