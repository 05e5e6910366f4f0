"""Reads a chassis over and over, in its dialect, without changing anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from mews.dialects import OURS
from mews.harness.conformance.client import ChassisTarget, Client
from mews.harness.conformance.errors import NoAnswerError
from mews.harness.conformance.open import PASSWORD, USER, client_for
from mews.harness.errors import RequirementError
from mews.harness.recording.chassis_files import reading_from
from mews.harness.recording.observations import LostReading, TableReading
from mews.kube.chassis.dialects import client_of
from mews.kube.chassis.port import (
    ChassisApi,
    ChassisError,
    RedfishCredentials,
    TransportError,
    WireRequest,
    WireResponse,
)
from mews.kube.clock import rest

POLL_S = 1.0
_PATIENCE_S = 10.0


class WatchedChassis(Struct, frozen=True):
    """One chassis to watch, and how it is spoken to; ``dialect`` "" is to be found out."""

    name: str
    url: str
    dialect: str = ""
    credentials: tuple[str, str] | None = None
    ca: Path | None = None
    insecure: bool = False


class ThreadedTransport:
    """Carries requests on threads, by the client that `mews conform` speaks to a box with: it has its options."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def send(self, request: WireRequest) -> WireResponse:
        """Return the answer.

        Raises TransportError.
        """
        body = request.body or None
        try:
            reply = await asyncio.to_thread(self._client.send, request.method, request.path, body, request.headers)
        except NoAnswerError as error:
            raise TransportError(str(error)) from error
        finally:
            self._client.log.clear()
        return WireResponse(reply.status, reply.body, _named_headers(reply.headers))


def _named_headers(headers: object) -> dict[str, str]:
    found = dict(headers) if isinstance(headers, dict) else {}
    return {**found, **{name.title(): value for name, value in found.items()}}


class ChassisPolls:
    """The readings of one chassis that differ from the one before, and those that failed."""

    def __init__(self, address: WatchedChassis, now: Callable[[], float]) -> None:
        self._address = address
        self._now = now
        target = ChassisTarget(
            address.url, None if address.ca is None else str(address.ca), address.insecure, _PATIENCE_S
        )
        self._transport = ThreadedTransport(client_for(target, address.credentials))
        self._chassis: ChassisApi | None = None
        self.readings: list[TableReading] = []
        self.lost: list[LostReading] = []

    async def open(self) -> str:
        """Read it once; the dialect.

        Raises RequirementError where it does not answer, or not as a chassis.
        """
        names = (self._address.dialect,) if self._address.dialect else tuple(OURS)
        failures: list[str] = []
        for name in names:
            chassis = self._client(name)
            try:
                listing = await chassis.resources()
            except ChassisError as error:
                failures.append(f"{name}: {error}")
                continue
            self._chassis = chassis
            self.readings.append(reading_from(listing, self._address.name, self._now()))
            return name
        raise RequirementError(f"--chassis {self._address.url}: {_reason(failures)}")

    async def run(self) -> None:
        """Read until cancelled."""
        assert self._chassis is not None, "open() comes first"
        while True:
            await rest(POLL_S)
            await self.look()

    async def look(self) -> None:
        """Read once more."""
        assert self._chassis is not None, "open() comes first"
        name = self._address.name
        try:
            reading = reading_from(await self._chassis.resources(), name, self._now())
        except ChassisError as error:
            self.lost.append(LostReading(name, self._now(), _cause(str(error))))
            return
        last = self.readings[-1]
        came_back = bool(self.lost) and self.lost[-1].at > (last.at or 0.0)
        if came_back or (reading.devices, reading.ports) != (last.devices, last.ports):
            self.readings.append(reading)

    def _client(self, dialect: str) -> ChassisApi:
        given = self._address.credentials
        account = None if given is None else RedfishCredentials(*given)
        return client_of(dialect, self._transport, account, patience_s=_PATIENCE_S)


def _reason(failures: list[str]) -> str:
    refused = next((each for each in failures if "HTTP 401" in each or "HTTP 403" in each), None)
    if refused is not None:
        return f"requires an account: set {USER} and {PASSWORD}, or give --credentials FILE"
    if all("HTTP" not in each and "not JSON" not in each and "not a list" not in each for each in failures):
        return f"no chassis answers there: {failures[0].partition(': ')[2]}"
    return f"does not answer as a chassis in {' or '.join(each.partition(':')[0] for each in failures)}"


def _cause(text: str) -> str:
    """Return it without the address."""
    return text.rpartition(": ")[2] if "HTTP" not in text else text[text.index("HTTP") :][:8]
