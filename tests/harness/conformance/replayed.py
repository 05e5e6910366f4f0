"""Our own services as they were recorded, in this process: to be scarred and judged without a wire."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mews.emulator.dialects.wire import Request, split_target
from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.fields import at
from mews.harness.replay.folders import Replayable, replies_of
from mews.harness.replay.replies import Replay
from tests.harness.conformance.judging import ca_of, judged_by, served, url_of

PASSWORD = "a-password-of-tests"
Scar = Callable[[str, HttpReply], HttpReply]
"""Changes a reply to a request for that path."""


@dataclass(frozen=True)
class RecordedService:
    """What was recorded."""

    replayable: Replayable

    def resources(self) -> Iterator[tuple[str, Any]]:
        """Kind and value of each resource that was read."""
        for reply in self.replayable.replies:
            if reply.method == "GET" and reply.status == 200 and reply.text.startswith("{"):
                value = json.loads(reply.text)
                yield kind_of(value), value


@functools.cache
def our_service(dialect: str = "redfish") -> RecordedService:
    """Read once, over TLS where the dialect has a login."""
    with served(password=PASSWORD) as server:
        client = Client(ChassisTarget(url_of(server, dialect), ca_of(server), patience_s=10.0))
        client.credentials = ("admin", PASSWORD)
        client.keep_secret(PASSWORD)
        judged_by(client, dialect, changes=False)
        exchanges = [exchange.as_dict(most=None) for exchange in client.log]
    return RecordedService(Replayable(dialect, tuple(replies_of(exchanges))))


class ReplayedClient(Client):
    """Speaks to the recording."""

    def __init__(self, service: RecordedService, scar: Scar = lambda path, reply: reply) -> None:
        super().__init__(ChassisTarget("https://box"))
        self.credentials = ("admin", PASSWORD)
        self._replay = Replay(service.replayable.replies)
        self._scar = scar

    def _send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int = 0) -> HttpReply:
        where, query = split_target(path)
        lower = {name.lower(): value for name, value in headers.items()}
        reply = self._replay.answer(Request(method, where, query, lower, body or b""))
        named = {name.lower(): value for name, value in reply.headers.items()}
        return self._scar(where, HttpReply(reply.status, named, reply.body))


def kind_of(value: Any) -> str:
    """The unversioned name of a resource's type."""
    return str(at(value, "@odata.type") or "").lstrip("#").partition(".")[0]


def scarred(place: str, value: Any, kind: str = "") -> Scar:
    """Every resource (of that kind), also within an expanded collection, that has something there has that value."""
    names = [name.replace("@odata~", "@odata.") for name in place.replace("@odata.", "@odata~").split(".")]

    def scar(path: str, reply: HttpReply) -> HttpReply:
        if reply.status != 200 or not reply.body.startswith(b"{"):
            return reply
        whole = json.loads(reply.body)
        inside = whole.get("Members") if isinstance(whole.get("Members"), list) else []
        for each in (whole, *inside):
            if not kind or kind_of(each) == kind:
                _put(each, names, value)
        return HttpReply(reply.status, reply.headers, json.dumps(whole).encode())

    return scar


def _put(holder: Any, names: list[str], value: Any) -> None:
    first = names[0]
    listed = first.endswith("[]")
    name = first.removesuffix("[]")
    if not isinstance(holder, dict) or name not in holder:
        return
    if len(names) == 1 and not listed:
        holder[name] = value
        return
    for each in holder[name] if listed and isinstance(holder[name], list) else [holder[name]]:
        _put(each, names[1:], value)
