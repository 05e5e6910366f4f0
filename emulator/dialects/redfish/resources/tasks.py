"""The task service, its tasks and their monitors."""

from __future__ import annotations

from typing import Any

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.messages import fail
from mews.emulator.dialects.redfish.replies import PreparedReply
from mews.emulator.dialects.redfish.route import OK, Body, RedfishRoute, RedfishWrite, collection, resource
from mews.emulator.dialects.redfish.service_state import RedfishView
from mews.emulator.dialects.redfish.tasks import Done, Task
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.redfish.work import accepted, reply_of
from mews.emulator.dialects.wire import Request

SERVICE = f"{uris.ROOT}/TaskService"


def service(view: RedfishView) -> Body:
    """Return the task service."""
    return resource(
        "TaskService",
        SERVICE,
        "Task service",
        CompletedTaskOverWritePolicy="Oldest",
        LifeCycleEventOnTaskStateChange=True,
        DateTime=view.stamp(),
        ServiceEnabled=True,
        Status=dict(OK),
        Tasks=ref(uris.TASKS),
    )


def tasks(view: RedfishView) -> Body:
    """Return all tasks that are kept."""
    return collection("Task", uris.TASKS, "Tasks", [f"{uris.TASKS}/{name}" for name in view.state.tasks.tasks])


def task(view: RedfishView, name: str) -> Body | None:
    """Return one task."""
    found = view.state.tasks.tasks.get(name)
    return None if found is None else _body(view, found)


def _body(view: RedfishView, task: Task) -> Body:
    ended: dict[str, Any] = {}
    if task.ended_s is not None:
        ended = {"EndTime": view.state.stamp(task.ended_s)}
    else:
        ended = {"EstimatedDuration": f"PT{max(int(task.left_s(view.now_s)) + 1, 1)}S"}
    return resource(
        "Task",
        f"{uris.TASKS}/{task.id}",
        task.started.name,
        TaskState=task.state,
        TaskStatus={"Exception": "Critical", "Cancelled": "Warning"}.get(task.state, "OK"),
        PercentComplete=task.percent(view.now_s),
        StartTime=view.state.stamp(task.begun_s),
        TaskMonitor=f"{uris.MONITORS}/{task.id}",
        HidePayload=False,
        Payload=dict(task.payload),
        Messages=_messages(task),
        **ended,
    )


def _messages(task: Task) -> list[dict[str, Any]]:
    if task.failure is not None:
        return [message.render() for message in task.failure.messages]
    word = {"Running": "Started", "Cancelled": "Cancelled"}.get(task.state, "CompletedOK")
    return [
        {
            "@odata.type": "#Message.v1_3_0.Message",
            "MessageId": f"TaskEvent.1.0.Task{word}",
            "Message": f"{task.started.name}: {task.state}.",
            "MessageArgs": [task.id],
            "MessageSeverity": "OK",
        }
    ]


def delete(call: RedfishWrite) -> Done:
    """Cancel what runs, forget what has ended.

    Raises RedfishError: 409 where it is too late to cancel.
    """
    found = call.state.tasks.tasks[call.args[0]]
    if found.ended_s is not None:
        del call.state.tasks.tasks[found.id]
    elif not call.state.tasks.cancel(found, call.view.box, call.now_s):
        raise fail(409, "OperationFailed", "the operation has taken effect already")
    return Done()


def monitor(view: RedfishView, name: str) -> Body | None:
    """Return a stub, which routing needs; ``watch`` answers the request."""
    return {"@odata.id": f"{uris.MONITORS}/{name}"} if name in view.state.tasks.tasks else None


def watch(view: RedfishView, request: Request, args: tuple[str, ...]) -> PreparedReply:
    """202 while it runs, then the operation's own reply.

    Raises RedfishError: 404.
    """
    found = view.state.tasks.tasks.get(args[0])
    if found is None:
        raise fail(404, "ResourceMissingAtURI", request.path)
    if found.ended_s is None:
        return accepted(found, view.state)
    if found.failure is not None:
        return reply_of(found.failure)
    return reply_of(found.reply or Done())


ROUTES = (
    RedfishRoute(SERVICE, service),
    RedfishRoute(uris.TASKS, tasks),
    RedfishRoute(f"{uris.TASKS}/{{task}}", task, delete=delete),
    RedfishRoute(f"{uris.MONITORS}/{{task}}", monitor, delete=delete, answer=watch),
)
