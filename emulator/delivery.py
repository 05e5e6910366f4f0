"""Delivers Redfish events to the destinations that subscribed: by HTTP POST, from a thread of its own."""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from mews.emulator.clock import EmulatedClock
from mews.emulator.dialects.redfish.events import EventSubscription, Hub

LOG = logging.getLogger("mews.emulator.delivery")
TIMEOUT_S = 5.0
LOOK_S = 0.5
"""Real seconds after which it looks for news that nobody announced."""


class Delivery(Struct, frozen=True):
    """One event on its way."""

    subscription: EventSubscription
    number: int
    payload: Mapping[str, Any]


class EventDelivery:
    """One chassis' deliveries, in order; a destination that is not there is tried again, as its policy says."""

    def __init__(self, hub: Hub, lock: threading.Lock, clock: EmulatedClock, *, attempts: int = 3) -> None:
        self._hub, self._lock, self._clock, self._attempts = hub, lock, clock, attempts
        self._failures: dict[str, int] = {}
        self._retry_s: dict[str, float] = {}
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Deliver, until the clock is stopped."""
        self._thread.start()

    def join(self) -> None:
        """Wait until it has ended."""
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._clock.pause(LOOK_S):
            for letter in self._letters():
                self._deliver(letter)

    def _letters(self) -> list[Delivery]:
        """Return the oldest letter for each destination that may be tried now."""
        now_s = self._clock.real_s()
        with self._lock:
            return [
                Delivery(each, *each.waiting[0])
                for each in self._hub.subscriptions.values()
                if not each.stream and each.open and each.waiting and self._retry_s.get(each.id, 0.0) <= now_s
            ]

    def _deliver(self, letter: Delivery) -> None:
        arrived = post(letter)
        name = letter.subscription.id
        with self._lock:
            if arrived:
                self._failures.pop(name, None)
                self._done(letter)
                return
            self._failures[name] = self._failures.get(name, 0) + 1
            self._retry_s[name] = self._clock.real_s() + LOOK_S
            if self._failures[name] >= self._attempts and letter.subscription.policy != "RetryForever":
                self._give_up(letter)
        self._clock.stir()

    def _done(self, letter: Delivery) -> None:
        waiting = letter.subscription.waiting
        if waiting and waiting[0][0] == letter.number:
            waiting.popleft()

    def _give_up(self, letter: Delivery) -> None:
        self._failures.pop(letter.subscription.id, None)
        if letter.subscription.policy == "TerminateAfterRetries":
            self._hub.unsubscribe(letter.subscription)
        else:
            letter.subscription.open = False


def post(letter: Delivery) -> bool:
    """Return whether the destination took it. Certificates are not checked: the emulator has nobody's to trust."""
    target = urlsplit(letter.subscription.destination)
    try:
        if target.scheme == "https":
            context = ssl._create_unverified_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                target.netloc, timeout=TIMEOUT_S, context=context
            )
        else:
            connection = http.client.HTTPConnection(target.netloc, timeout=TIMEOUT_S)
    except (http.client.InvalidURL, ValueError) as error:
        LOG.warning("subscription %s: %s", letter.subscription.id, error)
        return False
    try:
        path = (target.path or "/") + (f"?{target.query}" if target.query else "")
        headers = {"Content-Type": "application/json", "OData-Version": "4.0", **letter.subscription.headers}
        connection.request("POST", path, json.dumps(letter.payload).encode(), headers)
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException, ValueError) as error:
        LOG.info("subscription %s: %s", letter.subscription.id, error)
        return False
    finally:
        connection.close()
