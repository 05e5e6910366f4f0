"""What `mews conform` does besides judging a chassis: ``--explain``, ``--list``, ``--self-test``."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from mews.harness.errors import BadInputError


class ConformAsides(Struct, frozen=True):
    """The options that judge no chassis of the user's; ``explain`` names a clause."""

    explain: str | None = None
    list_clauses: bool = False
    self_test: bool = False

    def given(self) -> Mapping[str, object]:
        """Option -> whether it is given."""
        return {
            f"--explain {self.explain}": self.explain is not None,
            "--list": self.list_clauses,
            "--self-test": self.self_test,
        }


def run_aside(
    asides: ConformAsides, url: str | None, dialect: str, profile: str, json: str | None, *, changes: bool
) -> int:
    """Do what the first of them asks for.

    Raises BadInputError, also where a URL is given, or neither.
    """
    option = next((option for option, given in asides.given().items() if given), None)
    if option is None:
        raise BadInputError("URL: missing; give a chassis' URL, --restore, --explain, --list or --self-test")
    if url is not None:
        raise BadInputError(f"{option} {url}: only one of the two: {option.split()[0]} judges nothing")
    if asides.explain is not None:
        from mews.harness.commands.explain_clause import explain_clause

        return explain_clause(asides.explain, dialect)
    if asides.list_clauses:
        from mews.harness.commands.list_clauses import list_clauses

        return list_clauses(dialect, profile)
    from mews.harness.commands.self_test import self_test

    return self_test((dialect,), changes=changes, json=json)
