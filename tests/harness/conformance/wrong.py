"""A small chassis of both plain dialects, without a wire, whose every answer can be any other."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from mews.harness.conformance.client import ChassisTarget, Client, HttpReply

Records = list[dict[str, Any]]
Answered = tuple[int, str, str]
"""Status, content type, body."""
JSON, TEXT = "application/json", "text/plain"


class Wrong:
    """A table of three devices, the first two free, and right but for what its hooks do.

    ``listing`` changes the records, ``answer`` the answer to a request (method, path, body, answer), which it gets the
    number of.
    """

    def __init__(
        self,
        listing: Callable[[Records], Any] = lambda records: records,
        answer: Callable[[str, str, int, Answered], Answered] = lambda method, path, number, answered: answered,
    ) -> None:
        self.listing = listing
        self.change = answer
        self.ports: dict[str, str] = {"000100": "", "000200": "", "000300": "1"}
        self.uuids = {device: f"GPU-16a0c321-0000-4000-8000-000000{device}" for device in self.ports}
        self.known = ("1", "2", "3")
        self.requests = 0
        self.lock = threading.Lock()

    def attach(self, device: str, port: str) -> str:
        """Empty, or why not."""
        with self.lock:
            if device not in self.ports:
                return "device"
            if self.ports[device]:
                return "attached"
            if not port:
                return "no port"
            if port not in self.known:
                return "port"
            self.ports[device] = port
            return ""

    def detach(self, device: str) -> str:
        with self.lock:
            if device not in self.ports:
                return "device"
            self.ports[device] = ""
            return ""

    def answer(self, method: str, path: str, body: bytes) -> Answered:
        """As on the wire."""
        with self.lock:
            self.requests += 1
            number = self.requests
        answered = self.h3api(method, body) if path.startswith("/h3api/") else self.pool(method, path, body)
        return self.change(method, path, number, answered)

    def h3api(self, method: str, body: bytes) -> Answered:
        if method == "GET":
            devices: Records = [
                {"dev_type": "GPU", "Dev_GID": device, "Host_Port#": port, "OB_GPU_GUID": self.uuids[device]}
                for device, port in sorted(self.ports.items())
            ]
            known = sorted({*self.known, *filter(None, self.ports.values())})
            ports: Records = [{"Port#": port, "Port_GID": f"{int(port):02X}h"} for port in known]
            return 200, JSON, json.dumps(self.listing(devices + ports))
        wrong = self.h3api_write(method, body)
        return 200, JSON, json.dumps({"action": "x", "result": [not wrong], "remark": wrong or "done"})

    def h3api_write(self, method: str, body: bytes) -> str:
        try:
            value = json.loads(body)
            device = value["dev_gid"]
            gid = value.get("port_gid", "")
        except (ValueError, KeyError, TypeError):
            return "request"
        if method == "DELETE":
            return self.detach(device)
        return self.attach(device, str(int(gid.rstrip("h"), 16)) if gid else "")

    def pool(self, method: str, path: str, body: bytes) -> Answered:
        if path == "/resources" and method == "GET":
            rows: Records = [
                {"devid": device, "uuid": self.uuids[device], "hostport": port}
                for device, port in sorted(self.ports.items())
            ]
            return 200, JSON, json.dumps(self.listing(rows) or None)
        if path != "/allocation" or method not in ("POST", "DELETE"):
            return 405, TEXT, ""
        try:
            value = json.loads(body)
            device, port = value["devid"], value.get("hostport", "")
            if not isinstance(device, str):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            return 400, TEXT, "Invalid request payload"
        wrong = self.detach(device) if method == "DELETE" else self.attach(device, port)
        status, text = POOL[wrong] if wrong else (204, "")
        return status, TEXT, text


POOL = {
    "device": (404, "Device not found"),
    "attached": (400, "Device is already attached. Detach it first."),
    "no port": (400, "HostPort is not given."),
    "port": (400, "HostPort not found"),
}


class LocalClient(Client):
    """Speaks to a box in this process."""

    def __init__(self, box: Wrong) -> None:
        super().__init__(ChassisTarget("http://box"))
        self.box = box

    def _send(self, method: str, path: str, body: bytes | None, headers: Any, most: int = 0) -> HttpReply:
        status, kind, text = self.box.answer(method, path, body or b"")
        return HttpReply(status, {"content-type": kind}, text.encode())
