"""What every back door has: how fast emulated time passes, and what has happened."""

from __future__ import annotations

from typing import Any

from mews.emulator.clock import EmulatedClock
from mews.emulator.dialects.loopback_guard import Routes
from mews.emulator.dialects.wire import Request, read_object
from mews.emulator.feed import EventFeed


def time_routes(clock: EmulatedClock, feed: EventFeed) -> Routes:
    """Return the paths ``/v1/speed`` and ``/v1/events``."""

    def speed(request: Request) -> tuple[int, Any]:
        return 200, {"speed": clock.speed}

    def set_speed(request: Request) -> tuple[int, Any]:
        wanted = read_object(request.body).get("speed")
        if isinstance(wanted, bool) or not isinstance(wanted, int | float):
            raise ValueError(f"speed {wanted!r}: must be a number above 0")
        clock.speed = wanted
        return speed(request)

    def events(request: Request) -> tuple[int, Any]:
        found = feed.since(since(request))
        return 200, {"events": found, "seq": found[-1]["seq"] if found else feed.seq}

    return {"/v1/speed": {"GET": speed, "PUT": set_speed}, "/v1/events": {"GET": events}}


def since(request: Request) -> int:
    """Return the event number after which a reader wants to hear: ``Last-Event-ID`` or ``?since=``, else all that is
    kept.

    Raises ValueError.
    """
    text = request.headers.get("last-event-id") or request.query.get("since") or "0"
    if not text.isdecimal():
        raise ValueError(f"since {text!r}: must be an event's seq")
    return int(text)
