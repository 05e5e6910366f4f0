"""Finds an order of concurrent calls that a sequential model explains, or the first answer that none explains.

After Wing and Gong, "Testing and verifying concurrent objects" (1993): of the calls that had begun before the earliest
answer still to be explained each is tried as the next. States that were tried with the same calls behind them are not
tried again (Lowe, "Testing for linearizability", 2017). A history is linearizable where each device's part is (Herlihy
and Wing, 1990), so devices are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.harness.linearizability.lookup import UNKNOWN_END_S, LookupAnswer, LookupCall, LookupKind, outcomes


class NotLinearizable(Struct, frozen=True):
    """``call`` is the first whose answer no order of the calls explains; ``after``: the last answered before it began,
    None where there is none."""

    call: LookupCall
    after: LookupCall | None

    def __str__(self) -> str:
        came = f"; it came after {self.after}" if self.after is not None else ""
        return f"no order of the requests explains {self.call}{came}"


def not_linearizable(calls: Iterable[LookupCall], start: Mapping[str, str | None]) -> list[NotLinearizable]:
    """Return the first wrong answer of each device that has one, by device. ``start``: device -> port before the first
    call; one that is not in it may be anywhere."""
    of: dict[str, list[LookupCall]] = {}
    for call in calls:
        of.setdefault(call.device, []).append(call)
    found = (_first_wrong(of[device], _starts(of[device], device, start)) for device in sorted(of))
    return [wrong for wrong in found if wrong is not None]


def _starts(calls: Sequence[LookupCall], device: str, start: Mapping[str, str | None]) -> list[str | None]:
    if device in start:
        return [start[device]]
    named = (call.port for call in calls if call.kind is not LookupKind.DETACH)
    return list(dict.fromkeys((None, *named)))


def _first_wrong(calls: Sequence[LookupCall], starts: Sequence[str | None]) -> NotLinearizable | None:
    if _explained(calls, starts):
        return None
    answered = sorted((call for call in calls if call.ended_s < UNKNOWN_END_S), key=lambda call: call.ended_s)
    low, high = 0, len(answered) - 1  # Once an answer is wrong, no later one makes it right.
    while low < high:
        middle = (low + high) // 2
        if _explained(_until(calls, answered[middle].ended_s), starts):
            low = middle + 1
        else:
            high = middle
    wrong = answered[low]
    before = [call for call in answered if call.ended_s < wrong.begun_s]
    return NotLinearizable(wrong, before[-1] if before else None)


def _until(calls: Sequence[LookupCall], t: float) -> list[LookupCall]:
    """Return what had begun by then; what was not answered by then may still have any answer."""
    begun = (call for call in calls if call.begun_s <= t)
    return [
        call if call.ended_s <= t else replace(call, ended_s=UNKNOWN_END_S, answer=LookupAnswer.UNKNOWN)
        for call in begun
    ]


def _explained(calls: Sequence[LookupCall], starts: Sequence[str | None]) -> bool:
    ordered = sorted(calls, key=lambda call: (call.begun_s, call.number))
    answered = sum(1 << index for index, call in enumerate(ordered) if call.ended_s < UNKNOWN_END_S)
    tried: set[tuple[int, str | None]] = set()
    queue: list[tuple[int, str | None]] = [(0, port) for port in starts]
    while queue:
        done, port = queue.pop()
        if done & answered == answered:
            return True
        if (done, port) in tried:
            continue
        tried.add((done, port))
        limit_s = min(call.ended_s for index, call in enumerate(ordered) if not done >> index & 1)
        for index, call in enumerate(ordered):
            if call.begun_s > limit_s:
                break
            if not done >> index & 1:
                queue += [(done | 1 << index, after) for after in outcomes(call, port)]
    return False
