"""The ChassisApi port: what the components ask of one composable chassis.

A wire adapter (``h3api``, ``resource_pool``) renders calls into ``WireRequest`` and reads ``WireResponse``; the
``Transport`` below it is HTTP, or in process under virtual time. So the adapter that runs in production is the one
that every scenario exercises.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field


class ChassisError(Exception):
    """A read that gave no listing: refused, dropped, timed out, or not in the dialect's form."""


class TransportError(Exception):
    """No answer came: the connection was refused or dropped, or time ran out. A write may have happened."""


class DeviceRecord(Struct, frozen=True):
    """One row of the device lookup table. ``device`` is the chassis' own ID (Dev_GID); ``port`` is None while free."""

    device: str
    uuid: str
    port: str | None
    kind: str = "GPU"


class Listing(Struct, frozen=True):
    """One read of a chassis. It may be partial: the reader judges it against what it knew (contract chassis.md 2)."""

    devices: tuple[DeviceRecord, ...]
    ports: tuple[str, ...] = ()


class ReplyOutcome(StrEnum):
    """What a reply to attach or detach says, which need not be what happened."""

    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


class ChassisReply(Struct, frozen=True):
    """The reply to attach or detach; ``remark`` is the chassis' text."""

    outcome: ReplyOutcome
    remark: str = ""


class RedfishCredentials(Struct, frozen=True):
    """Who logs in, where a dialect asks for it."""

    user: str
    password: str


class ChassisApi(Protocol):
    """One chassis. Never raises on attach and detach: no answer is ``ReplyOutcome.UNKNOWN``."""

    async def resources(self) -> Listing:
        """Return the device lookup table.

        Raises ChassisError.
        """
        ...

    async def attach(self, device: str, port: str) -> ChassisReply:
        """Put a free device on a host port."""
        ...

    async def detach(self, device: str) -> ChassisReply:
        """Take a device off its host port."""
        ...


class WireRequest(Struct, frozen=True):
    """An HTTP request, transport-neutral."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class WireResponse(Struct, frozen=True):
    """An HTTP response, transport-neutral."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Transport(Protocol):
    """Carries one request to the chassis' management server and its answer back."""

    async def send(self, request: WireRequest) -> WireResponse:
        """Return the answer.

        Raises TransportError.
        """
        ...
