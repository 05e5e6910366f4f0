"""The table over Redfish (contract chassis.md 4): a session, the zones of a PCIe fabric, and their actions."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mews.harness.conformance.client import Client, HttpReply, below_500
from mews.harness.conformance.errors import HttpServerError, MalformedError, NoAnswerError, NotJudgedError
from mews.harness.conformance.fields import at, link_of, links, local, objects, text
from mews.harness.conformance.table import ListedDevice, ListedTable, Versions, more_than_once

ROOT = "/redfish/v1/"
SESSIONS = "/redfish/v1/SessionService/Sessions"
TYPE = re.compile(r"#(\w+)\.v(\d+)_(\d+)_(\d+)\.\w+")
ADD, REMOVE = "#Zone.AddEndpoint", "#Zone.RemoveEndpoint"
MONITOR_S, BRIEF_S = 20.0, 3.0
"""How long a task monitor may be 202; where one was too long, others are not waited for as long."""
REFUSED = (401, 403)
"""A login that is answered so is not made again in another way: the account might be locked."""
TRIES = 3
"""Of one member of a collection."""


class RedfishTableClient:
    """Logs in with the client's credentials when first needed; where sessions are refused, Basic over TLS is tried."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._headers: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._zones: dict[str, str] = {}
        self._endpoints: dict[str, str] = {}
        self._failed: Counter[str] = Counter()
        self.login: HttpReply | None = None
        """The reply to the login."""
        self.task: list[HttpReply] = []
        """The replies to the last long operation: 202s and its own."""
        self._endless = False
        self.during: Callable[[], None] = lambda: None
        """Called while a long operation runs."""
        self.seen: dict[str, str] = {}
        """Schema -> version, of everything that was read."""

    # Requests

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, known: bool = True
    ) -> HttpReply:
        """Return an answer below 500; ``known``: as somebody who has logged in.

        Raises NoAnswerError, ServerError.
        """
        content = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        form = "application/xml" if path.endswith("$metadata") else "application/json"
        own = {"Accept": form, **kind, **(headers or {})}
        reply = self._client.send(method, path, content, {**own, **(self.who() if known else {})})
        if reply.status == 401 and known and self.login is not None and self.login.status == 201:
            with self._lock:
                self._headers, self.login = {}, None
            reply = self._client.send(method, path, content, {**own, **self.who()})
        return below_500(reply, f"{method} {path}", but=(501,))

    def get(self, path: str) -> dict[str, Any]:
        """Return a resource.

        Raises NoAnswerError, ServerError, MalformedError.
        """
        reply = self.send("GET", path)
        if reply.status != 200:
            raise MalformedError(f"GET {path}: HTTP {reply.status}: {reply.text[:120]}")
        value = reply.json()
        if not isinstance(value, dict):
            raise MalformedError(f"GET {path}: must be an object: {reply.text[:120]!r}")
        self.saw(value)
        return value

    def saw(self, value: Any) -> None:
        """Take down the schema version of a resource."""
        found = TYPE.fullmatch(str(value.get("@odata.type"))) if isinstance(value, dict) else None
        if found:
            self.seen[found[1]] = ".".join(found.groups()[1:])

    def who(self) -> Mapping[str, str]:
        """Return the headers of somebody who has logged in."""
        with self._lock:
            if not self._headers and self.login is None and self._client.credentials is not None:
                self._log_in(*self._client.credentials)
            return dict(self._headers)

    def _log_in(self, user: str, password: str) -> None:
        body = json.dumps({"UserName": user, "Password": password}).encode()
        reply = self._client.send("POST", SESSIONS, body, {"Content-Type": "application/json"})
        self.login = below_500(reply, f"POST {SESSIONS}", but=(501,))
        token = reply.headers.get("x-auth-token", "")
        if reply.status == 201 and token:
            self._client.keep_secret(token)
            self._headers = {"X-Auth-Token": token}
        elif self._client.encrypted and reply.status not in REFUSED:
            self._headers = self.basic()

    def basic(self) -> dict[str, str]:
        """Return the header of Basic authentication."""
        user, password = self._client.credentials or ("", "")
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._client.keep_secret(pair)
        return {"Authorization": f"Basic {pair}"}

    # The table

    def path(self, name: str) -> str:
        """Return where Fabric, Zones or Endpoints are: those of the first PCIe fabric."""
        if not self._paths:
            root = self.get(ROOT)
            if "Fabrics" not in root:
                raise NoFabricError("the service has no fabric: its root has no Fabrics")
            fabrics = self.get(link(root, "Fabrics"))
            found = [(path, self.get(path)) for path in links(fabrics, "Members")]
            if not found:
                raise NoFabricError("the service has no fabric: Fabrics has no members")
            path, fabric = next((each for each in found if each[1].get("FabricType") == "PCIe"), found[0])
            self._paths = {"Fabric": path, **{each: link(fabric, each) for each in ("Zones", "Endpoints")}}
        return self._paths[name]

    def members(self, path: str) -> list[dict[str, Any]]:
        """Return the resources of a collection, expanded where the service can, over all its pages."""
        expands = at(self.get(ROOT), "ProtocolFeaturesSupported", "ExpandQuery", "NoLinks") is True
        page: str | None = f"{path}?$expand=.($levels=1)" if expands else path
        found: list[dict[str, Any]] = []
        while page is not None:
            value = self.get(page)
            if not isinstance(value.get("Members"), list):
                raise MalformedError(f"GET {page}: must have Members")
            for member in objects(value, "Members"):
                whole = dict(member) if set(member) - {"@odata.id"} else self._member(link_of(member))
                found += [] if whole is None else [whole]
            following = text(value, "Members@odata.nextLink")
            page = local(following) if following else None
        for member in found:
            self.saw(member)
        return found

    def _member(self, path: str) -> dict[str, Any] | None:
        """Return a member of a collection; None where it cannot be had, time and again, while others can."""
        try:
            found = self.get(path) if path else None
        except (HttpServerError, MalformedError):
            self._failed[path] += 1
            if self._failed[path] < TRIES:
                raise
            return None
        self._failed.pop(path, None)
        return found

    def read(self) -> ListedTable:
        """Devices are the target endpoints, ports the zones of the initiators."""
        rows: dict[str, ListedDevice] = {}
        ports: list[str] = []
        names: list[str] = []
        for endpoint in self.members(self.path("Endpoints")):
            zones = links(endpoint, "Links", "Zones")
            port = tail(zones[0]) if zones else None
            name = text(endpoint, "Id")
            if not name:
                continue
            self._endpoints[name] = link_of(endpoint)
            if initiates(endpoint):
                if port is not None:
                    ports.append(port)
                    self._zones[port] = zones[0]
                continue
            names.append(name)
            rows[name] = ListedDevice(durable_name(endpoint), port)
        return ListedTable(rows, tuple(ports), more_than_once(names))

    def zone(self, port: str) -> str:
        """Return the zone of a host port; what it would be called, of one that there is not."""
        return self._zones.get(port) or f"{self.path('Zones')}/{port}"

    def endpoint(self, device: str) -> str:
        """Return a device's endpoint; likewise."""
        return self._endpoints.get(device) or f"{self.path('Endpoints')}/{device}"

    def attach(self, device: str, port: str) -> bool:
        """``#Zone.AddEndpoint`` of the port's zone."""
        return self.act(self.zone(port), ADD, device).status < 400

    def detach(self, device: str) -> bool:
        """``#Zone.RemoveEndpoint`` of the device's zone; a free one stays so."""
        reply = self.send("GET", self.endpoint(device))
        if reply.status >= 400:
            return False
        zones = links(reply.json(), "Links", "Zones")
        return not zones or self.act(zones[0], REMOVE, device).status < 400

    def detach_again(self, device: str, port: str) -> bool:
        """``#Zone.RemoveEndpoint`` of that port's zone, wherever the device is."""
        return self.act(self.zone(port), REMOVE, device).status < 400

    def call(self, device: str, port: str | None) -> str:
        """Return the request that moves a device."""
        word, zone = (REMOVE, "ZONE") if port is None else (ADD, self.zone(port))
        body = {"Endpoint": {"@odata.id": self.endpoint(device)}}
        return f"POST {zone}/Actions/{word.lstrip('#')} {json.dumps(body)}"

    def act(self, zone: str, action: str, device: str, **parameters: str) -> HttpReply:
        """Return one of a zone's actions, followed to its end."""
        body = {"Endpoint": {"@odata.id": self.endpoint(device)}, **parameters}
        return self.follow(self.send("POST", f"{zone}/Actions/{action.lstrip('#')}", body))

    def follow(self, reply: HttpReply) -> HttpReply:
        """Return the operation's own reply: that of its task monitor once it is not 202 any more. Where the monitor
        gives none, what became of it is unknown, and NoAnswerError is raised: the table shows it."""
        self.task = [reply]
        patience_s = min(self._client.address.patience_s, BRIEF_S if self._endless else MONITOR_S)
        began_s = time.monotonic()
        while reply.status == 202:
            monitor = reply.headers.get("location") or self.task[0].headers.get("location")
            if not monitor:
                raise NoAnswerError("monitor", "HTTP 202 without the Location of a task monitor")
            if time.monotonic() - began_s > patience_s:
                self._endless = True
                raise NoAnswerError("monitor", f"the task monitor {monitor} is 202 still after {patience_s:g} s")
            self.during()
            after = reply.headers.get("retry-after", "")
            threading.Event().wait(min(int(after), 5) if after.isdecimal() else 1.0)
            reply = self.send("GET", local(monitor))
            if reply.status == 404:
                raise NoAnswerError("monitor", f"the task monitor {monitor} is HTTP 404 before it gave an answer")
            self.task.append(reply)
        return reply

    def versions(self) -> Versions:
        """Return that of the root, the manager's firmware, and every schema that was seen."""
        root = self.send("GET", ROOT, known=False).json()
        service = {
            name: found for name in ("RedfishVersion", "Vendor", "Product", "UUID") if (found := text(root, name))
        }
        try:
            for manager in self.members(link(root, "Managers")):
                if text(manager, "FirmwareVersion"):
                    service["FirmwareVersion"] = text(manager, "FirmwareVersion")
        except MalformedError:
            pass
        return Versions(service, dict(sorted(self.seen.items())))

    def close(self) -> None:
        """Log out."""
        where = self.login.headers.get("location") if self.login is not None else None
        with self._lock:
            who, self._headers, self.login = self._headers, {}, None
        if where and "X-Auth-Token" in who:
            self._client.send("DELETE", local(where), None, who)


class NoFabricError(NotJudgedError):
    """There is no table: the service is no chassis of a fabric."""


def link(value: Any, name: str) -> str:
    """Return where a member of a resource leads.

    Raises MalformedError.
    """
    found = link_of(at(value, name))
    if not found:
        raise MalformedError(f"{link_of(value) or 'a resource'}: {name} is not a link")
    return found


def tail(path: str) -> str:
    """Return the last part."""
    return path.rstrip("/").rpartition("/")[2]


def initiates(endpoint: Mapping[str, Any]) -> bool:
    """Return whether it is a host port's."""
    return any(each.get("EntityRole") == "Initiator" for each in objects(endpoint, "ConnectedEntities"))


def durable_name(endpoint: Mapping[str, Any]) -> str:
    """Return the first durable name of an endpoint: a GPU's UUID."""
    names = [text(each, "DurableName") for each in objects(endpoint, "Identifiers")]
    return names[0] if names else ""
