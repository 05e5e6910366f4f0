"""What the client of the fabric manager sends, and what it makes of replies."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from mews.kube.chassis.fm import FmClient, FmRealm
from mews.kube.chassis.port import (
    ChassisError,
    DeviceRecord,
    Listing,
    RedfishCredentials,
    ReplyOutcome,
    TransportError,
    WireRequest,
    WireResponse,
)

ACCOUNT = RedfishCredentials("me", "word&=")
MACHINES = [{"mach_uuid": "m1", "mach_id": 1}, {"mach_uuid": "m2", "mach_id": 2}]


def token(**claims: Any) -> str:
    packed = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{packed}.x"


def listing(*places: str | None) -> bytes:
    resources = [
        {"res_uuid": f"u{n}", "res_name": f"d{n}", "res_type": "gpu", "res_serial_num": f"GPU-{n}", "mach_uuid": place}
        for n, place in enumerate(places)
    ]
    return json.dumps({"data": {"machines": MACHINES, "resources": resources}}).encode()


class Manager:
    """Answers logins, listings and updates, and remembers what it was asked."""

    def __init__(self, *places: str | None, updates: tuple[int, ...] = (200,), reads: tuple[int, ...] = ()) -> None:
        self.places, self.updates, self.reads = list(places), list(updates), list(reads)
        self.asked: list[WireRequest] = []
        self.logins = 0

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(request)
        if request.path.startswith("/id_manager/"):
            self.logins += 1
            granted = {"access_token": token(tenant_uuid="t1", exp=1, n=self.logins), "expires_in": 300}
            return WireResponse(200, json.dumps(granted).encode())
        if request.method == "GET":
            status = self.reads.pop(0) if self.reads else 200
            return WireResponse(status, listing(*self.places) if status == 200 else b"{}")
        status = self.updates.pop(0)
        if status == 0:
            raise TransportError("dropped")
        body = {"status": status, "detail": {"code": "E020301", "message": "no"}}
        return WireResponse(status, json.dumps(body).encode())

    def sent(self, method: str) -> list[WireRequest]:
        return [each for each in self.asked if each.method == method and not each.path.startswith("/id_manager/")]


def client(manager: Manager, **realm: str) -> FmClient:
    return FmClient(manager, ACCOUNT, FmRealm(**realm))


def test_a_login_is_a_form_in_the_realm_and_its_token_names_the_tenant():
    manager = Manager("m1")
    asyncio.run(client(manager, realm="a b", client_id="c", client_secret="s").resources())
    login, read = manager.asked
    assert (login.method, login.path) == ("POST", "/id_manager/realms/a%20b/protocol/openid-connect/token")
    assert {name: value for name, (value,) in parse_qs(login.body.decode()).items()} == {
        "client_id": "c", "client_secret": "s", "username": "me", "password": "word&=", "scope": "openid",
        "response_type": "id_token token", "grant_type": "password",
    }  # fmt: skip
    assert read.path == "/fabric_manager/api/v1/resources?tenant_uuid=t1"
    assert read.headers["Authorization"].startswith("Bearer e30.")


def test_a_tenant_that_is_named_is_the_one():
    manager = Manager("m1")
    asyncio.run(client(manager, tenant="t9").resources())
    assert manager.asked[1].path.endswith("?tenant_uuid=t9")


def test_a_listing_has_devices_by_name_and_machines_by_port():
    assert asyncio.run(client(Manager("m1", None)).resources()) == Listing(
        (DeviceRecord("d0", "GPU-0", "1"), DeviceRecord("d1", "GPU-1", None)), ("1", "2")
    )


def test_moves_name_the_resource_and_the_machine():
    async def story() -> list[WireRequest]:
        manager = Manager("m1", None, updates=(200, 204))
        api = client(manager)
        assert (await api.attach("d1", "2")).outcome is ReplyOutcome.DONE
        assert (await api.detach("d1")).outcome is ReplyOutcome.DONE
        return [*manager.sent("PATCH"), *manager.sent("DELETE")]

    attach, detach = asyncio.run(story())
    assert attach.path == detach.path == "/fabric_manager/api/v1/machines/m2/update?tenant_uuid=t1"
    condition = {"column": "res_uuid", "operator": "eq", "value": "u1"}
    specs = {"res_type": "gpu", "res_spec": {"condition": [condition]}, "res_num": 1}
    shell = {"tenants": {"tenant_uuid": "t1", "machines": [{"mach_uuid": "m2", "resources": [{"res_specs": [specs]}]}]}}
    assert json.loads(attach.body) == shell
    shell["tenants"]["machines"][0]["resources"][0]["res_specs"] = [{"res_type": "gpu", "res_uuid": "u1", "res_num": 1}]  # type: ignore[index]
    assert json.loads(detach.body) == shell


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, ReplyOutcome.DONE),
        (204, ReplyOutcome.DONE),
        (400, ReplyOutcome.FAILED),
        (409, ReplyOutcome.FAILED),
        (401, ReplyOutcome.UNKNOWN),
        (500, ReplyOutcome.UNKNOWN),
        (0, ReplyOutcome.UNKNOWN),
    ],
)
def test_what_a_status_says_of_a_move(status: int, outcome: ReplyOutcome):
    reply = asyncio.run(client(Manager(None, updates=(status,))).attach("d0", "1"))
    assert reply.outcome is outcome
    assert status not in (400, 409) or reply.remark == f"HTTP {status}: E020301 no"


def test_after_a_401_there_is_a_new_login_and_a_read_is_made_again():
    manager = Manager("m1", reads=(401,))
    asyncio.run(client(manager).resources())
    assert (manager.logins, len(manager.sent("GET"))) == (2, 2)


def test_a_move_is_never_made_again_by_itself():
    async def story() -> Manager:
        manager = Manager(None, updates=(401, 200))
        api = client(manager)
        assert (await api.attach("d0", "1")).outcome is ReplyOutcome.UNKNOWN
        assert len(manager.sent("PATCH")) == 1
        await api.attach("d0", "1")
        return manager

    assert asyncio.run(story()).logins == 2


def test_a_device_that_has_left_its_machine_is_looked_for_and_a_free_one_is_done():
    async def story(after: str | None, updates: tuple[int, ...]) -> tuple[ReplyOutcome, list[str]]:
        manager = Manager("m1", updates=updates)
        api = client(manager)
        await api.resources()
        manager.places = [after]
        outcome = (await api.detach("d0")).outcome
        return outcome, [each.path.split("/")[5] for each in manager.sent("DELETE")]

    assert asyncio.run(story("m2", (404, 204))) == (ReplyOutcome.DONE, ["m1", "m2"])
    assert asyncio.run(story(None, (404,))) == (ReplyOutcome.DONE, ["m1"])
    assert asyncio.run(story("m2", (404, 404))) == (ReplyOutcome.FAILED, ["m1", "m2"])


def test_what_is_not_listed_fails_without_a_move():
    manager = Manager(None)
    assert asyncio.run(client(manager).attach("d9", "1")).outcome is ReplyOutcome.FAILED
    assert asyncio.run(client(manager).attach("d0", "9")).outcome is ReplyOutcome.FAILED
    assert asyncio.run(client(manager).detach("d9")).outcome is ReplyOutcome.FAILED
    assert manager.sent("PATCH") == manager.sent("DELETE") == []


class Canned:
    """Always answers the same."""

    def __init__(self, status: int, body: bytes) -> None:
        self.response = WireResponse(status, body)

    async def send(self, request: WireRequest) -> WireResponse:
        return self.response


@pytest.mark.parametrize("status", [200, 401, 500])
@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"access_token":7,"expires_in":"x"}', b"[" * 100_000])
def test_a_login_that_gives_no_token_is_no_listing_and_no_move(status: int, body: bytes):
    api = FmClient(Canned(status, body), ACCOUNT)
    with pytest.raises(ChassisError):
        asyncio.run(api.resources())
    assert asyncio.run(api.attach("d0", "1")).outcome is not ReplyOutcome.DONE
