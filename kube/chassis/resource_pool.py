"""ChassisApi over the wire language of KubeComp's published simulator (contract chassis.md 3)."""

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
)

RESOURCES = "/resources"
ALLOCATION = "/allocation"
HEADERS = {"Content-Type": "application/json"}


class ResourcePoolClient:
    """One chassis. This language lists no host ports, so ``Listing.ports`` is empty."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def resources(self) -> Listing:
        """Return the device lookup table; ``null`` is an empty one.

        Raises ChassisError.
        """
        try:
            response = await self._transport.send(WireRequest("GET", RESOURCES))
        except TransportError as error:
            raise ChassisError(f"GET {RESOURCES}: {error}") from error
        if response.status >= 400:
            raise ChassisError(f"GET {RESOURCES}: HTTP {response.status}")
        return _listings(response.body)

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Put a free device on a host port."""
        return await self._allocation("POST", {"devid": device, "hostport": port})

    async def detach(self, device: str) -> ChassisReply:
        """Take a device off its host port."""
        return await self._allocation("DELETE", {"devid": device})

    async def _allocation(self, method: str, body: dict[str, str]) -> ChassisReply:
        """204 is done, 4xx a refusal; after a 5xx it may or may not have happened."""
        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            response = await self._transport.send(WireRequest(method, ALLOCATION, content, HEADERS))
        except TransportError as error:
            return ChassisReply(ReplyOutcome.UNKNOWN, str(error))
        remark = response.body.decode(errors="replace").strip()
        if response.status >= 500:
            return ChassisReply(ReplyOutcome.UNKNOWN, f"HTTP {response.status}: {remark}")
        return ChassisReply(ReplyOutcome.FAILED if response.status >= 400 else ReplyOutcome.DONE, remark)


def connect(transport: Transport, account: RedfishCredentials | None, patience_s: float) -> ChassisApi:
    """Return the client of the dialect ``resource-pool``, which knows no login and follows nothing up."""
    return ResourcePoolClient(transport)


def _parsed(body: bytes) -> Listing:
    try:
        records = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ChassisError(f"GET {RESOURCES}: not JSON: {error}") from error
    if records is None:
        return Listing(())
    if not isinstance(records, list):
        raise ChassisError(f"GET {RESOURCES}: not a list")
    return Listing(tuple(_device(record) for record in records))


_listings = ParsedBodies(_parsed)


def listing_of(body: bytes) -> Listing:
    """Return what the body of a listing means in the language of the published simulator.

    Raises ChassisError.
    """
    return _listings(body)


def _device(record: Any) -> DeviceRecord:
    if not isinstance(record, dict) or not isinstance(record.get("devid"), str):
        raise ChassisError(f"GET {RESOURCES}: a record without devid: {record!r}")
    return DeviceRecord(
        device=record["devid"],
        uuid=str(record.get("uuid") or ""),
        port=str(record.get("hostport") or "") or None,
    )
