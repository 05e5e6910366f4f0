"""The table over Fujitsu's fabric manager (contract chassis.md 5): a token, machines, and the resources in them."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from mews.emulator.dialects.identities import CLUSTER
from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.errors import MalformedError
from mews.harness.conformance.fields import at, objects, text
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions, more_than_once

FABRIC = "/fabric_manager/api/v1"
AUTOSCALER = "/cluster_manager/cluster_autoscaler"
RESOURCES = f"{FABRIC}/resources"
NO_MACHINE = "00000000-0000-4000-8000-000000000000"
"""A machine that no fabric has."""
_LOGIN = ("MEWS_FM_REALM", "MEWS_FM_CLIENT_ID", "MEWS_FM_CLIENT_SECRET")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class LoginRealm(Struct, frozen=True):
    """How to log in, and as whose client; ``tenant``: whose machines, "" for the tenant that the token names."""

    realm: str
    client_id: str
    client_secret: str
    tenant: str


def realm_of_environment() -> LoginRealm:
    """Return it as the client of the components has it: ``MEWS_FM_REALM`` and the others."""
    get = os.environ.get
    name, client, secret = (get(each, "mews") for each in _LOGIN)
    return LoginRealm(name, client, secret, get("MEWS_FM_TENANT", ""))


class PlacedResource(Struct, frozen=True):
    """What a device is called on the wire, its serial number, and the machine that it was last listed in, "" for
    none."""

    uuid: str
    serial: str
    kind: str
    model: str
    machine: str


class FmTableClient:
    """Logs in with the client's credentials when first needed. Devices are called by ``res_name``, host ports by the
    ``mach_id`` of their machines."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._realm = realm_of_environment()
        self._token = ""
        self.tenant = self._realm.tenant
        self.cluster = os.environ.get("MEWS_FM_CLUSTER") or CLUSTER
        self.login: HttpReply | None = None
        """The reply to the login."""
        self.machines: dict[str, str] = {}
        """Host port -> ``mach_uuid``."""
        self.placed: dict[str, PlacedResource] = {}

    # Requests

    def token_path(self) -> str:
        """Return where tokens are given."""
        return f"/id_manager/realms/{quote(self._realm.realm, safe='')}/protocol/openid-connect/token"

    def ask_for_token(self, *, raw: bool = False, password: str | None = None) -> HttpReply:
        """Return the answer to a login; ``raw``: not encoded, as composable-dra-driver sends it."""
        user, own = self._client.credentials or ("", "")
        form = {
            "client_id": self._realm.client_id,
            "client_secret": self._realm.client_secret,
            "username": user,
            "password": own if password is None else password,
            "scope": "openid",
            "response" if raw else "response_type": "id_token token",
            "grant_type": "password",
        }
        self._client.keep_secret(quote(own), self._realm.client_secret if self._realm.client_secret != "mews" else "")
        body = "&".join(f"{name}={value}" for name, value in form.items()) if raw else urlencode(form)
        reply = self._client.send("POST", self.token_path(), body.encode(), FORM)
        return below_500(reply, f"POST {self.token_path()}")

    def bearer(self) -> Mapping[str, str]:
        """Return the header of somebody who has logged in; none where no token was given."""
        with self._lock:
            if not self._token and self.login is None:
                self.login = self.ask_for_token()
                self._token = token_of(self.login)
                if self._token:
                    self.tenant = self._realm.tenant or tenant_of(self._token)
            return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        tenant: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Return an answer below 500, as somebody who has logged in; after a 401 the login is made again, once."""
        who = self.bearer()
        kind = {} if body is None else {"Content-Type": "application/json"}
        for tries in (1, 2):
            whole = self.at(path, tenant, **(query or {}))
            sent = {"Accept": "application/json", **kind, **who, **(headers or {})}
            reply = self._client.send(method, whole, body, sent)
            if reply.status != 401 or headers is not None or not who or tries == 2:
                break
            with self._lock:
                self._token, self.login = "", None
            who = self.bearer()
        return below_500(reply, f"{method} {whole}", but=(507,))

    def at(self, path: str, tenant: str | None = None, **query: str) -> str:
        """Return the path with its query: the tenant's, where it is one of the fabric manager."""
        asked = dict(query)
        if path.startswith(FABRIC):
            asked = {"tenant_uuid": self.tenant if tenant is None else tenant, **asked}
        return f"{path}?{urlencode(asked)}" if asked else path

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return the JSON object of a 200.

        Raises NoAnswerError, HttpServerError, MalformedError.
        """
        reply = self.send("GET", path, query=query)
        value = reply.json()
        if reply.status != 200 or not isinstance(value, dict):
            where = f"GET {self.at(path, **query)}: HTTP {reply.status}"
            raise MalformedError(f"{where}: must be 200 and an object: {reply.text[:120]!r}")
        return value

    def cluster_path(self, rest: str, version: str = "v3") -> str:
        """Return a path of the cluster manager."""
        self.bearer()
        return f"{AUTOSCALER}/{version}/tenants/{self.tenant}/clusters/{self.cluster}{rest}"

    # The table

    def read(self) -> ListedTable:
        """Return all resources, free ones included."""
        value = self.get(RESOURCES)
        records = at(value, "data", "resources")
        if not isinstance(records, list) or not isinstance(at(value, "data", "machines"), list):
            raise MalformedError(f"GET {self.at(RESOURCES)}: must have data.machines and data.resources")
        machines = {text(each, "mach_uuid"): text(each, "mach_id") for each in objects(value, "data", "machines")}
        self.machines = {port: uuid for uuid, port in machines.items() if uuid and port}
        rows: dict[str, ListedDevice] = {}
        names: list[str] = []
        for each in objects(value, "data", "resources"):
            name, machine = text(each, "res_name"), text(each, "mach_uuid")
            if not name:
                continue
            names.append(name)
            port = machines.get(machine, machine) or None
            rows[name] = ListedDevice(text(each, "res_serial_num"), port)
            self.placed[name] = PlacedResource(
                text(each, "res_uuid"), rows[name].uuid, text(each, "res_type"), model_of(each), machine
            )
        return ListedTable(rows, tuple(self.machines), more_than_once(names))

    def machine(self, port: str) -> str:
        """Return the machine on a host port; of one that there is not, one that no fabric has."""
        return self.machines.get(port, NO_MACHINE)

    def update_path(self, machine: str) -> str:
        """Return where the resources of a machine are changed."""
        return f"{FABRIC}/machines/{machine}/update"

    def attach(self, device: str, port: str) -> bool:
        """Return a PATCH that names the resource; whether its status says so."""
        return self.ask_attach(device, port).status == 200

    def ask_attach(self, device: str, port: str) -> HttpReply:
        """Return the answer to it."""
        machine = self.machine(port)
        return self.send("PATCH", self.update_path(machine), self.attach_body(device, machine))

    def attach_body(self, device: str, machine: str) -> bytes:
        """Return it by model, as the clients do, and by the resource's own UUID."""
        known = self.placed.get(device)
        uuid, kind, model = (known.uuid, known.kind, known.model) if known is not None else (device, "gpu", "")
        conditions = [condition("model", model)] if model else []
        spec = {"res_type": kind, "res_spec": {"condition": [*conditions, condition("res_uuid", uuid)]}, "res_num": 1}
        return self.shell(machine, spec)

    def by_model(self, kind: str, model: str, machine: str) -> bytes:
        """Return a body that names no resource."""
        spec = {"res_type": kind, "res_spec": {"condition": [condition("model", model)]}, "res_num": 1}
        return self.shell(machine, spec)

    def shell(self, machine: str, spec: Mapping[str, Any]) -> bytes:
        """Return what is around a resource specification."""
        item = {"mach_uuid": machine, "resources": [{"res_specs": [spec]}]}
        return json.dumps({"tenants": {"tenant_uuid": self.tenant, "machines": [item]}}).encode()

    def detach(self, device: str) -> bool:
        """Return a DELETE with a body, to the machine that the device was last listed in; whether its status says
        so."""
        known = self.placed.get(device)
        machine = known.machine if known is not None else ""
        return self._detach(device, machine or next(iter(self.machines.values()), NO_MACHINE))

    def detach_again(self, device: str, port: str) -> bool:
        """Return the same to that port's machine."""
        return self._detach(device, self.machine(port))

    def _detach(self, device: str, machine: str) -> bool:
        return self.send("DELETE", self.update_path(machine), self.detach_body(device, machine)).status in (200, 204)

    def detach_body(self, device: str, machine: str) -> bytes:
        """Return the resource by its UUID."""
        known = self.placed.get(device)
        uuid, kind = (known.uuid, known.kind) if known is not None else (device, "gpu")
        return self.shell(machine, {"res_type": kind, "res_uuid": uuid, "res_num": 1})

    def bare_delete(self) -> bool:
        """Return whether the status of a DELETE without a body says so, at a machine that has a resource."""
        machine = next((each.machine for each in self.placed.values() if each.machine), NO_MACHINE)
        return self.send("DELETE", self.update_path(machine)).status in (200, 204)

    def call(self, device: str, port: str | None) -> str:
        """Return the request that moves a device."""
        known = self.placed.get(device)
        machine = self.machine(port) if port is not None else known.machine if known is not None else NO_MACHINE
        method = "DELETE" if port is None else "PATCH"
        body = self.detach_body(device, machine) if port is None else self.attach_body(device, machine)
        return f"{method} {self.at(self.update_path(machine))} {body.decode()}"

    def versions(self) -> Versions:
        """Return the server's own name: the dialect has no word for versions."""
        reply = self.send("GET", f"{FABRIC}/machines")
        return Versions({"Server": reply.headers["server"]} if "server" in reply.headers else {})

    def close(self) -> None:
        """Nothing is kept: tokens end by themselves."""


def condition(column: str, value: str) -> Mapping[str, str]:
    """Return one condition on a resource."""
    return {"column": column, "operator": "eq", "value": value}


def model_of(resource: Mapping[str, Any]) -> str:
    """Return the value of the condition on the column model."""
    found = objects(resource, "res_spec", "condition")
    return next((text(each, "value") for each in found if each.get("column") == "model"), "")


def token_of(reply: HttpReply) -> str:
    """Return the access token of a login; empty where there is none."""
    try:
        return text(reply.json(), "access_token") if reply.status < 300 else ""
    except MalformedError:
        return ""


def tenant_of(token: str) -> str:
    """Return the tenant that a token names, "" where it names none."""
    packed = token.split(".")[1] if token.count(".") else ""
    try:
        return text(json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))), "tenant_uuid")
    except ValueError:
        return ""
