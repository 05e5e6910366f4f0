"""ChassisApi over the wire language of the Falcon 4005 (contract chassis.md 2)."""

from __future__ import annotations

import json
from typing import Any

from mews.kube.chassis.parsed import ParsedBodies
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

RESOURCES = "/h3api/v1/resources"
ALLOCATION = "/h3api/v1/allocation"
HEADERS = {"Content-Type": "text/plain"}
"""What every client of the real boxes sends."""


_LISTING = WireRequest("GET", RESOURCES)


class H3ApiClient:
    """One chassis. Replies are taken as they are, though they may lie: reading back is the caller's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def resources(self) -> Listing:
        """Return the device lookup table.

        Raises ChassisError.
        """
        try:
            response = await self._transport.send(_LISTING)
        except TransportError as error:
            raise ChassisError(f"GET {RESOURCES}: {error}") from error
        if response.status >= 400:
            raise ChassisError(f"GET {RESOURCES}: HTTP {response.status}")
        return _listings(response.body)

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Put a free device on a host port, a decimal number as in the listing."""
        if not port.isdecimal():
            return ChassisReply(ReplyOutcome.FAILED, f"port {port!r}: must be a decimal number")
        return await self._allocation("POST", {"gep": "0", "port_gid": f"{int(port):02X}h", "dev_gid": device})

    async def detach(self, device: str) -> ChassisReply:
        """Take a device off its host port."""
        return await self._allocation("DELETE", {"gep": "0", "dev_gid": device})

    async def _allocation(self, method: str, body: dict[str, str]) -> ChassisReply:
        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            response = await self._transport.send(WireRequest(method, ALLOCATION, content, HEADERS))
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        return _reply(response)


def connect(transport: Transport, account: RedfishCredentials | None, patience_s: float) -> ChassisApi:
    """Return the client of the dialect ``h3api``, which knows no login and follows nothing up."""
    return H3ApiClient(transport)


def _parsed(body: bytes) -> Listing:
    try:
        records = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ChassisError(f"GET {RESOURCES}: not JSON: {error}") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise ChassisError(f"GET {RESOURCES}: not a list of objects")
    devices = tuple(_device(record) for record in records if "Dev_GID" in record)
    ports = tuple(str(record["Port#"]) for record in records if "Port#" in record)
    return Listing(devices, ports)


_listings = ParsedBodies(_parsed)


def listing_of(body: bytes) -> Listing:
    """Return what the body of a listing means in the language of the Falcon 4005.

    Raises ChassisError.
    """
    return _listings(body)


def _device(record: dict[str, Any]) -> DeviceRecord:
    """Return a device record; the key of the UUID is the box's own spelling."""
    return DeviceRecord(
        device=str(record["Dev_GID"]),
        uuid=str(record.get("OB_GPU_GUID") or ""),
        port=str(record.get("Host_Port#") or "") or None,
        kind=str(record.get("dev_type") or "GPU"),
    )


def _reply(response: WireResponse) -> ChassisReply:
    """``result`` decides, whatever the HTTP status; a reply without one says nothing about what happened."""
    try:
        body = json.loads(response.body)
        result, remark = body["result"], str(body.get("remark", ""))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ChassisReply(ReplyOutcome.UNKNOWN, f"HTTP {response.status} without a result")
    if isinstance(result, list) and result and all(isinstance(each, bool) for each in result):
        return ChassisReply(ReplyOutcome.DONE if all(result) else ReplyOutcome.FAILED, remark)
    return ChassisReply(ReplyOutcome.UNKNOWN, f"result {result!r}")
