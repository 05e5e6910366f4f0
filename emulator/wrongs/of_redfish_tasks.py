"""Wrongs of a Redfish service's sessions and of its long operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mews.emulator.dialects.wire import Request, Response
from mews.emulator.wrongs.parts import Make, replies, resources
from mews.emulator.wrongs.tables import redfish_error
from mews.emulator.wrongs.wrong import Ask, Handler, Reply, Stage, Wrong

REDFISH = ("redfish",)
SESSIONS = "/redfish/v1/SessionService/Sessions"


def _session(change: Callable[[Response], Response]) -> Make:
    return replies(lambda request: request.method == "POST" and request.path == SESSIONS, change)


def _session_twice(stage: Stage) -> Handler:
    """Return a login opens two sessions."""

    def handler(request: Request, ask: Ask) -> Reply:
        if request.method == "POST" and request.path == SESSIONS:
            ask(request)
        return ask(request)

    return handler


def _dropped_header(name: str) -> Callable[[Response], Response]:
    def change(reply: Response) -> Response:
        kept = {each: value for each, value in reply.headers.items() if each.lower() != name}
        return Response(reply.status, kept, reply.body, reply.stream)

    return change


def _of_202(change: Callable[[Response], Response]) -> Make:
    return replies(lambda request: True, lambda reply: change(reply) if reply.status == 202 else reply)


def _monitored(answer: Callable[[Response], Response]) -> Make:
    """Return what the task monitors of long operations answer."""

    def make(stage: Stage) -> Handler:
        monitors: set[str] = set()

        def handler(request: Request, ask: Ask) -> Reply:
            reply = ask(request)
            if isinstance(reply, Response):
                if reply.status == 202 and "Location" in reply.headers and request.method != "GET":
                    monitors.add(reply.headers["Location"].partition("?")[0])
                elif request.path in monitors:
                    return answer(reply)
            return reply

        return handler

    return make


def _still(reply: Response) -> Response:
    return Response(202, {**reply.headers, "Retry-After": "1"}, b"")


def _gone(reply: Response) -> Response:
    return redfish_error(404, "ResourceMissingAtURI", "There is no such monitor.")


def _state(state: str) -> Callable[[dict[str, Any]], None]:
    def change(value: dict[str, Any]) -> None:
        value["TaskState"] = state

    return change


OF_REDFISH_TASKS: tuple[Wrong, ...] = (
    Wrong("session-without-location", "a new session has no Location", REDFISH, _session(_dropped_header("location"))),
    Wrong(
        "session-200",
        "a new session is 200",
        REDFISH,
        _session(lambda reply: Response(200, reply.headers, reply.body) if reply.status == 201 else reply),
    ),
    Wrong("two-sessions", "a login opens two sessions", REDFISH, _session_twice),
    Wrong(
        "202-without-location",
        "202 comes without the Location of a monitor",
        REDFISH,
        _of_202(_dropped_header("location")),
        lasting=True,
    ),
    Wrong(
        "202-without-retry-after",
        "202 comes without Retry-After",
        REDFISH,
        _of_202(_dropped_header("retry-after")),
        lasting=True,
    ),
    Wrong("monitor-gone", "a task monitor is 404", REDFISH, _monitored(_gone), lasting=True),
    Wrong("monitor-never-ends", "a task monitor is 202 for ever", REDFISH, _monitored(_still), lasting=True),
    Wrong(
        "task-never-ends",
        "a task is Running though its operation has ended",
        REDFISH,
        resources(_state("Running"), "Task"),
        lasting=True,
    ),
    Wrong(
        "task-never-begins",
        "a task is New though its operation has ended",
        REDFISH,
        resources(_state("New"), "Task"),
        lasting=True,
    ),
)
