"""What the client of configuration manager and layout-apply sends, and what it makes of replies."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from mews.harness.clock import run_virtual
from mews.kube.chassis.cdim import APPLY, RESOURCES, CdimClient
from mews.kube.chassis.port import (
    ChassisError,
    DeviceRecord,
    Listing,
    ReplyOutcome,
    TransportError,
    WireRequest,
    WireResponse,
)

LOST = None
"""In place of an answer: none comes."""


def run(call: Any) -> Any:
    """What a coroutine returns, as time jumps."""

    async def main() -> Any:
        return await call

    return run_virtual(main)


def link(kind: str, device: str) -> dict[str, str]:
    return {"type": kind, "deviceID": device}


def listing(*places: str | None, **more: Any) -> bytes:
    """Devices d0, d1, … in these nodes, and the adapters of the nodes n1 and n2 on host ports 1 and 2."""
    devices = [
        {
            "device": {
                "deviceID": f"u{n}", "type": "GPU", "attribute": {"name": f"d{n}", "uuid": f"GPU-{n}"},
                "links": [] if place is None else [link("CPU", place), link("eeio", f"far-{place}")],
            },
            "detected": True,
        }
        for n, place in enumerate(places)
    ]  # fmt: skip
    for port in ("1", "2"):
        node = f"n{port}"
        shown = {"type": "destinationFabricAdapter", "deviceID": f"far-{node}", "attribute": {"hostPort": port}}
        devices.append({"device": {**shown, "links": [link("CPU", node)]}, "detected": True})
        devices.append({"device": {"type": "CPU", "deviceID": node, "links": []}, "detected": True})
    devices.extend(more.get("also", ()))
    return json.dumps({"count": len(devices), "resources": devices}).encode()


class Manager:
    """Answers listings, and each layout by what it is told to: a status and a body, or LOST."""

    def __init__(self, *places: str | None, posts: Any = (), layouts: Any = (), also: Any = ()) -> None:
        self.places, self.also = list(places), also
        self.posts, self.layouts = list(posts), list(layouts)
        self.asked: list[WireRequest] = []
        self.running: list[dict[str, Any]] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        await asyncio.sleep(0)
        if request.path == RESOURCES:
            return WireResponse(200, listing(*self.places, also=self.also))
        if request.path.startswith(f"{APPLY}?"):
            return WireResponse(200, json.dumps({"applyResults": self.running}).encode())
        told = self.posts if request.method == "POST" else self.layouts if request.method == "GET" else [(202, {})]
        default = (202, {"applyID": "a1"}) if request.method == "POST" else (200, {"status": "COMPLETED"})
        answer = told.pop(0) if told else default
        if answer is LOST:
            raise TransportError("dropped")
        return WireResponse(answer[0], json.dumps(answer[1]).encode())

    def sent(self, method: str) -> list[WireRequest]:
        return [each for each in self.asked if each.method == method and each.path != RESOURCES]

    def procedures(self) -> list[Any]:
        return [json.loads(each.body)["procedures"] for each in self.sent("POST")]


def procedure(operation: str, node: str, device: str) -> dict[str, Any]:
    return {
        "operationID": 1, "operation": operation, "targetCPUID": node, "targetDeviceID": device, "dependencies": [],
    }  # fmt: skip


def result(status: str, code: int, message: str = "") -> dict[str, Any]:
    body = {"code": "x", "message": message}
    return {"operationID": 1, "status": status, "statusCode": code, "responseBody": body}


def test_devices_and_ports_are_called_as_the_chassis_calls_them():
    found = run(CdimClient(Manager("n1", None)).resources())
    assert found == Listing((DeviceRecord("d0", "GPU-0", "1"), DeviceRecord("d1", "GPU-1", None)), ("1", "2"))


def test_where_the_document_says_nothing_they_are_called_by_their_ids():
    bare = {"device": {"deviceID": "u9", "type": "GPU", "links": [link("CPU", "n9")]}, "detected": True}
    gone = {"device": {"deviceID": "u8", "type": "GPU", "links": []}, "detected": False}
    far = {
        "device": {"deviceID": "f", "type": "destinationFabricAdapter", "attribute": {}, "links": [link("CPU", "n9")]}
    }
    found = run(CdimClient(Manager(also=[bare, gone, {**far, "detected": True}])).resources())
    assert found == Listing((DeviceRecord("u9", "", "n9"),), ("1", "2", "n9"))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"resources":[{}]}', b'{"resources":[{"detected":true}]}'])
def test_a_listing_in_another_form_is_an_error(body):
    class Odd(Manager):
        async def send(self, request):
            return WireResponse(200, body)

    with pytest.raises(ChassisError, match="in another form"):
        run(CdimClient(Odd()).resources())


def test_an_error_in_place_of_a_listing_is_told():
    class Away(Manager):
        async def send(self, request):
            return WireResponse(500, b'{"code":"internalServerError","message":"m","details":"no DB"}')

    with pytest.raises(ChassisError, match="HTTP 500: internalServerError no DB"):
        run(CdimClient(Away()).resources())


def test_an_attach_is_a_layout_of_one_connect_that_is_followed():
    manager = Manager(None, layouts=[(200, {"status": "IN_PROGRESS"}), (200, {"status": "COMPLETED"})])
    reply = run(CdimClient(manager).attach("d0", "2"))
    assert reply.outcome is ReplyOutcome.DONE
    assert manager.procedures() == [[procedure("connect", "n2", "u0")]]
    assert [each.path for each in manager.sent("GET")] == [f"{APPLY}/a1"] * 2


def test_a_detach_leaves_the_node_that_the_device_was_last_in():
    async def both():
        client = CdimClient(manager)
        await client.attach("d0", "2")
        return await client.detach("d0")

    manager = Manager(None)
    assert run(both()).outcome is ReplyOutcome.DONE
    assert manager.procedures()[1] == [procedure("disconnect", "n2", "u0")]


def test_a_device_that_is_free_needs_no_layout():
    manager = Manager(None)
    reply = run(CdimClient(manager).detach("d0"))
    assert (reply.outcome, reply.remark, manager.sent("POST")) == (ReplyOutcome.DONE, "free already", [])


def test_a_device_that_has_gone_elsewhere_is_looked_for():
    async def moved():
        client = CdimClient(manager)
        await client.resources()
        manager.places = ["n2"]
        return await client.detach("d0")

    manager = Manager("n1", layouts=[(200, {"status": "FAILED", "applyResult": [result("FAILED", 404)]})])
    assert run(moved()).outcome is ReplyOutcome.DONE
    assert [each[0]["targetCPUID"] for each in manager.procedures()] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("layout", "outcome"),
    [
        ({"status": "FAILED", "applyResult": [result("FAILED", 409, "taken")]}, ReplyOutcome.FAILED),
        ({"status": "FAILED", "applyResult": [result("FAILED", 500)]}, ReplyOutcome.UNKNOWN),
        ({"status": "FAILED", "applyResult": [result("COMPLETED", 200)]}, ReplyOutcome.UNKNOWN),
        ({"status": "FAILED"}, ReplyOutcome.UNKNOWN),
        ({"status": "CANCELED", "applyResult": [result("COMPLETED", 200)]}, ReplyOutcome.UNKNOWN),
    ],
)
def test_only_a_refusal_of_the_hardware_is_surely_not_done(layout, outcome):
    reply = run(CdimClient(Manager(None, layouts=[(200, layout)])).attach("d0", "1"))
    assert reply.outcome is outcome
    if outcome is ReplyOutcome.FAILED:
        assert reply.remark == "409: taken"


def test_a_layout_that_meets_another_one_is_asked_for_until_it_is_taken():
    busy = (409, {"code": "E40010", "message": "Already running."})
    manager = Manager(None, posts=[busy, busy])
    assert run(CdimClient(manager).attach("d0", "1")).outcome is ReplyOutcome.DONE
    assert len(manager.sent("POST")) == 3


def test_one_that_is_never_taken_has_failed():
    manager = Manager(None, posts=[(409, {"code": "E40010", "message": "Already running."})] * 99)
    reply = run(CdimClient(manager, patience_s=5.0).attach("d0", "1"))
    assert (reply.outcome, reply.remark) == (ReplyOutcome.FAILED, "HTTP 409: E40010 Already running.")
    assert 5 <= len(manager.sent("POST")) <= 7


def test_a_suspended_layout_in_the_way_is_canceled():
    manager = Manager(None, posts=[(409, {"code": "E40027", "message": "Suspended"})])
    manager.running = [{"applyID": "b2", "status": "SUSPENDED"}]
    assert run(CdimClient(manager).attach("d0", "1")).outcome is ReplyOutcome.DONE
    assert [each.path for each in manager.sent("PUT")] == [f"{APPLY}/b2?action=cancel"]


def test_a_layout_of_its_own_that_is_suspended_is_canceled_and_nobody_knows():
    manager = Manager(None, layouts=[(200, {"status": "SUSPENDED", "applyResult": [result("FAILED", 409)]})])
    assert run(CdimClient(manager).attach("d0", "1")).outcome is ReplyOutcome.UNKNOWN
    assert [each.path for each in manager.sent("PUT")] == [f"{APPLY}/a1?action=cancel"]


@pytest.mark.parametrize(("device", "outcome"), [("u0", ReplyOutcome.DONE), ("u1", ReplyOutcome.UNKNOWN)])
def test_a_layout_whose_answer_is_lost_is_looked_for_and_followed(device, outcome):
    manager = Manager(None, posts=[LOST])
    manager.running = [{"applyID": "c3", "procedures": [procedure("connect", "n1", device)]}]
    assert run(CdimClient(manager).attach("d0", "1")).outcome is outcome
    followed = [each.path for each in manager.sent("GET") if "?" not in each.path]
    assert followed == ([f"{APPLY}/c3"] if outcome is ReplyOutcome.DONE else [])


def test_a_lost_look_at_a_layout_is_made_again():
    manager = Manager(None, layouts=[LOST, (500, {}), (200, {"status": "COMPLETED"})])
    assert run(CdimClient(manager).attach("d0", "1")).outcome is ReplyOutcome.DONE


@pytest.mark.parametrize(
    ("posts", "layouts"),
    [
        ([(202, {})], ()),
        ([(500, {"code": "E40002", "message": "m"})], ()),
        ((), [(404, {"code": "E40020", "message": "m"})]),
        ((), [(200, {"status": "IN_PROGRESS"})] * 99),
    ],
)
def test_what_cannot_be_known_is_unknown(posts, layouts):
    client = CdimClient(Manager(None, posts=posts, layouts=layouts), patience_s=5.0)
    assert run(client.attach("d0", "1")).outcome is ReplyOutcome.UNKNOWN


@pytest.mark.parametrize(("device", "port"), [("nope", "1"), ("d0", "9")])
def test_what_is_not_listed_cannot_be_moved(device, port):
    manager = Manager(None)
    reply = run(CdimClient(manager).attach(device, port))
    assert reply.outcome is ReplyOutcome.FAILED and "not listed" in reply.remark
    assert manager.sent("POST") == []
    assert run(CdimClient(manager).detach("nope")).outcome is ReplyOutcome.FAILED
