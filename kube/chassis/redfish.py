"""ChassisApi over Redfish (contract chassis.md 4): zones of a PCIe fabric, one per host port, edited by actions."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import Any

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
from mews.kube.clock import rest

ROOT = "/redfish/v1"
SESSIONS = f"{ROOT}/SessionService/Sessions"
FABRIC = f"{ROOT}/Fabrics/PCIe"
LISTING = f"{FABRIC}/Endpoints?$expand=.($levels=1)"
KINDS = {"0x03": "GPU", "0x12": "FPGA"}
"""PCI base class -> kind of device."""
LONGEST_REST_S = 5.0
"""However long the chassis says to stay away."""


def account_of_environment() -> RedfishCredentials:
    """``MEWS_REDFISH_USER`` (admin) and ``MEWS_REDFISH_PASSWORD``."""
    return RedfishCredentials(os.environ.get("MEWS_REDFISH_USER", "admin"), os.environ.get("MEWS_REDFISH_PASSWORD", ""))


class RedfishClient:
    """One chassis. A long operation is followed by its task's monitor for ``patience_s`` at most."""

    def __init__(
        self, transport: Transport, account: RedfishCredentials | None = None, *, patience_s: float = 120.0
    ) -> None:
        self._transport = transport
        self._account = account or account_of_environment()
        self._patience_s = patience_s
        self._token = ""

    async def resources(self) -> Listing:
        """Return the device lookup table: devices by their endpoints' zones, host ports by theirs.

        Raises ChassisError.
        """
        members: list[Any] = []
        path: str | None = LISTING
        while path is not None:
            page = await self._page(path)
            members += page["Members"]
            path = page.get("Members@odata.nextLink")
        try:
            return _listing(members)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ChassisError(f"GET {LISTING}: an endpoint in another form: {error!r}") from error

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Put a free device on a host port: ``#Zone.AddEndpoint`` of the port's zone."""
        return await self._action(f"{FABRIC}/Zones/{port}", "Zone.AddEndpoint", device)

    async def detach(self, device: str) -> ChassisReply:
        """Take a device off its host port: ``#Zone.RemoveEndpoint`` of the zone that it is in."""
        path = f"{FABRIC}/Endpoints/{device}"
        try:
            response = await self._send("GET", path)
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        if response.status != 200:
            return _reply(response)
        try:
            zones = json.loads(response.body)["Links"]["Zones"]
            if not zones:
                return ChassisReply(ReplyOutcome.DONE, "free already")
            return await self._action(str(zones[0]["@odata.id"]), "Zone.RemoveEndpoint", device)
        except (ValueError, KeyError, TypeError) as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, f"GET {path}: in another form: {error!r}")

    async def _page(self, path: str) -> dict[str, Any]:
        try:
            response = await self._send("GET", path)
        except TransportError as error:
            raise ChassisError(f"GET {path}: {error}") from error
        if response.status != 200:
            raise ChassisError(f"GET {path}: HTTP {response.status}: {_message(response)}")
        try:
            page = json.loads(response.body)
        except (ValueError, RecursionError) as error:
            raise ChassisError(f"GET {path}: not JSON: {error}") from error
        if not isinstance(page, dict) or not isinstance(page.get("Members"), list):
            raise ChassisError(f"GET {path}: no collection")
        return page

    async def _action(self, zone: str, action: str, device: str) -> ChassisReply:
        body = {"Endpoint": {"@odata.id": f"{FABRIC}/Endpoints/{device}"}}
        try:
            response = await self._send("POST", f"{zone}/Actions/{action}", body)
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        return await self._followed(response) if response.status == 202 else _reply(response)

    async def _followed(self, response: WireResponse) -> ChassisReply:
        """Ask the monitor until the operation's own reply comes; a lost answer of the monitor is asked for again."""
        monitor = _header(response, "Location")
        if not monitor:
            return ChassisReply(ReplyOutcome.UNKNOWN, "202 without a Location")
        loop = asyncio.get_running_loop()
        deadline_s, last = loop.time() + self._patience_s, "no answer"
        while loop.time() < deadline_s - 1e-9:
            await rest(min(_retry_after(response), deadline_s - loop.time()))
            try:
                response = await self._send("GET", monitor)
            except TransportError as error:
                last = str(error)
                continue
            if response.status == 404:
                return ChassisReply(ReplyOutcome.UNKNOWN, "the task is lost")
            if response.status != 202:
                return _reply(response)
            last = "still running"
        return ChassisReply(ReplyOutcome.UNKNOWN, f"{last} after {self._patience_s:g} s")

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> WireResponse:
        """Return the answer; a session that ended is opened again, as a 401 says that nothing was done.

        Raises TransportError.
        """
        response = await self._once(method, path, body)
        if response.status == 401:
            await self._login()
            response = await self._once(method, path, body)
        return response

    async def _once(self, method: str, path: str, body: Mapping[str, Any] | None) -> WireResponse:
        headers = {"OData-Version": "4.0", "Accept": "application/json"}
        if self._token:
            headers["X-Auth-Token"] = self._token
        content = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, separators=(",", ":")).encode()
        return await self._transport.send(WireRequest(method, path, content, headers))

    async def _login(self) -> None:
        self._token = ""
        body = {"UserName": self._account.user, "Password": self._account.password}
        response = await self._once("POST", SESSIONS, body)
        if response.status == 201:
            self._token = _header(response, "X-Auth-Token")


def connect(transport: Transport, account: RedfishCredentials | None, patience_s: float) -> ChassisApi:
    """Return the client of the dialect ``redfish``: without an account it logs in with the environment's."""
    return RedfishClient(transport, account, patience_s=patience_s)


def _listing(members: list[Any]) -> Listing:
    devices, ports = [], []
    for member in members:
        entity, zones = member["ConnectedEntities"][0], member["Links"]["Zones"]
        port = zones[0]["@odata.id"].rpartition("/")[2] if zones else None
        if entity["EntityRole"] == "Initiator":
            ports.append(str(port))
            continue
        kind = KINDS.get(str(entity.get("EntityPciId", {}).get("ClassCode"))[:4], "GPU")
        devices.append(DeviceRecord(str(member["Id"]), _uuid(member["Identifiers"], kind), port, kind))
    return Listing(tuple(devices), tuple(ports))


def _uuid(identifiers: list[Any], kind: str) -> str:
    """Return the device's UUID; a GPU's as NVML writes it, with ``GPU-`` before the plain one that Redfish shows."""
    for each in identifiers:
        plain = each.get("DurableNameFormat") == "UUID" and kind == "GPU"
        return f"GPU-{each['DurableName']}" if plain else str(each["DurableName"])
    return ""


def _reply(response: WireResponse) -> ChassisReply:
    """2xx is done, 4xx a refusal; after a 5xx it may or may not have happened."""
    if response.status < 300:
        return ChassisReply(ReplyOutcome.DONE)
    outcome = ReplyOutcome.UNKNOWN if response.status >= 500 else ReplyOutcome.FAILED
    return ChassisReply(outcome, f"HTTP {response.status}: {_message(response)}")


def _message(response: WireResponse) -> str:
    """Return the text of an extended error, or nothing."""
    try:
        error = json.loads(response.body)["error"]
        return str(error["@Message.ExtendedInfo"][0]["Message"])
    except (ValueError, RecursionError, KeyError, TypeError, IndexError):
        return ""


def _header(response: WireResponse, name: str) -> str:
    return next((value for key, value in response.headers.items() if key.lower() == name.lower()), "")


def _retry_after(response: WireResponse) -> float:
    text = _header(response, "Retry-After")
    return min(max(float(text), 0.1), LONGEST_REST_S) if text.isdecimal() else 1.0
