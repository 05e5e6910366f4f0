"""Small chassis that are wrong on purpose, in both plain dialects, without a wire or behind one."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from mews.harness.conformance.client import ChassisTarget, Client, HttpReply
from mews.harness.conformance.errors import NoAnswer

Records = list[dict[str, Any]]
Answered = tuple[int, str, str]
"""Status, content type, body."""
DROPPED: Answered = (0, "", "")
JSON, TEXT = "application/json", "text/plain"


class Wrong:
    """A table of three devices, the first two free, and right but for what its hooks do.

    ``how`` is any-port, gaps (those of the published simulator), loses, lies, denies, moves-attached, knocks-off,
    changes-uuid, or nothing. ``listing`` changes the records, ``answer`` the answer to a request (method, path, body,
    answer), which it gets the number of.
    """

    def __init__(
        self,
        how: str = "",
        listing: Callable[[Records], Any] = lambda records: records,
        answer: Callable[[str, str, int, Answered], Answered] = lambda method, path, number, answered: answered,
    ) -> None:
        self.how = how
        self.listing = listing
        self.change = answer
        self.ports: dict[str, str] = {"000100": "", "000200": "", "000300": "1"}
        self.uuids = {device: f"GPU-{device}" for device in self.ports}
        self.known = ("1", "2", "3")
        self.requests = 0
        self.lock = threading.Lock()

    def attach(self, device: str, port: str) -> str:
        """Empty, or why not."""
        with self.lock:
            if device not in self.ports:
                return "device"
            if self.ports[device] and self.how != "moves-attached":
                return "attached"
            if not port:
                return "no port"
            if port not in self.known and self.how not in ("any-port", "gaps"):
                return "port"
            if self.how != "lies":
                self.ports[device] = port
            if self.how == "changes-uuid":
                self.uuids[device] = f"GPU-{device}-{port}"
            if self.how == "knocks-off" and device != "000300":
                self.ports["000300"] = ""
            return "" if self.how != "denies" else "timeout"

    def detach(self, device: str) -> str:
        with self.lock:
            if device not in self.ports:
                return "device"
            if self.how == "loses" and self.ports[device]:
                del self.ports[device]
            else:
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
    "timeout": (400, "timed out"),
}


class LocalClient(Client):
    """Speaks to a box in this process."""

    def __init__(self, box: Wrong) -> None:
        super().__init__(ChassisTarget("http://box"))
        self.box = box

    def _send(self, method: str, path: str, body: bytes | None, headers: Any, most: int = 0) -> HttpReply:
        status, kind, text = self.box.answer(method, path, body or b"")
        if not status:
            raise NoAnswer("dropped", f"{method} {path}: no answer")
        return HttpReply(status, {"content-type": kind}, text.encode())


class Handler(BaseHTTPRequestHandler):
    """Speaks h3api below /h3api/ and resource-pool elsewhere."""

    protocol_version = "HTTP/1.1"
    box: Wrong

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind, text = self.box.answer(self.command, self.path, body)
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode() if status != 204 else b"")

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer


class OddHandler(Handler):
    """As right, in another way: lower-case header names, chunks, and the connection is closed after each reply.
    ``packs``: with gzip, whatever was asked for."""

    packs = False

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind, text = self.box.answer(self.command, self.path, body)
        content = gzip.compress(text.encode()) if self.packs else text.encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("cONTENT-tYPE", f"{kind};charset=utf-8")
        self.send_header("connection", "close")
        if self.packs:
            self.send_header("content-encoding", "gzip")
        if status != 204:
            self.send_header("transfer-encoding", "Chunked")
        self.end_headers()
        if status != 204:
            for start in range(0, len(content), 7):
                part = content[start : start + 7]
                self.wfile.write(b"%X;note=x\r\n%b\r\n" % (len(part), part))
            self.wfile.write(b"0\r\nx-trailer: 1\r\n\r\n")

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer


@contextmanager
def wrong_server(how: str = "") -> Iterator[tuple[str, Wrong]]:
    """URL and box."""
    box = Wrong(how)
    with serving(box) as url:
        yield url, box


@contextmanager
def serving(box: Wrong, handler: type[Handler] = Handler) -> Iterator[str]:
    """Its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handled", (handler,), {"box": box}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def slowly(answered: Answered, delay_s: float) -> Answered:
    """The same, late."""
    time.sleep(delay_s)
    return answered
