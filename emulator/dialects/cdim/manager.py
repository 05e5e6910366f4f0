"""Layout-apply of one chassis: carries layouts out one at a time, each procedure once those before it are done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Operation
from mews.emulator.dialects.cdim.errors import RefusedRequestError
from mews.emulator.dialects.cdim.layouts import (
    CANCELED,
    CANCELING,
    COMPLETED,
    FAILED,
    IN_PROGRESS,
    SKIPPED,
    SUSPENDED,
    WAITING,
    AppliedLayout,
    ProcedureStep,
)
from mews.emulator.dialects.cdim.procedures import CONNECT, DISCONNECT, Procedure
from mews.emulator.dialects.cdim.records import CdimView
from mews.emulator.dialects.machines import device_of, leave_only

KEPT = 1000
"""Layouts that have ended and are remembered; the oldest are forgotten first."""
STATUSES = {"unknown-device": 404, "unknown-node": 404, "elsewhere": 404, "not-switched": 501, "lost": 500}
"""Reason of a procedure's failure -> status of the hardware control; others are 409. All are assumed."""


class LayoutManager:
    """``unix_s`` turns emulated seconds into those of the documents' times, ``new_id`` gives 10 hexadecimal digits."""

    def __init__(
        self, box: EmulatedChassis, view: CdimView, *, unix_s: Callable[[float], float], new_id: Callable[[], str]
    ) -> None:
        self._box, self._view, self._unix_s, self._new_id = box, view, unix_s, new_id
        self._layouts: dict[str, AppliedLayout] = {}

    def reset(self) -> None:
        """Forget all layouts."""
        self._layouts.clear()

    def all(self) -> list[AppliedLayout]:
        """Return them in the order of their beginning."""
        return list(self._layouts.values())

    def find(self, layout: str) -> AppliedLayout:
        """Return the layout of that ID.

        Raises RefusedRequestError.
        """
        if layout not in self._layouts:
            raise RefusedRequestError("unknown")
        return self._layouts[layout]

    def look(self, but: str = "") -> None:
        """See which layouts a restart of the management CPU has ended; they have failed. A layout that is about to be
        canceled (``but``) says so in its answer."""
        for layout in self._layouts.values():
            if layout.active and layout.id != but and self._lost(layout):
                self._give_up(layout)

    def apply(self, procedures: tuple[Procedure, ...], now_s: float) -> tuple[AppliedLayout, list[Operation]]:
        """Begin a layout; with the operations that it begins with.

        Raises RefusedRequestError.
        """
        self._box.settle(now_s)
        self._check_alone()
        layout = AppliedLayout(self._new_id(), [ProcedureStep(each) for each in procedures], self._unix_s(now_s))
        layout.current = layout.steps
        self._layouts[layout.id] = layout
        self._advance(layout)
        begun = [each.operation for each in layout.steps if each.operation is not None]
        if any(each.refusal is not None and each.refusal.code == "busy" for each in begun):
            del self._layouts[layout.id]
            raise RefusedRequestError("busy")
        self._forget_old()
        return layout, begun

    def _check_alone(self) -> None:
        if any(each.active for each in self._layouts.values()):
            raise RefusedRequestError("busy")
        suspended = next((each.id for each in self._layouts.values() if each.suspended), None)
        if suspended is not None:
            raise RefusedRequestError("suspended", suspended)

    def _forget_old(self) -> None:
        ended = [each.id for each in self._layouts.values() if not each.active and not each.suspended]
        for each in ended[: max(len(ended) - KEPT, 0)]:
            del self._layouts[each]

    def delete(self, layout: str) -> None:
        """Forget a layout that has ended.

        Raises RefusedRequestError.
        """
        found = self.find(layout)
        if found.active or found.suspended:
            raise RefusedRequestError("running")
        del self._layouts[layout]

    def cancel(self, layout: str, now_s: float, *, rollback: bool) -> tuple[int, dict[str, Any]]:
        """Ask for a layout to be canceled: status and body.

        Raises RefusedRequestError.
        """
        self._box.settle(now_s)
        found = self.find(layout)
        if found.active and self._lost(found):
            word = "lost" if found.status == IN_PROGRESS else "lost-rollback"
            self._give_up(found)
            raise RefusedRequestError(word, more=found.state())
        if found.status == IN_PROGRESS:
            found.status, found.canceled_s, found.rolls_back = CANCELING, self._unix_s(now_s), rollback
            return 202, found.state()
        if found.status == SUSPENDED:
            found.status, found.ended_s = FAILED, self._unix_s(now_s)
            found.canceled_s, found.rolls_back = self._unix_s(now_s), False
            return 202, found.state()
        if found.rollback_status == SUSPENDED:
            found.rollback_status, found.rollback_ended_s = FAILED, self._unix_s(now_s)
            found.ended_s = self._unix_s(now_s)
            return 202, found.state()
        if found.status in (COMPLETED, FAILED) or found.rollback_status == IN_PROGRESS:
            raise RefusedRequestError("executed")
        return 200, found.state()

    def resume(self, layout: str, now_s: float) -> tuple[int, dict[str, Any]]:
        """Ask for a suspended layout to go on: status and body.

        Raises RefusedRequestError.
        """
        self._box.settle(now_s)
        found = self.find(layout)
        if found.active:
            raise RefusedRequestError("executed")
        if not found.suspended:
            return 200, found.state()
        found.resumed_s, found.ends = self._unix_s(now_s), ""
        if found.status == SUSPENDED:
            found.status = IN_PROGRESS
        else:
            found.rollback_status = IN_PROGRESS
        found.resumed = found.current = [ProcedureStep(each) for each in found.resumes or ()]
        self._advance(found)
        return 202, found.state()

    # On its way

    def _advance(self, layout: AppliedLayout) -> None:
        """Begin all that can be begun; once nothing is on its way any more, the layout ends."""
        for step in layout.current:
            done = {each.procedure.id for each in layout.current if each.status == COMPLETED}
            halted = layout.status == CANCELING or layout.ends or any(e.status == FAILED for e in layout.current)
            if step.status == WAITING and not halted and set(step.procedure.dependencies) <= done:
                self._begin(layout, step)
        if not any(each.status == IN_PROGRESS for each in layout.current):
            self._end(layout)

    def _begin(self, layout: AppliedLayout, step: ProcedureStep) -> None:
        now_s, procedure = self._box.now_s, step.procedure
        step.status, step.begun_s = IN_PROGRESS, self._unix_s(now_s)
        if procedure.operation not in (CONNECT, DISCONNECT):
            self._fail(step, "not-switched", f"{procedure.operation}: the chassis does not switch its hosts")
            return
        machine, device = self._view.machine(procedure.node), device_of(self._box, procedure.device)
        if machine is None or device is None:
            missing = ("unknown-node", procedure.node) if machine is None else ("unknown-device", procedure.device)
            self._fail(step, missing[0], f"{missing[1]}: not in this pool")
            return
        if procedure.operation == CONNECT:
            operation = self._box.begin_attach(device, machine.port, now_s)
        elif self._box.row(device, now_s).port != machine.port:
            self._fail(step, "elsewhere", f"{procedure.device}: is not connected to {procedure.node}")
            return
        else:
            operation = self._box.begin_detach(device, now_s)
            leave_only(self._box, operation, machine.port)
        step.operation = operation
        operation.after.append(lambda: self._settled(layout, step, operation))

    def _settled(self, layout: AppliedLayout, step: ProcedureStep, operation: Operation) -> None:
        """The chassis is done with it: what it says of it is the hardware's answer."""
        answer = operation.answer()
        if answer.ok:
            body = {"sourceDeviceID": step.procedure.node, "destinationDeviceID": step.procedure.device}
            step.end(self._unix_s(self._box.now_s), 200, body)
        elif answer.lie:
            self._fail(step, "link-down", "link timeout")
        elif operation.refusal is not None:
            self._fail(step, operation.refusal.code, str(operation.refusal))
        else:
            self._fail(step, "lost", "Internal Server Error")
        layout.ends = operation.layout_ends or layout.ends
        self._advance(layout)

    def _fail(self, step: ProcedureStep, reason: str, text: str) -> None:
        step.end(self._unix_s(self._box.now_s), STATUSES.get(reason, 409), {"code": reason, "message": text})

    def _end(self, layout: AppliedLayout) -> None:
        now_s = self._unix_s(self._box.now_s)
        failed = any(each.status == FAILED for each in layout.current)
        left = [each for each in layout.current if each.status == WAITING]
        for each in left:
            each.status = CANCELED if layout.status == CANCELING else SKIPPED
        outcome = layout.ends or (FAILED if failed else COMPLETED)
        if outcome == SUSPENDED:
            layout.suspended_s, layout.resumes = now_s, _rest(layout.current)
        if layout.rollback_status == IN_PROGRESS:
            layout.rollback_status = outcome
            if outcome != SUSPENDED:
                layout.rollback_ended_s = layout.ended_s = now_s
        elif layout.status == CANCELING:
            layout.status, layout.ends = CANCELED, ""
            self._roll_back(layout, now_s)
        else:
            layout.status = outcome
            layout.ended_s = None if outcome == SUSPENDED else now_s

    def _roll_back(self, layout: AppliedLayout, now_s: float) -> None:
        """The procedures of a rollback are made in any case, and carried out where that was asked."""
        layout.rollback = [ProcedureStep(each) for each in layout.undo()]
        if not layout.rolls_back:
            layout.ended_s = now_s
            return
        layout.rollback_status, layout.rollback_begun_s = IN_PROGRESS, now_s
        layout.current = layout.rollback
        self._advance(layout)

    def _lost(self, layout: AppliedLayout) -> bool:
        """Return whether an operation of it has ended without a word: the management CPU was away."""
        running = [each.operation for each in layout.current if each.status == IN_PROGRESS]
        return any(each is not None and each.settled for each in running)

    def _give_up(self, layout: AppliedLayout) -> None:
        for each in layout.current:
            if each.status == IN_PROGRESS:
                self._fail(each, "lost", "the process does not exist any more")
        self._end(layout)


def _rest(steps: list[ProcedureStep]) -> tuple[Procedure, ...]:
    """Return what a suspended layout has still to do: what failed, and what was skipped."""
    left = [each.procedure for each in steps if each.status != COMPLETED]
    numbers = {each.id for each in left}
    return tuple(each.after(tuple(d for d in each.dependencies if d in numbers)) for each in left)
