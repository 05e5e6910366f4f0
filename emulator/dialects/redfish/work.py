"""Carries a long operation: answered at once where it is done at once, else by a task and its monitor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.emulator.chassis.box import Box
from mews.emulator.chassis.operation import Answer, Operation, Outcome
from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.messages import Failed
from mews.emulator.dialects.redfish.replies import Dressed, dress
from mews.emulator.dialects.redfish.route import Call
from mews.emulator.dialects.redfish.schemas import odata_type
from mews.emulator.dialects.redfish.tasks import Done, Started, Task, failure_of
from mews.emulator.dialects.redfish.world import World
from mews.emulator.dialects.wire import Pending, Request, Response

Finish = Callable[[Done], Dressed]


class Work:
    """What becomes of one request that began operations."""

    def __init__(self, box: Box, world: World, request: Request, call: Call) -> None:
        self._box, self._world, self._request, self._call = box, world, request, call

    def pending(self, started: Started, now_s: float, finish: Finish) -> Pending:
        """How the request is answered.

        A fault that has no words in a task (a dropped connection, a time-out, an HTTP error) strikes the request
        itself: it waits for the operation as it does in the other dialects.
        """
        operations = started.operations
        if len(operations) == 1 and (operations[0].outcome is not Outcome.REPLY or _late(operations[0])):
            return Pending(now_s, operation=operations[0], render=lambda answer: self._told(answer, started, finish))
        if all(operation.due_s <= now_s for operation in operations):
            self._box.settle(now_s)
            return Pending(now_s, reply=dress(self._ended(started, finish), head=False))
        task = self._world.tasks.open(started, now_s, payload=self._payload(), owner=self._owner())
        return Pending(now_s, reply=dress(accepted(task, self._world), head=False))

    def _told(self, answer: Answer, started: Started, finish: Finish) -> Response:
        return dress(self._ended(started, finish), head=False)

    def _ended(self, started: Started, finish: Finish) -> Dressed:
        for operation in started.operations:
            failure = failure_of(operation)
            if failure is not None:
                return Dressed(failure.status, failure.body())
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


def accepted(task: Task, world: World) -> Dressed:
    """202: the task, where its monitor is, and when to come back."""
    uri = f"{uris.TASKS}/{task.id}"
    headers = {"Location": f"{uris.MONITORS}/{task.id}", "Retry-After": str(world.settings.retry_after_s)}
    body = {
        "@odata.id": uri,
        "@odata.type": odata_type("Task"),
        "Id": task.id,
        "Name": task.started.name,
        "TaskState": task.state,
        "TaskMonitor": f"{uris.MONITORS}/{task.id}",
    }
    return Dressed(202, body, headers)


def reply_of(done: Done | Failed | Dressed) -> Dressed:
    """A handler's reply."""
    if isinstance(done, Dressed):
        return done
    if isinstance(done, Failed):
        return Dressed(done.status, done.body(), done.headers)
    return Dressed(done.status, done.body, done.headers)
