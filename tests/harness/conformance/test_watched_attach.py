"""What one attach shows is judged by six clauses, each by its own part of it (contract chassis.md 4)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.dialects.redfish_attach import ATTACH_CLAUSES, WATCHED, Sighting, WatchedAttach
from mews.harness.conformance.dialects.redfish_protocol import Pages
from mews.harness.conformance.dialects.redfish_table import RedfishTableClient
from mews.harness.conformance.errors import MalformedError, OutOfTimeError
from mews.harness.conformance.exchange import Exchange
from mews.harness.conformance.expectations import Quirks
from mews.harness.conformance.judge import ClauseJudge
from mews.harness.conformance.table import Limits
from tests.harness.conformance.judging import DAY

TASK = "/redfish/v1/TaskService/Tasks/1"
STARTED = HttpReply(202, {"location": "/m/1", "retry-after": "1"}, json.dumps({"@odata.id": TASK}).encode())
DONE = HttpReply(204, {}, b"")
POST = Exchange("POST", "/zone", {}, "{}", 202, {}, "", 0.1)


def seen(value: Any) -> Sighting[Any]:
    return Sighting(lambda: value)


def raised(error: Exception) -> Sighting[Any]:
    def look() -> Any:
        raise error

    return Sighting(look)


RIGHT: dict[str, Any] = {
    "zone": "/zone",
    "endpoint": "/endpoint",
    "port": seen("/port"),
    "tags": (seen('"1"'), seen('"2"')),
    "names": (seen("GPU-1"), seen("GPU-1")),
    "statuses": (seen("LinkDown"), seen("Training")),
    "pages": seen(Pages("GET /all in pages of 1", ["a", "b"], ["b", "a"])),
    "replies": (STARTED, DONE),
    "exchanges": (POST,),
}


class OfTasks(Client):
    """Answers with a task of that state, and is asked so often."""

    def __init__(self, *states: str) -> None:
        super().__init__(ChassisTarget("http://box"))
        self.states = [*states]

    def _send(self, method: str, path: str, *more: Any) -> HttpReply:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return HttpReply(404 if state == "gone" else 200, {}, json.dumps({"TaskState": state}).encode())


def verdicts(*states: str, **changed: Any) -> dict[str, tuple[str, str]]:
    client = OfTasks(*(states or ("Completed",)))
    bench = ClauseContext(client, RedfishTableClient(client), limits=Limits(settle_s=0.3))
    bench.facts[WATCHED] = WatchedAttach(**{**RIGHT, **changed})
    judge = ClauseJudge(bench, Quirks(), (), DAY, changes=True)
    found = {clause.id.removeprefix("4."): judge.judge(clause) for clause in ATTACH_CLAUSES}
    assert all(POST in result.exchanges for result in found.values() if result.verdict != "skipped")
    return {name: (result.verdict, result.reason) for name, result in found.items()}


def others(of: dict[str, tuple[str, str]], *names: str) -> set[str]:
    return {verdict for name, (verdict, _) in of.items() if name not in names}


def test_an_attach_that_is_as_it_must_be_breaks_none():
    assert others(verdicts()) == {"passed"}


@pytest.mark.parametrize(
    ("name", "changed", "verdict", "reason"),
    [
        ("etag-changes", {"tags": (seen("1"), seen("1"))}, "failed", "/zone: ETag 1 is the same after an attach"),
        ("etag-changes", {"tags": (seen("1"), raised(MalformedError("no")))}, "skipped", "no"),
        ("endpoint-stays", {"names": (seen("a"), seen("b"))}, "failed", "/endpoint: its DurableName is another after"),
        ("training", {"statuses": (seen("LinkUp"), seen("LinkUp"))}, "failed", "/port: LinkStatus LinkUp, LinkUp dur"),
        ("training", {"statuses": ()}, "skipped", "an attach is answered immediately"),
        ("pages-stay", {"pages": seen(Pages("GET /x", ["a", "b"], ["a", "a"]))}, "failed", "GET /x: a is on two of"),
        ("pages-stay", {"pages": seen(Pages("GET /x", ["a", "b"], ["b"]))}, "failed", "GET /x: a is on none of them"),
    ],
)
def test_what_is_wrong_with_a_part_of_it_breaks_the_clause_about_that(name, changed, verdict, reason):
    found = verdicts(**changed)
    assert (found[name][0], found[name][1][: len(reason)]) == (verdict, reason)
    assert others(found, name) == {"passed"}


@pytest.mark.parametrize(
    ("replies", "verdict", "reason"),
    [
        ((HttpReply(202, {"location": "/m/1"}, STARTED.body), DONE), "failed", "202 without Retry-After"),
        ((HttpReply(202, {"retry-after": "1"}, STARTED.body),), "skipped", "4.monitor does not hold"),
        ((STARTED, HttpReply(400, {}, b"")), "failed", "the task monitor ends with HTTP 400"),
        ((STARTED, STARTED, HttpReply(200, {}, b"")), "passed", ""),
        ((STARTED, STARTED), "passed", ""),
        ((DONE,), "skipped", "an attach is answered immediately, with HTTP 204"),
        ((), "skipped", "the attach was never answered"),
    ],
)
def test_a_long_operation_is_202_with_its_monitor_and_then_its_own_reply(replies, verdict, reason):
    found = verdicts(replies=replies)["task"]
    assert (found[0], found[1][: len(reason)]) == (verdict, reason)


@pytest.mark.parametrize(
    ("states", "verdict", "reason"),
    [
        (("Running", "Running", "Exception"), "passed", ""),
        (("Running",), "failed", f"{TASK}: TaskState Running, though its operation has ended"),
        (("gone",), "skipped", f"{TASK}: is gone already"),
    ],
)
def test_a_task_says_that_it_has_ended(states, verdict, reason):
    found = verdicts(*states)["task-state"]
    assert (found[0], found[1][: len(reason)]) == (verdict, reason)


@pytest.mark.parametrize("body", [b"", b"{", b"{}"])
def test_a_task_that_is_not_named_is_not_judged(body):
    started = HttpReply(202, STARTED.headers, body)
    assert verdicts(replies=(started, DONE))["task-state"] == ("skipped", "the 202 names no task")


def test_a_device_whose_uuid_is_another_is_no_matter_of_its_endpoint():
    client = OfTasks("Completed")
    bench = ClauseContext(client, RedfishTableClient(client))
    bench.facts[WATCHED] = WatchedAttach(**{**RIGHT, "names": (seen("a"), seen("b"))})
    client.send("GET", "/x")
    bench.note("uuid", "another")
    [clause] = [each for each in ATTACH_CLAUSES if each.id == "4.endpoint-stays"]
    result = ClauseJudge(bench, Quirks(), (), DAY, changes=True).judge(clause)
    assert (result.verdict, result.reason) == ("skipped", "4.uuid does not hold")


def test_what_ends_the_run_is_no_sighting():
    look: Callable[[], Any] = OfTasks("x").states.clear
    assert Sighting(look)() is None
    with pytest.raises(OutOfTimeError):
        raised(OutOfTimeError("over"))
