"""A Redfish client for the tests: logs in, sends JSON, reads JSON, remembers nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.contract.wire import Backend

ROOT = "/redfish/v1"
FABRIC = f"{ROOT}/Fabrics/PCIe"
ZONES = f"{FABRIC}/Zones"
ENDPOINTS = f"{FABRIC}/Endpoints"
SESSIONS = f"{ROOT}/SessionService/Sessions"
ACCOUNTS = f"{ROOT}/AccountService/Accounts"


@dataclass(frozen=True)
class Said:
    """A reply."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def messages(self) -> list[str]:
        """The names of an extended error's messages."""
        return [each["MessageId"].rpartition(".")[2] for each in self.body["error"]["@Message.ExtendedInfo"]]


class Client:
    """Asks chassis A."""

    def __init__(self, box: Backend, user: str = "admin", password: str | None = None) -> None:
        self.box = box
        made = self.ask(
            "POST", SESSIONS, {"UserName": user, "Password": box.password if password is None else password}
        )
        self.login = made
        self.token = made.headers.get("x-auth-token", "")

    token = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Said:
        """The reply; header names with _ for -."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent.setdefault("X-Auth-Token", self.token)
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            sent.setdefault("Content-Type", "application/json")
        status, text, got = self.box.send(method, quote(path, safe="/?&=$#.()'@,:-_*~"), content, sent)
        plain = got.get("content-type", "").startswith("application/json") and text
        return Said(status, json.loads(text) if plain else text, got)

    def get(self, path: str) -> Any:
        """The body of a resource that must be there."""
        said = self.ask("GET", path)
        assert said.status == 200, (path, said)
        return said.body

    def add(self, device: str, port: str, **more: Any) -> Said:
        """``#Zone.AddEndpoint``."""
        return self._edit("AddEndpoint", device, port, more)

    def remove(self, device: str, port: str, **more: Any) -> Said:
        """``#Zone.RemoveEndpoint``."""
        return self._edit("RemoveEndpoint", device, port, more)

    def _edit(self, name: str, device: str, port: str, more: dict[str, Any]) -> Said:
        body = {"Endpoint": {"@odata.id": f"{ENDPOINTS}/{device}"}, **more}
        return self.ask("POST", f"{ZONES}/{port}/Actions/Zone.{name}", body)

    def members(self, path: str) -> list[str]:
        """The URIs of a collection."""
        return [each["@odata.id"] for each in self.get(path)["Members"]]


def port_of(box: Backend, device: str) -> str | None:
    """Where the table has a device."""
    port: str | None = box.rack.table()["A"][device]["port"]
    return port


def pass_time(box: Backend, seconds: float) -> None:
    """Wait for so many emulated seconds, and until what was due in them has happened, its events told: at a thousand
    times the speed of time, the thread that lets things happen comes later than the clock."""
    until_s = box.rack.clock.now() + seconds
    assert box.rack.clock.wait_until(lambda: until_s)
    box.rack.table()


def walk(client: Client) -> dict[str, Any]:
    """Every resource that can be reached from the root. At a thousand times the speed of time a session or a task may
    end between the list that names it and the question about it; then the list no longer names it."""
    found: dict[str, Any] = {}
    ahead = [(f"{ROOT}/", "")]
    while ahead:
        path, named_by = ahead.pop()
        if path in found or "#" in path:
            continue
        said = client.ask("GET", path)
        if said.status == 404 and path not in _links(client.get(named_by)):
            continue
        assert said.status == 200, (path, said)
        found[path] = said.body
        ahead += sorted((link, path) for link in _links(said.body))
    return found


def _links(value: Any) -> set[str]:
    if isinstance(value, list):
        return {link for each in value for link in _links(each)}
    if not isinstance(value, dict):
        return set()
    own = {value["@odata.id"]} if "@odata.id" in value else set()
    return own | {link for each in value.values() for link in _links(each)}
