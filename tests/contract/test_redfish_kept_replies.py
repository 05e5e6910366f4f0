"""Replies that are kept because nothing changed are those that a fresh look would give, whatever happens between."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from mews.emulator.chassis.emulated_chassis import EmulatedChassis
from mews.emulator.dialects.redfish.service import RedfishFace
from mews.emulator.dialects.redfish.settings import without_a_wire
from mews.emulator.dialects.wire import Request
from tests.contract.redfish import ACCOUNTS, ENDPOINTS, ROOT, SESSIONS, ZONES
from tests.emulator.boxes import spec

BLOCKS = f"{ROOT}/CompositionService/ResourceBlocks"
TIMED = {"attach": 4.0, "detach": 2.0}


class Service:
    """A chassis in process at a time of our own, and somebody who is logged in."""

    def __init__(self, seed: int) -> None:
        self.now_s = 1.0
        self.box = EmulatedChassis(spec(devices=4, slots=5, profile=TIMED), random.Random(seed))
        self.face = RedfishFace(self.box, without_a_wire("A", "Passw0rd-1"))
        self.token = self.ask("POST", SESSIONS, {"UserName": "admin", "Password": "Passw0rd-1"}).headers["X-Auth-Token"]

    token = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent = {"content-type": "application/json", "x-auth-token": self.token, **headers}
        content = b"" if body is None else json.dumps(body).encode()
        pending = self.face.begin(Request(method, path, {}, sent, content), self.now_s)
        return self.face.finish(pending, max(self.now_s, pending.due_s))

    def paths(self) -> list[str]:
        """Every resource."""
        found: dict[str, None] = {}
        ahead = [f"{ROOT}/"]
        while ahead:
            path = ahead.pop()
            if path in found or "#" in path or "SSE" in path:
                continue
            found[path] = None
            ahead += links(json.loads(self.ask("GET", path).body))
        return list(found)

    def agrees(self) -> None:
        """What is kept is what a fresh look shows."""
        paths = self.paths()
        kept = {path: self.ask("GET", path) for path in paths}
        for path in paths:
            self.face.state.rendered.changed()
            fresh = self.ask("GET", path)
            assert (kept[path].body, kept[path].headers) == (fresh.body, fresh.headers), path


def links(value: Any) -> list[str]:
    if isinstance(value, list):
        return [link for each in value for link in links(each)]
    if not isinstance(value, dict):
        return []
    own = [value["@odata.id"]] if "@odata.id" in value else []
    return own + [link for each in value.values() for link in links(each)]


def edit(name: str, device: str, zone: str) -> tuple[str, str, Any]:
    return "POST", f"{ZONES}/{zone}/Actions/Zone.{name}Endpoint", {"Endpoint": {"@odata.id": f"{ENDPOINTS}/{device}"}}


def happenings(service: Service, rng: random.Random) -> list[Any]:
    """What may happen to it, by Redfish or behind its back."""
    box, device, zone = service.box, f"d{rng.randrange(4)}", rng.choice("12")
    system, chassis = f"{ROOT}/Systems/host-{zone}", f"{ROOT}/Chassis/{box.spec.name}"
    block = [{"@odata.id": f"{BLOCKS}/host-{zone}"}]
    requests = [
        edit("Add", device, zone),
        edit("Remove", device, zone),
        ("PATCH", chassis, {"AssetTag": str(rng.random())}),
        ("PATCH", f"{chassis}/PCIeDevices/{device}", {"ReadyToRemove": rng.random() < 0.5}),
        ("PATCH", system, {"Boot": {"BootSourceOverrideTarget": rng.choice(["Pxe", "None"])}}),
        ("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": rng.choice(["ForceOff", "On", "PowerCycle"])}),
        ("POST", ACCOUNTS, {"UserName": f"u{rng.random()}", "Password": "Passw0rd-1", "RoleId": "Operator"}),
        ("POST", SESSIONS, {"UserName": "admin", "Password": "Passw0rd-1"}),
        ("POST", f"{ROOT}/Systems", {"Name": "c", "Links": {"ResourceBlocks": block}}),
        ("DELETE", f"{ROOT}/Systems/c", None),
    ]
    behind = [
        lambda: box.edits.edit(device, rng.choice(["1", "2", None]), service.now_s),
        lambda: box.edits.set_link(device, rng.random() < 0.5),
        lambda: box.edits.set_uuid(device, rng.choice([None, "GPU-0"])),
        lambda: box.settle(service.now_s),
        lambda: box.faults.add({"kind": "events-out-of-order", "count": 2}, service.now_s),
        lambda: box.reset(service.now_s),
    ]
    return [*(lambda each=each: service.ask(*each) for each in requests), *behind]


@pytest.mark.parametrize("seed", range(2))
def test_a_kept_reply_is_what_a_fresh_look_would_show(seed):
    service, rng = Service(seed), random.Random(seed)
    for _ in range(25):
        rng.choice(happenings(service, rng))()
        service.agrees()
        service.now_s += rng.choice([0.0, 0.5, 3.0, 8.0])
        service.agrees()


def test_an_unchanged_resource_is_rendered_once_and_a_sensor_each_time(monkeypatch):
    service = Service(1)
    looked = []
    real = service.face._body
    monkeypatch.setattr(service.face, "_body", lambda view, path: looked.append(path) or real(view, path))
    sensor = json.loads(service.ask("GET", f"{ROOT}/Chassis/{service.box.spec.name}/Sensors").body)["Members"][-1]
    for _ in range(3):
        service.ask("GET", f"{ZONES}/1")
        service.ask("GET", sensor["@odata.id"])
    assert looked.count(f"{ZONES}/1") == 1
    assert looked.count(sensor["@odata.id"]) == 3


def test_a_kept_reply_is_for_those_who_may_read_it_and_answers_what_they_have_already():
    service = Service(1)
    tag = service.ask("GET", f"{ZONES}/1").headers["ETag"]
    assert service.ask("GET", f"{ZONES}/1", **{"if-none-match": tag}).status == 304
    assert service.ask("GET", f"{ZONES}/1", **{"if-none-match": '"x"'}).status == 200
    service.token = "nobody's"
    assert service.ask("GET", f"{ZONES}/1").status == 401


def test_a_change_whose_event_comes_late_is_seen_at_once():
    service = Service(1)
    assert f"{ENDPOINTS}/d0" in str(service.ask("GET", f"{ZONES}/1").body)
    service.box.faults.add({"kind": "events-out-of-order", "count": 5}, service.now_s)
    service.box.edits.edit("d0", None, service.now_s)
    assert f"{ENDPOINTS}/d0" not in str(service.ask("GET", f"{ZONES}/1").body)


def test_a_read_whose_if_match_fails_is_not_answered_kept_or_not():
    service = Service(1)
    for _ in range(2):  # the second time the reply is kept
        tag = service.ask("GET", ZONES).headers["ETag"]
        assert service.ask("GET", ZONES, **{"if-match": tag}).status == 200
        assert service.ask("GET", ZONES, **{"if-match": '"another"'}).status == 412
        assert service.ask("GET", ZONES, **{"if-match": f"W/{tag}"}).status == 412  # strong comparison
        assert service.ask("GET", ZONES, **{"if-none-match": f"W/{tag}"}).status == 304  # weak comparison
        assert service.ask("GET", ZONES, **{"if-match": '"another"', "if-none-match": tag}).status == 412
        assert service.ask("GET", ZONES, **{"if-match": "*"}).status == 200


def test_a_write_compares_tags_strongly():
    service = Service(1)
    tag = service.ask("GET", f"{ROOT}/AccountService").headers["ETag"]
    weak = service.ask("PATCH", f"{ROOT}/AccountService", {"AccountLockoutThreshold": 7}, **{"if-match": f"W/{tag}"})
    assert weak.status == 412
    strong = service.ask("PATCH", f"{ROOT}/AccountService", {"AccountLockoutThreshold": 7}, **{"if-match": tag})
    assert strong.status == 200
