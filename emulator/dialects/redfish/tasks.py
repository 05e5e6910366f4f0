"""Long operations: what runs in the chassis on somebody's behalf, until it is done, failed or given up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Operation, OperationKind, OperationOutcome
from mews.emulator.dialects.redfish.messages import RedfishError, RedfishMessage, fail

KEPT = 100
"""How many finished tasks can still be read."""

REFUSALS: Mapping[str, tuple[int, str]] = {
    "unknown-device": (404, "ResourceNotFound"),
    "already-attached": (409, "ResourceInUse"),
    "missing-port": (400, "ActionParameterMissing"),
    "unknown-port": (404, "ResourceNotFound"),
    "uncabled-port": (409, "OperationFailed"),
    "link-down": (500, "OperationFailed"),
    "not-stored": (507, "OperationFailed"),
    "cancelled": (409, "OperationFailed"),
}
"""Refusal of the core -> status and message of the operation's own reply."""


class Done(Struct, frozen=True):
    """A reply that is ready; 204 where there is nothing to say."""

    status: int = 204
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Started(Struct, frozen=True):
    """Operations were begun; ``reply`` is what to say once all of them are well."""

    name: str
    operations: tuple[Operation, ...]
    reply: Callable[[], Done]
    target: str


class Task(Struct):
    """One long operation. ``ended_s`` is None while it runs; ``failure`` is its own reply if it went wrong."""

    id: str
    started: Started
    begun_s: float
    payload: Mapping[str, Any]
    owner: str
    ended_s: float | None = None
    cancelled: bool = False
    failure: RedfishError | None = None
    reply: Done | None = None

    @property
    def state(self) -> str:
        """``TaskState``."""
        if self.ended_s is None:
            return "Running"
        if self.cancelled:
            return "Cancelled"
        return "Exception" if self.failure else "Completed"

    def percent(self, now_s: float) -> int:
        """Return how far it is, by the time that its operations will take."""
        if self.ended_s is not None:
            return 100
        due_s = max(operation.due_s for operation in self.started.operations)
        if due_s <= self.begun_s:
            return 99
        return min(int(100 * (now_s - self.begun_s) / (due_s - self.begun_s)), 99)

    def left_s(self, now_s: float) -> float:
        """Emulated seconds until it should be done."""
        return max(max(operation.due_s for operation in self.started.operations) - now_s, 0.0)


class TaskList:
    """All tasks; ``notify`` hears of each that starts or ends, with the name of the event."""

    def __init__(self, notify: Callable[[str, Task], None]) -> None:
        self._notify = notify
        self._made = 0
        self.tasks: dict[str, Task] = {}

    def open(self, started: Started, now_s: float, *, payload: Mapping[str, Any], owner: str) -> Task:
        """Return a task for operations that run."""
        self._made += 1
        task = Task(str(self._made), started, now_s, payload, owner)
        self.tasks[task.id] = task
        self._notify("TaskStarted", task)
        return task

    def sweep(self, now_s: float) -> None:
        """Let the tasks end whose operations have."""
        for task in self.tasks.values():
            if task.ended_s is None and all(operation.settled for operation in task.started.operations):
                self._end(task, now_s)
        ended = [task.id for task in self.tasks.values() if task.ended_s is not None]
        for name in ended[: max(len(ended) - KEPT, 0)]:
            del self.tasks[name]

    def _end(self, task: Task, now_s: float) -> None:
        task.ended_s = min(max(operation.due_s for operation in task.started.operations), now_s)
        task.failure = next((found for each in task.started.operations if (found := failure_of(each))), None)
        if task.failure is None:
            task.reply = task.started.reply()
        self._notify(
            {"Cancelled": "TaskCancelled", "Exception": "TaskAborted"}.get(task.state, "TaskCompletedOK"), task
        )

    def cancel(self, task: Task, box: EmulatedChassis, now_s: float) -> bool:
        """Give up what has not happened yet; what has stays. False if all of it has."""
        gone = [box.operations.cancel(operation, now_s) for operation in reversed(task.started.operations)]
        task.cancelled = any(gone)
        self.sweep(now_s)
        return task.cancelled

    def clear(self) -> None:
        """Forget all."""
        self.tasks.clear()


def failure_of(operation: Operation) -> RedfishError | None:
    """Return what went wrong with a settled operation, as its reply; None if the chassis says all is well.

    A chassis that lies says so here: a 500 although the device was attached, or nothing although it was not.
    """
    answer = operation.answer()
    if answer.outcome is OperationOutcome.DROPPED:
        return fail(503, "OperationFailed", "the management processor restarted during the operation")
    if answer.outcome is OperationOutcome.ERROR:
        return fail(answer.status, "InternalError")
    if answer.ok:
        return None
    if answer.refusal is None:
        return fail(500, "OperationFailed", "the link did not come up in time")
    status, name = REFUSALS.get(answer.refusal.code, (500, "OperationFailed"))
    return RedfishError(status, (RedfishMessage(name, _args(name, operation, str(answer.refusal))),))


def _args(name: str, operation: Operation, text: str) -> tuple[str, ...]:
    if name == "ResourceNotFound":
        return ("Endpoint", operation.device)
    if name == "ActionParameterMissing":
        return ("attach" if operation.kind is OperationKind.ATTACH else "detach", "Endpoint")
    return (text,) if name == "OperationFailed" else ()
