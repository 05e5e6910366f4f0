"""Layouts as they are applied: procedures that wait for each other, and how all of them end (contract cohdi.md 2.5).

IN_PROGRESS -> COMPLETED | FAILED | SUSPENDED
IN_PROGRESS -> CANCELING -> CANCELED, then rollback: IN_PROGRESS -> COMPLETED | FAILED | SUSPENDED
SUSPENDED   -> IN_PROGRESS (resume) | FAILED (cancel)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from mews.emulator.chassis.operation import Operation
from mews.emulator.dialects.cdim.procedures import CONNECT, DISCONNECT, Procedure
from mews.emulator.dialects.stamps import utc_text

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
SUSPENDED, CANCELING, CANCELED, SKIPPED = "SUSPENDED", "CANCELING", "CANCELED", "SKIPPED"
STATES = (IN_PROGRESS, COMPLETED, FAILED, CANCELING, CANCELED, SUSPENDED)
WAITING = ""
FIELDS = ("procedures", "applyResult", "rollbackProcedures", "rollbackResult", "resumeProcedures", "resumeResult")
"""Members that a list has only where it is asked for them."""
API = "http://cdim/api/v1"
"""Where the hardware is controlled, as the documents' examples have it."""


class ProcedureStep(Struct):
    """One procedure on its way. ``status``: WAITING, IN_PROGRESS, or how it ended; times in Unix seconds."""

    procedure: Procedure
    status: str = WAITING
    operation: Operation | None = None
    begun_s: float = 0.0
    ended_s: float = 0.0
    code: int = 200
    body: dict[str, Any] = field(default_factory=dict)

    def end(self, now_s: float, code: int, body: dict[str, Any]) -> None:
        """The hardware has answered."""
        self.status = COMPLETED if code < 300 else FAILED
        self.ended_s, self.code, self.body = now_s, code, body

    def shown(self) -> dict[str, Any] | None:
        """ApplyResult; None where there is nothing to say yet."""
        if self.status in (WAITING, IN_PROGRESS):
            return None
        brief = {"operationID": self.procedure.id, "status": self.status}
        if self.status in (SKIPPED, CANCELED):
            return brief
        procedure = self.procedure
        moves = procedure.operation in (CONNECT, DISCONNECT)
        body: dict[str, Any] = {"action": procedure.operation, "destinationDeviceID": procedure.device}
        if not moves:
            body = {"action": "on" if procedure.operation in ("boot", "start") else "off"}
        at = f"{procedure.node}/aggregations" if moves else f"{procedure.device}/power"
        return {
            **brief,
            "uri": f"{API}/devices/{at}",
            "method": "PUT",
            "requestBody": body,
            "statusCode": self.code,
            "responseBody": self.body,
            "startedAt": utc_text(self.begun_s),
            "endedAt": utc_text(self.ended_s),
        }


class AppliedLayout(Struct):
    """One layout-apply. ``steps`` are those of the request, ``rollback`` and ``resumed`` those that came of them;
    ``current`` are the ones that are being carried out. Times in Unix seconds, None where it did not happen."""

    id: str
    steps: list[ProcedureStep]
    begun_s: float
    status: str = IN_PROGRESS
    current: list[ProcedureStep] = field(default_factory=list)
    ends: str = ""
    """What a fault makes of its end."""
    ended_s: float | None = None
    canceled_s: float | None = None
    rolls_back: bool | None = None
    rollback: list[ProcedureStep] | None = None
    rollback_status: str = ""
    rollback_begun_s: float | None = None
    rollback_ended_s: float | None = None
    suspended_s: float | None = None
    resumes: tuple[Procedure, ...] | None = None
    resumed: list[ProcedureStep] | None = None
    resumed_s: float | None = None

    @property
    def active(self) -> bool:
        """Whether something is carried out."""
        return self.status in (IN_PROGRESS, CANCELING) or self.rollback_status == IN_PROGRESS

    @property
    def suspended(self) -> bool:
        """Whether it waits to be resumed or canceled."""
        return SUSPENDED in (self.status, self.rollback_status)

    def state(self) -> dict[str, Any]:
        """ApplyIDPutResponse."""
        shown = {"status": self.status}
        return {**shown, "rollbackStatus": self.rollback_status} if self.rollback_status else shown

    def undo(self) -> list[Procedure]:
        """Return what takes back all moves that were made, the last one first."""
        done = [each for each in (*self.steps, *(self.resumed or ())) if each.status == COMPLETED]
        moves = [each.procedure for each in done if each.procedure.operation in (CONNECT, DISCONNECT)]
        made: list[Procedure] = []
        for number, each in enumerate(reversed(moves), start=1):
            made.append(each.reversed(number, (number - 1,) if number > 1 else ()))
        return made

    def shown(self, fields: Sequence[str] = FIELDS) -> dict[str, Any]:
        """ApplyIDGetResponse with what the table of its states has; ``fields``: which of the long members."""
        shown: dict[str, Any] = {"applyID": self.id, **self.state()}
        for name, value in (
            ("procedures", [dict(each.procedure.shown) for each in self.steps]),
            ("applyResult", _results(self.steps)),
            ("rollbackProcedures", _procedures(self.rollback)),
            ("rollbackResult", None if self.rollback is None else _results(self.rollback)),
            ("resumeProcedures", None if self.resumes is None else [dict(each.shown) for each in self.resumes]),
            ("resumeResult", None if self.resumed is None else _results(self.resumed)),
        ):
            if value is not None and name in fields:
                shown[name] = value
        for name, at_s in (
            ("startedAt", self.begun_s),
            ("endedAt", self.ended_s),
            ("canceledAt", self.canceled_s),
            ("rollbackStartedAt", self.rollback_begun_s),
            ("rollbackEndedAt", self.rollback_ended_s),
            ("suspendedAt", self.suspended_s),
            ("resumedAt", self.resumed_s),
        ):
            if at_s is not None:
                shown[name] = utc_text(at_s)
        return shown if self.rolls_back is None else {**shown, "executeRollback": self.rolls_back}


def _results(steps: Sequence[ProcedureStep]) -> list[dict[str, Any]]:
    return [shown for shown in (each.shown() for each in steps) if shown is not None]


def _procedures(steps: Sequence[ProcedureStep] | None) -> list[dict[str, Any]] | None:
    return None if steps is None else [dict(each.procedure.shown) for each in steps]
