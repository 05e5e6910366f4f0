"""Dialect fm as time passes: tokens that expire, moves that are under way while others are asked for."""

from __future__ import annotations

import json
import random

import pytest

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.fm.service import FmFace
from mews.emulator.dialects.fm.tokens import LIFETIME_S
from mews.emulator.dialects.identities import TENANT, machine_uuid, resource_uuid
from mews.emulator.dialects.wire import Request
from tests.contract.fm import AUTOSCALER, FABRIC, TOKEN, encoded, shell
from tests.emulator.boxes import TIMED, spec

UPDATE = f"{FABRIC}/machines/{machine_uuid('host-1')}/update"
QUERY = {"tenant_uuid": TENANT}


class Timed:
    """A chassis whose moves take seconds, two devices free."""

    def __init__(self):
        self.box = EmulatedChassis(spec(devices=4, slots=5, profile=TIMED), random.Random(1))
        self.face = FmFace(self.box)
        for device in ("d2", "d3"):
            self.box.edits.edit(device, None, 0.0)
        granted = self.face.begin(Request("POST", TOKEN, {}, {}, encoded(self.face.password)), 0.0).reply
        self.headers = {"authorization": f"Bearer {json.loads(granted.body)['access_token']}"}
        self.model = self.box.table.spec("d0").model

    def begin(self, method, path, body=None, now_s=0.0):
        content = b"" if body is None else json.dumps(body).encode()
        return self.face.begin(Request(method, path, QUERY, self.headers, content), now_s)

    def ask(self, method, path, body=None, now_s=0.0):
        pending = self.begin(method, path, body, now_s)
        return self.face.finish(pending, max(now_s, pending.due_s))

    def by_model(self):
        condition = [{"column": "model", "operator": "eq", "value": self.model}]
        return shell("1", {"res_type": "gpu", "res_spec": {"condition": condition}, "res_num": 1})

    def cluster(self, now_s):
        path = f"{AUTOSCALER}/machines/{machine_uuid('host-1')}"
        return json.loads(self.ask("GET", path, None, now_s).body)["data"]["cluster"]["machine"]["resspecs"][0]


@pytest.fixture
def timed():
    return Timed()


def test_a_token_is_good_until_its_exp(timed):
    path = f"{FABRIC}/machines"
    assert timed.ask("GET", path, None, LIFETIME_S - 1.0).status == 200
    assert timed.ask("GET", path, None, float(LIFETIME_S)).status == 401


def test_two_attaches_at_once_take_two_devices(timed):
    both = [timed.begin("PATCH", UPDATE, timed.by_model()) for _ in range(2)]
    replies = [timed.face.finish(each, each.due_s) for each in both]
    names = [json.loads(each.body)["data"]["machines"][0]["resources"][0]["res_name"] for each in replies]
    assert names == ["d2", "d3"]


def test_what_is_on_its_way_is_not_counted_and_not_asked_for_again(timed):
    before = timed.cluster(0.0)
    asked = {"spec_uuid": before["spec_uuid"], "device_count": before["device_count"] + 1}
    path = f"{AUTOSCALER}/machines/{machine_uuid('host-1')}/actions/resize"
    for _ in range(3):
        assert timed.ask("POST", path, {"increase_resource_count": asked}).status == 202
    assert [each.device for each in timed.box.operations.writes()] == ["d2"]
    during = timed.box.now_s
    shown = timed.face._clusters.machine(timed.face._view.by_port["1"], timed.box.rows(during))
    spec_shown = shown["data"]["cluster"]["machine"]["resspecs"][0]
    words = {each["detail"]["res_name"]: each["status"] for each in spec_shown["devices"]}
    assert words == {"d0": "ADD_COMPLETE", "d1": "ADD_COMPLETE", "d2": "ADDING"}
    assert spec_shown["device_count"] == before["device_count"]
    assert timed.cluster(100.0)["device_count"] == before["device_count"] + 1


def test_a_device_that_another_client_moves_while_its_detach_waits_stays_there(timed):
    named = {"res_type": "gpu", "res_uuid": resource_uuid(timed.box.spec.name, "d0"), "res_num": 1}
    waiting = timed.begin("DELETE", UPDATE, shell("1", named))
    timed.box.edits.edit("d0", "2", 1.0)
    assert timed.face.finish(waiting, waiting.due_s).status == 404
    assert timed.box.row("d0", waiting.due_s).port == "2"
