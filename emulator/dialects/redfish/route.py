"""Routes: what a URI names, who may change it and how. Each family of resources has a tuple of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from mews.emulator.dialects.redfish.accounts import COMPONENTS, Account, Session
from mews.emulator.dialects.redfish.patching import Rules
from mews.emulator.dialects.redfish.replies import PreparedReply
from mews.emulator.dialects.redfish.schemas import odata_type
from mews.emulator.dialects.redfish.service_state import RedfishView, ServiceState
from mews.emulator.dialects.redfish.tasks import Done, Started
from mews.emulator.dialects.redfish.uris import ref
from mews.emulator.dialects.wire import Request

Body = dict[str, Any]
NONE: Mapping[str, Any] = MappingProxyType({})


class Requester(Struct, frozen=True):
    """Who asks: an account, and the session that it came by; neither for what everybody may."""

    account: Account | None = None
    session: Session | None = None

    def may(self, privilege: str) -> bool:
        """Return whether the account has the privilege."""
        return self.account is not None and self.account.may(privilege)


class RedfishWrite(Struct, frozen=True):
    """A write: ``args`` are the path's, ``body`` what was sent (a PATCH: what of it can be done)."""

    view: RedfishView
    uri: str
    args: tuple[str, ...]
    body: Mapping[str, Any]
    who: Requester
    request: Request
    shown: Mapping[str, Any]
    read: Callable[[str], Body | None]

    @property
    def state(self) -> ServiceState:
        """The service's memory."""
        return self.view.state

    @property
    def now_s(self) -> float:
        """Emulated seconds."""
        return self.view.now_s


Answerer = Callable[[RedfishView, Request, tuple[str, ...]], PreparedReply]
Handler = Callable[[RedfishWrite], Done | Started]
Reader = Callable[..., Body | None]


class RedfishRoute(Struct, frozen=True):
    """One kind of resource. ``read`` gets the view and the path's arguments and answers None where there is nothing.

    ``rules`` are the properties that PATCH may write: laid over the body, unless ``patch`` does something with them.

    ``answer`` gives another reply to GET than the resource.
    ``listing``: a read of the device lookup table, which takes the chassis' time and meets its faults.
    """

    path: str
    read: Reader
    rules: Rules | Callable[[RedfishView], Rules] = field(default_factory=lambda: NONE)
    patch: Handler | None = None
    post: Handler | None = None
    delete: Handler | None = None
    actions: Mapping[str, Handler] = field(default_factory=lambda: NONE)
    privilege: str = COMPONENTS
    answer: Answerer | None = None
    listing: bool = False

    def allow(self) -> str:
        """Return the ``Allow`` header."""
        verbs = ["GET", "HEAD"]
        verbs += ["PATCH"] if self.rules else []
        verbs += ["POST"] if self.post else []
        verbs += ["DELETE"] if self.delete else []
        return ", ".join(verbs)


def resource(schema: str, uri: str, name: str, **fields: Any) -> Body:
    """Return a resource's body; its ID is the last segment of its URI unless given."""
    start: Body = {
        "@odata.id": uri,
        "@odata.type": odata_type(schema),
        "Id": fields.pop("Id", uri.rpartition("/")[2]),
        "Name": name,
    }
    return start | fields


def collection(schema: str, uri: str, name: str, members: Sequence[str]) -> Body:
    """Return a collection of resources, by their URIs."""
    return {
        "@odata.id": uri,
        "@odata.type": odata_type(f"{schema}Collection"),
        "Name": name,
        "Members": [ref(member) for member in members],
        "Members@odata.count": len(members),
    }


def links(uris: Sequence[str], name: str) -> Body:
    """Return a list of references with its count."""
    return {name: [ref(uri) for uri in uris], f"{name}@odata.count": len(uris)}


OK = MappingProxyType({"State": "Enabled", "Health": "OK"})


class RouteTree:
    """All routes, found by path in a step per segment."""

    def __init__(self, routes: Sequence[RedfishRoute]) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            node = self._root
            for segment in _segments(route.path):
                node = node.setdefault("{}" if segment.startswith("{") else segment, {})
            node["/"] = route

    def find(self, path: str) -> tuple[RedfishRoute, tuple[str, ...]] | None:
        """Return the route of a path and the path's arguments."""
        node, args = self._root, []
        for segment in _segments(path):
            if segment in node and segment not in ("{}", "/"):
                node = node[segment]
            elif "{}" in node:
                node = node["{}"]
                args.append(segment)
            else:
                return None
        found = node.get("/")
        return None if found is None else (found, tuple(args))


def _segments(path: str) -> list[str]:
    return path.strip("/").split("/")
