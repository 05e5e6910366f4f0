"""One rule of the contract, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.errors import NotJudgedError, UnmetClauseError

MUST, SHOULD, MAY = "must", "should", "may"
GRADES = (MUST, SHOULD, MAY)


class Clause(Struct, frozen=True):
    """A rule: ``check`` returns where it holds, raises UnmetClauseError where not and NotJudgedError where that cannot
    be told.

    ``id`` is ``<section of the contract>.<word>``; ``changes``: judging it moves devices; ``assumed``: inferred, not
    verified on a real box (contract mark I); ``last``: it judges what was noticed while all others were judged.
    ``needs``: clauses without which this one cannot be judged: where one of them does not hold, that is the finding,
    and this one is skipped. ``grade``: whether a chassis must, should or may keep it, unless a profile says otherwise.
    """

    id: str
    title: str
    reference: str
    check: Callable[[ClauseContext], None]
    changes: bool = False
    assumed: bool = False
    last: bool = False
    needs: tuple[str, ...] = ()
    grade: str = MUST


def resting_on(needed: Sequence[str], clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Return the clauses, each of them in need of these besides."""
    return tuple(replace(clause, needs=(*needed, *clause.needs)) for clause in clauses)


def moves_resting_on(needed: Sequence[str], clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """Return the clauses, those that move devices in need of these besides: what moves are addressed by."""
    return tuple(replace(clause, needs=(*needed, *clause.needs)) if clause.changes else clause for clause in clauses)


def noticed(*topics: str, kind: str = "") -> Callable[[ClauseContext], None]:
    """Return a check that nothing of these topics was noticed; with ``kind``, at least one such operation must have
    been."""

    def check(bench: ClauseContext) -> None:
        if kind == "read":
            for _ in range(2):
                bench.read()
        notes = [note for topic in topics for note in bench.ledger.of(topic)]
        if notes:
            more = f" (and {len(notes) - 1} more)" if len(notes) > 1 else ""
            raise UnmetClauseError(f"{notes[0].text}{more}")
        if kind and not bench.ledger.done[kind]:
            raise NotJudgedError(f"no {kind} was made")

    return check


def unseen(why: str) -> Callable[[ClauseContext], None]:
    """Return the check of a rule that cannot be seen on the chassis' own wire."""

    def check(bench: ClauseContext) -> None:
        raise NotJudgedError(why)

    return check


def must(holds: object, text: str) -> None:
    """Raise UnmetClauseError with that text unless it holds."""
    if not holds:
        raise UnmetClauseError(text)
