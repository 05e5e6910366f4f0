"""Carries a long operation: answered at once where it is done at once, else by a task and its monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.chassis.operation import Answer, Operation, OperationOutcome
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.messages import RedfishError
from mews.emulator.dialects.redfish.replies import PreparedReply, dress
from mews.emulator.dialects.redfish.route import RedfishWrite
from mews.emulator.dialects.redfish.schemas import odata_type
from mews.emulator.dialects.redfish.service_state import ServiceState
from mews.emulator.dialects.redfish.tasks import Done, Started, Task, failure_of
from mews.emulator.dialects.wire import Pending, Request, Response

Finish = Callable[[Done], PreparedReply]


class StartedWork:
    """What becomes of one request that began operations."""

    def __init__(self, box: EmulatedChassis, state: ServiceState, request: Request, call: RedfishWrite) -> None:
        self._box, self._world, self._request, self._call = box, state, request, call

    def pending(self, started: Started, now_s: float, finish: Finish) -> Pending:
        """Return how the request is answered.

        A fault that has no words in a task (a dropped connection, a time-out, an HTTP error) strikes the request
        itself: it waits for the operation as it does in the other dialects.
        """
        operations = started.operations
        if len(operations) == 1 and (operations[0].outcome is not OperationOutcome.REPLY or _late(operations[0])):
            return Pending(
                now_s, operation=operations[0], render=lambda answer: self._rendered(answer, started, finish)
            )
        if all(operation.due_s <= now_s for operation in operations):
            self._box.settle(now_s)
            return Pending(now_s, reply=dress(self._ended(started, finish), head=False))
        task = self._world.tasks.open(started, now_s, payload=self._payload(), owner=self._owner())
        return Pending(now_s, reply=dress(accepted(task, self._world), head=False))

    def _rendered(self, answer: Answer, started: Started, finish: Finish) -> Response:
        return dress(self._ended(started, finish), head=False)

    def _ended(self, started: Started, finish: Finish) -> PreparedReply:
        for operation in started.operations:
            failure = failure_of(operation)
            if failure is not None:
                return PreparedReply(failure.status, failure.body())
        return finish(started.reply())

    def _payload(self) -> dict[str, Any]:
        return {
            "HttpHeaders": [],
            "HttpOperation": self._request.method,
            "JsonBody": self._request.body.decode(errors="replace"),
            "TargetUri": self._request.path,
        }

    def _owner(self) -> str:
        account = self._call.who.account
        return account.name if account else ""


def _late(operation: Operation) -> bool:
    return operation.answer_s > operation.due_s


def accepted(task: Task, state: ServiceState) -> PreparedReply:
    """202: the task, where its monitor is, and when to come back."""
    uri = f"{uris.TASKS}/{task.id}"
    headers = {"Location": f"{uris.MONITORS}/{task.id}", "Retry-After": str(state.settings.retry_after_s)}
    body = {
        "@odata.id": uri,
        "@odata.type": odata_type("Task"),
        "Id": task.id,
        "Name": task.started.name,
        "TaskState": task.state,
        "TaskMonitor": f"{uris.MONITORS}/{task.id}",
    }
    return PreparedReply(202, body, headers)


def reply_of(done: Done | RedfishError | PreparedReply) -> PreparedReply:
    """Return a handler's reply."""
    if isinstance(done, PreparedReply):
        return done
    if isinstance(done, RedfishError):
        return PreparedReply(done.status, done.body(), done.headers)
    return PreparedReply(done.status, done.body, done.headers)
