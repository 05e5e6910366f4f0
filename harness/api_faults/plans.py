"""What a fault decides about a request or an event: values that whoever stands between client and server acts on."""

from __future__ import annotations

from msgspec import Struct

NO_ANSWER = 0
"""The code of a failure in which the connection ends without an answer."""


class ApiRequest(Struct, frozen=True):
    """A request as RBAC sees it: ``verb`` such as ``update``, ``resource`` in the plural, ``subresource`` or ""."""

    verb: str
    resource: str
    name: str = ""
    subresource: str = ""
    shows_all: bool = False
    """Of a watch: it begins with all that is there, and stands for a list."""

    def is_of(self, resource: str | None) -> bool:
        """Return whether it is about that resource (``pods``, with all below it; ``pods/binding``); None: any."""
        return resource in (None, self.resource, f"{self.resource}/{self.subresource}")


class ApiFailure(Struct, frozen=True):
    """The answer in the place of the server's; code ``NO_ANSWER``: the connection ends. ``retry_after_s`` as the header
    ``Retry-After`` has it."""

    code: int
    reason: str = ""
    message: str = ""
    retry_after_s: int | None = None


class RequestPlan(Struct, frozen=True):
    """What becomes of a request. ``hold_s``: so long it is held before anything else,
    infinite: as long as the fault is there; ``is_forwarded``: the server gets
    it, and its effect takes place; ``failure``: what the client gets then; ``version``: a read shows that version."""

    hold_s: float = 0.0
    is_forwarded: bool = True
    failure: ApiFailure | None = None
    version: str = ""

    def joined(self, other: RequestPlan) -> RequestPlan:
        """Return what two faults do to one request: both times, and the first failure."""
        return RequestPlan(
            self.hold_s + other.hold_s,
            self.is_forwarded and other.is_forwarded,
            self.failure or other.failure,
            self.version or other.version,
        )


UNTOUCHED = RequestPlan()


class EventPlan(Struct, frozen=True):
    """What becomes of an event of a watch that is due: it comes ``copies`` times more, or the watch ends in its place
    (``closed``: cleanly, ``broken``: without a word, ``gone``: with 410 Expired)."""

    copies: int = 0
    ends: str = ""
