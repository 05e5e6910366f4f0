"""What `mews conform` judges each dialect with, by the dialect's name."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from mews.dialects import part_of
from mews.harness.conformance.clause import Clause
from mews.harness.conformance.client import Client
from mews.harness.conformance.table import TableClient
from mews.harness.errors import BadInputError
from mews.registry import CannotLoadError, NotRegisteredError


class DialectClauses(Struct, frozen=True):
    """What to judge a dialect with (``Dialect.clauses``): ``face(client)`` is the way to the table, and ``file`` the
    module that its clauses are in.

    ``login``: it asks for credentials. ``lists_ports``: its listing names the host ports, also those without a device.
    ``home``: a path that any such chassis answers, with one of the member names ``words`` somewhere, or with nothing;
    by it one sees that something is no such chassis. ``codes``: how its error codes begin, by which it is known behind
    a 401. ``gates``: clauses that are judged whatever a profile asks for.
    """

    face: Callable[[Client], TableClient]
    clauses: tuple[Clause, ...]
    file: str = __file__
    login: bool = False
    lists_ports: bool = True
    home: str = ""
    words: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()


def clauses_of(dialect: str) -> DialectClauses:
    """Return what to judge that dialect with.

    Raises BadInputError for one that there is not, or that has no clauses.
    """
    try:
        found = part_of(dialect, "clauses")
    except (NotRegisteredError, CannotLoadError) as error:
        raise BadInputError(f"--dialect {dialect}: {error}") from error
    if not isinstance(found, DialectClauses):
        answered = "has no clauses" if found is None else f"its clauses are a {type(found).__name__}"
        raise BadInputError(
            f"--dialect {dialect}: {answered}; Dialect.clauses must be a DialectClauses to be judged by"
        )
    return found
