"""ChassisApi over Fujitsu's fabric manager (contract cohdi.md 2.1, 2.2), as far as one device can be named in it.

The fabric manager attaches by model. Which device it is to be, a condition on ``res_uuid`` says, and which are free is
read from ``GET /resources``: both are assumed, as no public client needs them.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from mews.kube.chassis.parsed import ParsedBodies
from mews.kube.chassis.placed import attach_placed, detach_placed
from mews.kube.chassis.port import (
    ChassisApi,
    ChassisError,
    ChassisReply,
    DeviceRecord,
    Listing,
    RedfishCredentials,
    ReplyOutcome,
    Transport,
    TransportError,
    WireRequest,
    WireResponse,
)
from mews.kube.chassis.redfish import account_of_environment

FABRIC = "/fabric_manager/api/v1"
RENEWED_BEFORE_S = 30.0
"""A token is renewed so long before its end, as the public clients do."""
GONE = "HTTP 404"
"""How a device is refused that is not in the machine which it was to leave: it is free, or in another one."""
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class FmRealm(Struct, frozen=True):
    """Where and as whose client to log in; ``tenant``: whose machines, "" for the tenant that the token names."""

    realm: str = "mews"
    client_id: str = "mews"
    client_secret: str = "mews"
    tenant: str = ""


def realm_of_environment() -> FmRealm:
    """``MEWS_FM_REALM``, ``MEWS_FM_CLIENT_ID``, ``MEWS_FM_CLIENT_SECRET`` and ``MEWS_FM_TENANT``."""
    get = os.environ.get
    return FmRealm(
        get("MEWS_FM_REALM", "mews"),
        get("MEWS_FM_CLIENT_ID", "mews"),
        get("MEWS_FM_CLIENT_SECRET", "mews"),
        get("MEWS_FM_TENANT", ""),
    )


class _Placed(Struct, frozen=True):
    """A listing, and what its devices and ports are called on the wire."""

    listing: Listing
    resources: Mapping[str, tuple[str, str]]
    """Device -> ``res_uuid`` and ``res_type``."""
    machines: Mapping[str, str]
    """Host port -> ``mach_uuid``."""
    places: Mapping[str, str]
    """Device -> ``mach_uuid`` of the machine that it is in."""


class FmClient:
    """One chassis. A 401 to a read is answered by a new login; to a write it says nothing of what happened."""

    def __init__(
        self, transport: Transport, account: RedfishCredentials | None = None, realm: FmRealm | None = None
    ) -> None:
        self._transport = transport
        self._account = account or account_of_environment()
        self._realm = realm or realm_of_environment()
        self._token, self._tenant, self._ends_s = "", self._realm.tenant, 0.0
        self._known = _Placed(Listing(()), {}, {}, {})
        self._places: dict[str, str] = {}

    async def resources(self) -> Listing:
        """Return the device lookup table: all resources, and the machine that each is in.

        Raises ChassisError.
        """
        try:
            response = await self._send("GET", f"{FABRIC}/resources")
            if response.status == 401:
                self._token = ""
                response = await self._send("GET", f"{FABRIC}/resources")
        except TransportError as error:
            raise ChassisError(f"GET {FABRIC}/resources: {error}") from error
        if response.status != 200:
            raise ChassisError(f"GET {FABRIC}/resources: HTTP {response.status}: {_message(response)}")
        self._known = _listings(response.body)
        self._places = dict(self._known.places)
        return self._known.listing

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Put a free device into the machine on a host port, a decimal number as in the listing."""
        return await attach_placed(
            device,
            port,
            lambda: self._places,
            read=self.resources,
            find=lambda: (device in self._known.resources, self._known.machines.get(port, "")),
            attach=lambda machine: self._put_in(device, machine),
            noun="machine",
        )

    async def detach(self, device: str) -> ChassisReply:
        """Take a device out of the machine that it was last in; where that is not known, or wrong, it is looked for."""
        return await detach_placed(
            device,
            lambda: self._places,
            read=self.resources,
            is_listed=lambda: device in self._known.resources,
            detach=lambda machine: self._take_out(device, machine),
            elsewhere=GONE,
        )

    async def _put_in(self, device: str, machine: str) -> ChassisReply:
        uuid, kind = self._known.resources[device]
        condition = {"column": "res_uuid", "operator": "eq", "value": uuid}
        spec = {"res_type": kind, "res_spec": {"condition": [condition]}, "res_num": 1}
        return await self._update("PATCH", machine, spec)

    async def _take_out(self, device: str, machine: str) -> ChassisReply:
        uuid, kind = self._known.resources[device]
        return await self._update("DELETE", machine, {"res_type": kind, "res_uuid": uuid, "res_num": 1})

    async def _update(self, method: str, machine: str, spec: Mapping[str, Any]) -> ChassisReply:
        """200 and 204 are done, 4xx a refusal; after a 5xx, and a 401, it may or may not have happened."""
        path = f"{FABRIC}/machines/{machine}/update"
        machines = [{"mach_uuid": machine, "resources": [{"res_specs": [spec]}]}]
        try:
            response = await self._send(method, path, machines)
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        if response.status in (200, 204):
            return ChassisReply(ReplyOutcome.DONE)
        if response.status == 401:
            self._token = ""
        unknown = response.status >= 500 or response.status == 401
        outcome = ReplyOutcome.UNKNOWN if unknown else ReplyOutcome.FAILED
        return ChassisReply(outcome, f"HTTP {response.status}: {_message(response)}")

    async def _send(self, method: str, path: str, machines: Sequence[Mapping[str, Any]] | None = None) -> WireResponse:
        """Return the answer, as somebody who has logged in; ``machines`` of the tenant, which a login may name, are the
        body.

        Raises TransportError.
        """
        refused = await self._login()
        if refused is not None:
            return refused
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        content = b""
        if machines is not None:
            headers["Content-Type"] = "application/json"
            body = {"tenants": {"tenant_uuid": self._tenant, "machines": machines}}
            content = json.dumps(body, separators=(",", ":")).encode()
        return await self._transport.send(
            WireRequest(method, f"{path}?tenant_uuid={quote(self._tenant)}", content, headers)
        )

    async def _login(self) -> WireResponse | None:
        """See to a token that is good for a while; the answer where none is given. Raises TransportError."""
        loop = asyncio.get_running_loop()
        if self._token and loop.time() < self._ends_s:
            return None
        form = {
            "client_id": self._realm.client_id,
            "client_secret": self._realm.client_secret,
            "username": self._account.user,
            "password": self._account.password,
            "scope": "openid",
            "response_type": "id_token token",
            "grant_type": "password",
        }
        path = f"/id_manager/realms/{quote(self._realm.realm, safe='')}/protocol/openid-connect/token"
        response = await self._transport.send(WireRequest("POST", path, urlencode(form).encode(), FORM))
        try:
            granted = json.loads(response.body)
            token, lasts_s = str(granted["access_token"]), float(granted.get("expires_in") or 0.0)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            self._token = ""
            return response if response.status != 200 else WireResponse(502, b"", {})
        self._token, self._ends_s = token, loop.time() + max(lasts_s - RENEWED_BEFORE_S, 1.0)
        self._tenant = self._realm.tenant or tenant_of(token)
        return None


def connect(transport: Transport, account: RedfishCredentials | None, patience_s: float) -> ChassisApi:
    """Return the client of the dialect ``fm``: without an account it logs in with the environment's."""
    return FmClient(transport, account)


def _parsed(body: bytes) -> _Placed:
    try:
        data = json.loads(body)["data"]
        machines = {str(each["mach_uuid"]): str(each["mach_id"]) for each in data["machines"]}
        records, resources, places = [], {}, {}
        for each in data["resources"]:
            device, kind, machine = str(each["res_name"]), str(each["res_type"]), each.get("mach_uuid")
            port = None if machine is None else machines[str(machine)]
            records.append(DeviceRecord(device, str(each.get("res_serial_num") or ""), port, kind.upper()))
            resources[device] = str(each["res_uuid"]), kind
            if machine is not None:
                places[device] = str(machine)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ChassisError(f"GET {FABRIC}/resources: in another form: {error!r}") from error
    ports = {port: uuid for uuid, port in machines.items()}
    return _Placed(Listing(tuple(records), tuple(ports)), resources, ports, places)


_listings = ParsedBodies(_parsed)


def tenant_of(token: str) -> str:
    """Return the tenant that a JWT names, "" where it names none."""
    try:
        packed = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))
        return str(claims.get("tenant_uuid") or "")
    except (ValueError, IndexError, AttributeError):
        return ""


def _message(response: WireResponse) -> str:
    """Code and text of an error, or nothing."""
    try:
        body = json.loads(response.body)
        if "error_description" in body:
            return str(body["error_description"])
        return f"{body['detail']['code']} {body['detail']['message']}"
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""
