"""A device in a chassis' lookup table, as a sequential model: which answers are right in which state. Pure."""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct

UNKNOWN_END_S = math.inf


class LookupKind(StrEnum):
    """What a client asks of one device."""

    ATTACH = "attach"
    DETACH = "detach"
    READ = "read"


class LookupAnswer(StrEnum):
    """How a chassis answered an operation. An answer that was lost, or says nothing of what was done, is unknown."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class LookupCall(Struct, frozen=True):
    """One request about one device, from ``begun_s`` to ``ended_s`` (infinite where no answer came). ``port``: where it
    is to be attached, or where a read showed it (None: on none). ``number`` names the request."""

    number: int
    client: str
    device: str
    kind: LookupKind
    begun_s: float
    ended_s: float
    port: str | None = None
    answer: LookupAnswer = LookupAnswer.DONE

    def __str__(self) -> str:
        place = "" if self.kind is LookupKind.DETACH else f" {self.port or 'no port'}"
        span = f"{self.begun_s:.3f}-{self.ended_s:.3f} s"
        return f"request {self.number} ({span}, {self.client}): {self.kind} {self.device}{place}: {self.answer}"


def outcomes(call: LookupCall, port: str | None) -> tuple[str | None, ...]:
    """Return the ports on which the device may be after that call, which found it on ``port``; none: its answer is
    wrong.

    A device that is attached is not attached again: the chassis refuses that (contract chassis.md 3). A detach of one
    that is free is done.
    """
    match call.kind, call.answer:
        case LookupKind.READ, LookupAnswer.DONE:
            return (port,) if port == call.port else ()
        case LookupKind.ATTACH, LookupAnswer.DONE:
            return (call.port,) if port is None else ()
        case LookupKind.ATTACH, LookupAnswer.REFUSED:
            return (port,) if port is not None else ()
        case LookupKind.DETACH, LookupAnswer.DONE:
            return (None,)
        case LookupKind.ATTACH, LookupAnswer.UNKNOWN if port is None:
            return (port, call.port)
        case LookupKind.DETACH, LookupAnswer.UNKNOWN:
            return tuple(dict.fromkeys((port, None)))
    return (port,)
