"""The first change of a run: one idle device is moved and put back before any other is touched."""

from __future__ import annotations

import time
from collections.abc import Callable

from mews.harness.conformance.bench import TRIES, ClauseContext
from mews.harness.conformance.errors import (
    ListingUnavailableError,
    MalformedError,
    NotJudgedError,
    OutOfTimeError,
    UnmetClauseError,
)
from mews.harness.conformance.table import port_text

MOVES = 26
"""So many moves a run makes of a chassis that keeps the contract."""
EFFECTS = ("attach", "detach", "reply", "truth-attach", "truth-detach")
"""Topics that say nothing of their own where moves are refused for another reason."""
REFUSED_KINDS = "content-types-refused"
"""Among the bench's facts: the content types in which no move was accepted, where another one works."""
FIRST_MOVES = "first-moves"
"""Among the bench's facts: the exchanges of the first moves, by what they asked for."""
FREE_DETACH, FIRST_ATTACH, FIRST_DETACH = "a detach of a free device", "an attach", "a detach"


def round_trip(bench: ClauseContext, learned: Callable[[str], None] = lambda kind: None) -> None:
    """Move the first device and put it back; where it does not go back, no other is touched (``bench.halted``).

    A request that is refused is made in the dialect's other content types, too; ``learned`` is told of the one that
    works. Where moves are slow against the time left, what is tried several times is tried once.
    """
    device = bench.devices[0]
    try:
        home = bench.read().port(device)
        if home is None and not _answers(bench, device):
            bench.halted = f"a detach of device {device}, which is free, has no answer to rely on: nothing is attached"
            return
        began_s, mark, first = time.monotonic(), bench.ledger.mark(), len(bench.client.log)
        _there_and_back(bench, device, home, learned)
        took_s = (time.monotonic() - began_s) / 2
        bench.halted = _no_moves(bench, mark, first)
        if bench.halted:
            return
        if bench.read().port(device) != home:
            bench.halted = f"device {device} does not go back to {port_text(home)}: no other one is touched"
        elif took_s * MOVES > bench.client.left_s():
            bench.slow = f"a move takes {took_s:.1f} s: what is tried several times elsewhere is tried once"
    except OutOfTimeError:
        return  # nothing more is begun anyway
    except (MalformedError, ListingUnavailableError, NotJudgedError) as error:
        bench.halted = f"one device could not be moved and put back: {error}"


def _no_moves(bench: ClauseContext, mark: dict[str, int], first: int) -> str:
    """Return why no move is of use: all were answered with 401, 403 or 5xx, or not at all, which is one finding, and
    not that nothing moves."""
    moves = [exchange for exchange in bench.client.log[first:] if exchange.method not in ("GET", "HEAD")]
    statuses = {exchange.status for exchange in moves}
    if not moves:
        return ""
    last = moves[-1]
    if statuses <= {401, 403}:
        bench.ledger.rewind(mark, *EFFECTS)
        bench.note("access", f"{last.method} {last.path}: HTTP {last.status}: no device can be moved")
        return "moves ask for credentials"
    if all(status is None or status >= 500 for status in statuses):
        bench.ledger.rewind(mark, *(topic for topic in EFFECTS if topic != "reply"))
        return "no move is answered"
    return ""


def _answers(bench: ClauseContext, device: str) -> bool:
    """Return whether a detach of a free device, which changes nothing, is answered at all: else an attach may be for
    good."""
    for _ in range(TRIES):
        try:
            bench.refused(device, None, lambda: bench.face.detach(device), "detach of a free device", judged=False)
        except OutOfTimeError:
            raise
        except (UnmetClauseError, NotJudgedError):
            continue
        bench.facts.setdefault(FIRST_MOVES, {})[FREE_DETACH] = bench.last_write()
        return True
    return False


def _there_and_back(bench: ClauseContext, device: str, home: str | None, learned: Callable[[str], None]) -> None:
    kinds = getattr(bench.face, "content_types", ())
    away = None if home is not None else bench.ports[0]
    refused: list[str] = []
    for kind in kinds or ("",):
        if kind:
            bench.face.content_type = kind
        mark = bench.ledger.mark()
        bench.forget_failures()
        if bench.move(device, away):
            if refused:
                bench.facts[REFUSED_KINDS] = refused
            learned(kind)
            made = bench.facts.setdefault(FIRST_MOVES, {})
            made[FIRST_DETACH if away is None else FIRST_ATTACH] = bench.last_write()
            if bench.move(device, home):
                made[FIRST_DETACH if home is None else FIRST_ATTACH] = bench.last_write()
            return
        refused.append(kind)
        if kind != (kinds or ("",))[-1]:
            bench.ledger.rewind(mark, *EFFECTS, "server-errors")
    if kinds:
        bench.face.content_type = kinds[0]
