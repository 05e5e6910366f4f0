"""Dialect cdim as time passes: layouts that are under way, canceled, rolled back and lost."""

from __future__ import annotations

import json
import random

import pytest

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.cdim.service import API, CdimFace
from mews.emulator.dialects.identities import machine_uuid, resource_uuid
from mews.emulator.dialects.wire import Dropped, Request, split_target
from tests.contract.cdim import check
from tests.emulator.boxes import TIMED, spec


class Timed:
    """A chassis whose attaches take 10 s and detaches 5 s, two devices free."""

    def __init__(self):
        self.box = EmulatedChassis(spec(devices=4, slots=5, profile=TIMED), random.Random(1))
        self.face = CdimFace(self.box)
        self.now_s = 0.0
        for device in ("d2", "d3"):
            self.box.edits.edit(device, None, 0.0)

    def call(self, method, path, body=None):
        content = b"" if body is None else json.dumps(body).encode()
        bare, query = split_target(f"{API}{path}")
        pending = self.face.begin(Request(method, bare, query, {}, content), self.now_s)
        self.now_s = max(self.now_s, pending.due_s)
        reply = self.face.finish(pending, self.now_s)
        if isinstance(reply, Dropped):
            return 0, None
        value = json.loads(reply.body) if reply.body else None
        check(method, bare, reply.status, value)
        return reply.status, value

    def apply(self, *procedures):
        status, value = self.call("POST", "/layout-apply", {"procedures": list(procedures)})
        assert status == 202, value
        return value["applyID"]

    def layout(self, layout):
        return self.call("GET", f"/layout-apply/{layout}")[1]

    def put(self, layout, query):
        return self.call("PUT", f"/layout-apply/{layout}?{query}")

    def ports(self):
        return {row.device: row.port for row in self.box.rows(self.now_s)}


def move(operation, device, number=1, after=(), port="1"):
    return {
        "operationID": number, "operation": operation, "targetCPUID": machine_uuid(f"host-{port}"),
        "targetDeviceID": resource_uuid("A", device), "dependencies": list(after),
    }  # fmt: skip


@pytest.fixture
def timed():
    return Timed()


def test_a_layout_is_answered_at_once_and_goes_on(timed):
    layout = timed.apply(move("connect", "d2"))
    assert timed.now_s == 0.0
    shown = timed.layout(layout)
    assert (shown["status"], shown["applyResult"]) == ("IN_PROGRESS", [])
    assert timed.put(layout, "action=resume")[1]["code"] == "E40022"
    assert timed.call("DELETE", f"/layout-apply/{layout}")[1]["code"] == "E40024"
    timed.now_s = 9.9
    assert timed.layout(layout)["status"] == "IN_PROGRESS"
    timed.now_s = 10.0
    shown = timed.layout(layout)
    assert (shown["status"], shown["startedAt"], shown["endedAt"]) == (
        "COMPLETED", "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"
    )  # fmt: skip


def test_one_layout_is_applied_at_a_time(timed):
    timed.apply(move("connect", "d2"))
    status, shown = timed.call("POST", "/layout-apply", {"procedures": [move("connect", "d3")]})
    assert (status, shown["code"]) == (409, "E40010")
    timed.now_s = 10.0
    timed.apply(move("connect", "d3"))
    assert timed.call("GET", "/layout-apply?status=IN_PROGRESS")[1]["count"] == 1


def test_procedures_begin_once_those_before_them_are_done(timed):
    layout = timed.apply(move("disconnect", "d0"), move("connect", "d0", 2, (1,), port="2"))
    timed.now_s = 6.0
    assert [each["operationID"] for each in timed.layout(layout)["applyResult"]] == [1]
    assert timed.ports()["d0"] is None
    timed.now_s = 15.0
    assert timed.layout(layout)["status"] == "COMPLETED"
    assert timed.ports()["d0"] == "2"


def test_a_canceled_layout_does_what_it_has_begun_and_no_more(timed):
    layout = timed.apply(move("disconnect", "d0"), move("disconnect", "d1", 2, (1,)))
    assert timed.put(layout, "action=cancel") == (202, {"status": "CANCELING"})
    assert timed.put(layout, "action=cancel") == (200, {"status": "CANCELING"})
    timed.now_s = 5.0
    shown = timed.layout(layout)
    assert (shown["status"], shown["executeRollback"]) == ("CANCELED", False)
    assert [each["status"] for each in shown["applyResult"]] == ["COMPLETED", "CANCELED"]
    assert [each["operation"] for each in shown["rollbackProcedures"]] == ["connect"]
    assert "rollbackStatus" not in shown and "endedAt" in shown
    assert (timed.ports()["d0"], timed.ports()["d1"]) == (None, "1")


def test_a_rollback_takes_back_what_was_done(timed):
    layout = timed.apply(move("disconnect", "d0"), move("disconnect", "d1", 2, (1,)))
    timed.put(layout, "action=cancel&rollbackOnCancel=true")
    timed.now_s = 5.0
    shown = timed.layout(layout)
    assert (shown["status"], shown["rollbackStatus"]) == ("CANCELED", "IN_PROGRESS") and "endedAt" not in shown
    assert timed.call("POST", "/layout-apply", {"procedures": []})[1]["code"] == "E40010"
    assert timed.put(layout, "action=cancel")[1]["code"] == "E40022"
    timed.now_s = 15.0
    shown = timed.layout(layout)
    assert shown["rollbackStatus"] == "COMPLETED" and shown["endedAt"] == shown["rollbackEndedAt"]
    assert timed.ports()["d0"] == "1"
    assert timed.put(layout, "action=cancel") == (200, {"status": "CANCELED", "rollbackStatus": "COMPLETED"})


def test_a_rollback_takes_back_the_last_move_first(timed):
    moves = move("disconnect", "d0"), move("connect", "d0", 2, (1,), port="2"), move("disconnect", "d1", 3, (2,))
    layout = timed.apply(*moves)
    timed.now_s = 6.0
    timed.put(layout, "action=cancel&rollbackOnCancel=true")
    timed.now_s = 60.0
    shown = timed.layout(layout)
    assert [each["operation"] for each in shown["rollbackProcedures"]] == ["disconnect", "connect"]
    assert (shown["rollbackStatus"], timed.ports()["d0"], timed.ports()["d1"]) == ("COMPLETED", "1", "1")


def test_a_suspended_rollback_is_resumed_or_has_failed(timed):
    for action, outcome in (("resume", "IN_PROGRESS"), ("cancel", "FAILED")):
        layout = timed.apply(move("disconnect", "d0"))
        timed.put(layout, "action=cancel&rollbackOnCancel=true")
        timed.box.faults.add(
            {"kind": "layout-half-done", "ends": "SUSPENDED", "when": "before", "operation": "attach"}, timed.now_s
        )
        timed.now_s += 15.0
        shown = timed.layout(layout)
        assert shown["rollbackStatus"] == "SUSPENDED" and "endedAt" not in shown
        assert timed.call("POST", "/layout-apply", {"procedures": []})[1]["code"] == "E40027"
        assert timed.put(layout, f"action={action}") == (202, {"status": "CANCELED", "rollbackStatus": outcome})
        timed.now_s += 10.0
        assert timed.layout(layout)["rollbackStatus"] == {"resume": "COMPLETED", "cancel": "FAILED"}[action]
        assert timed.ports()["d0"] == {"resume": "1", "cancel": None}[action]


def test_a_layout_whose_manager_restarts_has_failed(timed):
    layout = timed.apply(move("connect", "d2"), move("connect", "d3", 2, (1,)))
    timed.box.settle(3.0)
    timed.box.management.reboot(5.0)
    timed.now_s = 4.0
    assert timed.call("GET", f"/layout-apply/{layout}") == (0, None)
    timed.now_s = 9.0
    shown = timed.layout(layout)
    assert shown["status"] == "FAILED"
    assert [each["status"] for each in shown["applyResult"]] == ["FAILED", "SKIPPED"]
    assert timed.ports()["d2"] is None
    timed.apply(move("connect", "d2"))


def test_a_cancel_that_finds_the_process_lost_says_so(timed):
    layout = timed.apply(move("connect", "d2"))
    timed.box.settle(3.0)
    timed.box.management.reboot(1.0)
    timed.now_s = 5.0
    status, shown = timed.put(layout, "action=cancel")
    assert (status, shown["code"], shown["status"]) == (409, "E40028", "FAILED")


def test_a_device_that_another_client_moves_while_its_disconnect_waits_stays_there(timed):
    layout = timed.apply(move("disconnect", "d0"))
    timed.box.edits.edit("d0", "2", 1.0)
    timed.now_s = 5.0
    shown = timed.layout(layout)
    assert (shown["status"], shown["applyResult"][0]["statusCode"]) == ("FAILED", 404)
    assert timed.ports()["d0"] == "2"


def test_layouts_that_have_ended_are_forgotten_in_the_end(timed, monkeypatch):
    monkeypatch.setattr("mews.emulator.dialects.cdim.manager.KEPT", 3)
    made = [timed.apply() for _ in range(5)]
    kept = [each["applyID"] for each in timed.call("GET", "/layout-apply?orderBy=asc")[1]["applyResults"]]
    assert kept == made[2:]
