"""Events: what happens in the chassis, told to whoever subscribed, as a stream or by POST."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.emulator.dialects.redfish.filters import Test
from mews.emulator.dialects.redfish.schemas import odata_type
from mews.emulator.dialects.redfish.uris import SUBSCRIPTIONS

KEPT = 1000
"""Events that wait for one reader, and that can be read again by their ID."""

REGISTRY_PREFIXES = ("Base", "Fabric", "ResourceEvent", "TaskEvent")
RESOURCE_TYPES = ("Endpoint", "Manager", "PCIeDevice", "Port", "Task", "Zone")


class RedfishEvent(Struct, frozen=True):
    """Something to tell: a message of a registry about a resource."""

    message_id: str
    text: str
    args: tuple[str, ...]
    severity: str
    origin: str
    kind: str

    def record(self, number: int, at: str) -> dict[str, Any]:
        """Return one member of ``Events``."""
        return {
            "EventId": str(number),
            "EventTimestamp": at,
            "MemberId": "0",
            "Message": self.text,
            "MessageArgs": list(self.args),
            "MessageId": self.message_id,
            "MessageSeverity": self.severity,
            "OriginOfCondition": {"@odata.id": self.origin},
        }


_ORIGINS = "OriginResources"
EXCLUDED = {"ExcludeMessageIds": "MessageIds", "ExcludeRegistryPrefixes": "RegistryPrefixes"}
"""Property that leaves events out -> the one that asks for them."""


class EventSubscription(Struct):
    """A destination. ``wanted``: what to send, ``unwanted``: what to leave out of it, each by a property's name;
    ``subordinate``: what lies below a wanted origin is wanted, too. ``waiting`` holds what it has not got yet: (number,
    payload)."""

    id: str
    protocol: str
    destination: str = ""
    context: str = ""
    wanted: dict[str, list[str]] = field(default_factory=dict)
    unwanted: dict[str, list[str]] = field(default_factory=dict)
    subordinate: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    policy: str = "RetryForever"
    stream: bool = False
    open: bool = True
    test: Test | None = None
    waiting: deque[tuple[int, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def wants(self, published: RedfishEvent) -> bool:
        """Return whether its filters let an event through."""
        prefix = published.message_id.partition(".")[0]
        short = f"{prefix}.{published.message_id.rpartition('.')[2]}"
        named: dict[str, tuple[str, ...]] = {
            "RegistryPrefixes": (prefix,),
            "MessageIds": (published.message_id, short),
            "ResourceTypes": (published.kind,),
            _ORIGINS: (published.origin,),
            "Severities": (published.severity,),
        }
        if self.test is not None and not self.test(_filtered(published, prefix)):
            return False
        if self.subordinate and any(published.origin.startswith(f"{uri}/") for uri in self.wanted.get(_ORIGINS, ())):
            named[_ORIGINS] = tuple(self.wanted[_ORIGINS])
        if any(set(left_out) & set(named[EXCLUDED[name]]) for name, left_out in self.unwanted.items()):
            return False
        return all(not wanted or set(wanted) & set(named[name]) for name, wanted in self.wanted.items())

    @property
    def uri(self) -> str:
        """Where it can be read."""
        return f"{SUBSCRIPTIONS}/{self.id}"


FILTERED = frozenset({"EventFormatType", "MessageId", "OriginResource", "RegistryPrefix", "ResourceType"})
"""What the ``$filter`` of a stream may name."""


def _filtered(published: RedfishEvent, prefix: str) -> dict[str, str]:
    """Return the event as such a filter sees it."""
    return {
        "EventFormatType": "Event",
        "MessageId": published.message_id,
        "OriginResource": published.origin,
        "RegistryPrefix": prefix,
        "ResourceType": published.kind,
    }


class Hub:
    """All subscriptions and the latest events; ``changed`` is called when there are others than before."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.subscriptions: dict[str, EventSubscription] = {}
        self._made = 0
        self._emitted = 0
        self._kept: deque[tuple[int, RedfishEvent, dict[str, Any]]] = deque(maxlen=KEPT)

    def subscribe(self, protocol: str, **fields: Any) -> EventSubscription:
        """Return one more destination."""
        self._made += 1
        made = EventSubscription(str(self._made), protocol, **fields)
        self.subscriptions[made.id] = made
        self._changed()
        return made

    def unsubscribe(self, subscription: EventSubscription) -> None:
        """End a subscription; its stream ends with it."""
        subscription.open = False
        self._changed()
        self.subscriptions.pop(subscription.id, None)

    def replay(self, subscription: EventSubscription, after: int) -> None:
        """Let a reader that comes back hear what it missed."""
        for number, published, record in self._kept:
            if number > after and subscription.wants(published):
                subscription.waiting.append((number, _payload(subscription, number, [record])))

    def emit(self, published: RedfishEvent, at: str) -> dict[str, Any]:
        """Tell everybody who wants to know; the record told."""
        self._emitted += 1
        record = published.record(self._emitted, at)
        self._kept.append((self._emitted, published, record))
        for subscription in self.subscriptions.values():
            if subscription.wants(published):
                subscription.waiting.append((self._emitted, _payload(subscription, self._emitted, [record])))
        return record


def _payload(subscription: EventSubscription, number: int, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    payload = {"@odata.type": odata_type("Event"), "Id": str(number), "Name": "Chassis events", "Events": list(records)}
    if subscription.context:
        payload["Context"] = subscription.context
    return payload


def chunk(number: int, payload: Mapping[str, Any]) -> bytes:
    """Return one server-sent event."""
    return f"id: {number}\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n".encode()
