"""``mews conform --list``."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness import terminal
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.profiles import load_profile
from mews.harness.conformance.suite import in_order


def list_clauses(dialect: str, profile: str) -> int:
    """Print the clauses of a dialect in the order in which they are judged: grade, what they need, source.

    Raises BadInputError.
    """
    for line in lines(dialect, profile):
        terminal.out(f"{line}\n")
    return 0


def lines(dialect: str, profile: str) -> Iterator[str]:
    """Yield a line for each clause."""
    judged = clauses_of(dialect)
    asked = load_profile(profile, dialect, judged.clauses, judged.gates)
    for clause in in_order(asked.clauses):
        how = "moves" if clause.changes else "reads"
        assumed = ", assumed" if clause.assumed else ""
        grade = "off" if clause.id in asked.off else asked.grade(clause)
        yield f"{clause.id:26} {grade:6} {how}  {clause.title} [{clause.reference}{assumed}]"
