"""The back door: who is let in, what it does, and its feed of events."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.clock import EmulatedClock
from mews.emulator.dialects.control import Control
from mews.emulator.dialects.wire import Request
from mews.emulator.inventory_file import load_hardware
from mews.emulator.rack import Rack
from mews.emulator.serve import ChassisServer

FIXTURES = Path(__file__).parents[2] / "fixtures" / "hardware"
TOKEN = {"authorization": "Bearer secret"}


@pytest.fixture
def control() -> Iterator[Control]:
    rack = Rack(load_hardware(FIXTURES / "demo.yaml"), clock=EmulatedClock())
    rack.start()
    yield Control(rack, "secret")
    rack.stop()


def ask(control: Control, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
    content = b"" if body is None else json.dumps(body).encode()
    reply = control.answer(Request(method, path, query, TOKEN, content))
    assert reply.headers["Content-Type"] == "application/json"
    return reply.status, json.loads(reply.body)


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("10.0.0.7", TOKEN, 403),
        ("", TOKEN, 403),
        ("127.0.0.1", {}, 401),
        ("127.0.0.1", {"authorization": "Bearer wrong"}, 401),
        ("127.0.0.1", {"authorization": "secret"}, 401),
        ("::1", {"authorization": "Bearer \u00e9"}, 401),
    ],
)
def test_only_this_machine_with_the_token_is_let_in(control: Control, address, headers, status):
    refusal = control.refused(Request("GET", "/v1/table", headers=headers), address)
    assert refusal is not None
    assert refusal.status == status
    assert "error" in json.loads(refusal.body)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_with_the_token_is_let_in(control: Control, address):
    assert control.refused(Request("GET", "/v1/table", headers=TOKEN), address) is None


def test_the_table_tells_all_of_a_device(control: Control):
    assert ask(control, "GET", "/v1/table")[1]["A"]["000100"] == {
        "uuid": "GPU-b104b284-a5ee-a4fa-2aef-29568979829c",
        "port": "1",
        "host": "host-1",
        "kind": "GPU",
        "model": "V100",
        "serial": ask(control, "GET", "/v1/inventory")[1]["chassis"][0]["devices"][0]["serial"],
        "pool": "pool-0",
        "gpuid": "0-000100",
        "link": "up",
        "pending": None,
    }


def test_an_edit_moves_a_device_and_reset_moves_it_back(control: Control):
    assert ask(control, "POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": "3"}) == (200, {})
    assert ask(control, "GET", "/v1/table")[1]["A"]["000100"]["host"] == "host-3"
    assert ask(control, "POST", "/v1/reset") == (200, {})
    assert ask(control, "GET", "/v1/table")[1]["A"]["000100"]["host"] == "host-1"


def test_faults_are_added_listed_and_cleared(control: Control):
    status, added = ask(control, "POST", "/v1/faults", {"chassis": "A", "spec": {"kind": "partial-list", "count": 3}})
    assert (status, added) == (201, {"fault": "f1"})
    (listed,) = ask(control, "GET", "/v1/faults")[1]["A"]
    assert (listed["kind"], listed["left"], listed["fired"]) == ("partial-list", 3, 0)
    assert ask(control, "DELETE", "/v1/faults", chassis="A", fault="f1") == (200, {})
    assert ask(control, "GET", "/v1/faults")[1] == {"A": []}


def test_speed_is_told_and_changed(control: Control):
    assert ask(control, "GET", "/v1/speed") == (200, {"speed": 1.0})
    assert ask(control, "PUT", "/v1/speed", {"speed": 20}) == (200, {"speed": 20.0})


def test_devices_are_inserted_and_pulled(control: Control):
    assert ask(control, "DELETE", "/v1/devices", chassis="A", device="000100") == (200, {})
    device = {"id": "00FF00", "uuid": "GPU-new"}
    assert ask(control, "POST", "/v1/devices", {"chassis": "A", "device": device})[0] == 201
    assert ask(control, "POST", "/v1/devices", {"chassis": "A", "device": {"id": "x", "uuid": "y"}})[0] == 409


def test_events_are_told_since_a_number(control: Control):
    ask(control, "POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": "3"})
    ask(control, "POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": None})
    told = ask(control, "GET", "/v1/events", since="1")[1]
    assert told["seq"] == 2
    assert [(event["seq"], event["event"], event["old_port"]) for event in told["events"]] == [
        (2, "table-changed", "3")
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "status", "text"),
    [
        ("GET", "/v2", None, {}, 404, "/v1/table"),
        ("PATCH", "/v1/reset", None, {}, 405, "must be POST"),
        ("POST", "/v1/edit", [], {}, 400, "not an object"),
        ("POST", "/v1/edit", {"chassis": "Z", "device": "000100"}, {}, 400, "chassis 'Z': must be one of A"),
        ("POST", "/v1/edit", {"chassis": "A", "device": "nope"}, {}, 409, "device 'nope'"),
        ("POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": "9"}, {}, 409, "port '9': chassis A has 1"),
        ("POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": 9}, {}, 400, "must be a string or null"),
        ("POST", "/v1/faults", {"chassis": "A", "spec": {"kind": "x"}}, {}, 400, "must be one of slow-operation"),
        ("POST", "/v1/faults", {"chassis": "A", "spec": [1]}, {}, 400, "must be a mapping"),
        ("DELETE", "/v1/faults", None, {"fault": "f9"}, 400, "active faults are none"),
        ("PUT", "/v1/speed", {"speed": 0}, {}, 400, "must be above 0"),
        ("PUT", "/v1/speed", {"speed": "fast"}, {}, 400, "must be a number"),
        ("GET", "/v1/events", None, {"since": "x"}, 400, "must be an event's seq"),
        ("POST", "/v1/devices", {"chassis": "A", "device": {"id": "x"}}, {}, 400, "with id, uuid"),
    ],
)
def test_what_cannot_be_is_told(control: Control, method, path, body, query, status, text):
    got, reply = ask(control, method, path, body, **query)
    assert got == status
    assert text in reply["error"]


def test_a_full_disk_is_507(control: Control, monkeypatch: pytest.MonkeyPatch):
    from mews.emulator.chassis.errors import StoreError
    from mews.emulator.chassis.store import MemoryStore

    def full(*_):
        raise StoreError("disk full")

    monkeypatch.setattr(MemoryStore, "save", full)
    assert ask(control, "POST", "/v1/edit", {"chassis": "A", "device": "000100", "port": "2"}) == (
        507,
        {"error": "disk full"},
    )


@pytest.fixture
def server() -> Iterator[ChassisServer]:
    made = ChassisServer(load_hardware(FIXTURES / "demo.yaml"), token="secret")
    made.start()
    yield made
    made.stop()


class Feed:
    """A reader of server-sent events."""

    def __init__(self, server: ChassisServer, since: int = 0) -> None:
        self._connection = http.client.HTTPConnection(server.ready()["control"]["url"][7:], timeout=30)
        headers = {"Authorization": "Bearer secret", "Accept": "text/event-stream", "Last-Event-ID": str(since)}
        self._connection.request("GET", "/v1/events", headers=headers)
        self._response = self._connection.getresponse()
        assert self._response.status == 200

    def next(self) -> dict[str, Any]:
        while True:
            line = self._response.readline()
            assert line, "the feed ended"
            if line.startswith(b"data: "):
                return json.loads(line[6:])

    def close(self) -> None:
        self._connection.close()
        self._response.close()


def post(server: ChassisServer, path: str, body: Any) -> int:
    connection = http.client.HTTPConnection(server.ready()["control"]["url"][7:], timeout=30)
    connection.request("POST", path, json.dumps(body), {"Authorization": "Bearer secret"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.wall
def test_many_open_feeds_leave_threads_for_requests_and_hear_the_same(server: ChassisServer):
    feeds = [Feed(server) for _ in range(12)]
    for port in ("2", "3", None):
        assert post(server, "/v1/edit", {"chassis": "A", "device": "000100", "port": port}) == 200
    for feed in feeds:
        assert [feed.next()["new_port"] for _ in range(3)] == ["2", "3", None]
        feed.close()


@pytest.mark.wall
def test_a_feed_goes_on_after_the_last_event_that_was_heard(server: ChassisServer):
    for port in ("2", "3"):
        post(server, "/v1/edit", {"chassis": "A", "device": "000100", "port": port})
    feed = Feed(server, since=1)
    assert feed.next()["new_port"] == "3"
    feed.close()


@pytest.mark.wall
def test_a_scheduled_fault_is_heard_at_its_time_although_nobody_asks(server: ChassisServer):
    feed = Feed(server)
    spec = {"kind": "concurrent-editor", "edit": "000200", "port": None, "after_s": 0.3}
    begun = time.monotonic()
    assert post(server, "/v1/faults", {"chassis": "A", "spec": spec}) == 201
    while feed.next()["event"] != "table-changed":
        pass
    assert time.monotonic() - begun > 0.2
    feed.close()


@pytest.mark.wall
def test_a_hundred_requests_that_wait_do_not_keep_others_out(server: ChassisServer):
    url = server.ready()["chassis"]["A"]["h3api"][7:]
    post(server, "/v1/faults", {"chassis": "A", "spec": {"kind": "slow-operation", "count": 100, "extra_s": 8}})
    statuses: list[int] = []

    def read() -> None:
        connection = http.client.HTTPConnection(url, timeout=60)
        connection.request("GET", "/resources")
        statuses.append(connection.getresponse().status)
        connection.close()

    threads = [threading.Thread(target=read) for _ in range(100)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 15
    while slow_operations_left(server):  # none once the hundredth of them has begun
        assert time.monotonic() < deadline, "the hundred requests never began"
        threading.Event().wait(0.05)
    read()
    assert statuses == [200], "one of those that wait was answered first"
    for thread in threads:
        thread.join()
    assert statuses == [200] * 101


def slow_operations_left(server: ChassisServer) -> int:
    connection = http.client.HTTPConnection(server.ready()["control"]["url"][7:], timeout=30)
    connection.request("GET", "/v1/faults", headers={"Authorization": "Bearer secret"})
    found = json.loads(connection.getresponse().read())
    connection.close()
    return sum(fault["left"] for fault in found["A"])
