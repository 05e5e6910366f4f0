"""Small chassis that are wrong on purpose, in both plain dialects."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Wrong:
    """A table of three devices, the first two free; ``how`` is any-port, loses, lies, or nothing (right)."""

    def __init__(self, how: str = "") -> None:
        self.how = how
        self.ports: dict[str, str] = {"000100": "", "000200": "", "000300": "1"}
        self.known = ("1", "2", "3")
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
            if port not in self.known and self.how != "any-port":
                return "port"
            if self.how != "lies":
                self.ports[device] = port
            return ""

    def detach(self, device: str) -> str:
        with self.lock:
            if device not in self.ports:
                return "device"
            if self.how == "loses" and self.ports[device]:
                del self.ports[device]
            else:
                self.ports[device] = ""
            return ""


POOL = {
    "device": (404, "Device not found"),
    "attached": (400, "Device is already attached. Detach it first."),
    "no port": (400, "HostPort is not given."),
    "port": (400, "HostPort not found"),
}


class Handler(BaseHTTPRequestHandler):
    """Speaks h3api below /h3api/ and resource-pool elsewhere."""

    protocol_version = "HTTP/1.1"
    box: Wrong

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quiet."""

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, kind, text = self.h3api(body) if self.path.startswith("/h3api/") else self.pool(body)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode() if status != 204 else b"")

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = answer

    def h3api(self, body: bytes) -> tuple[int, str, str]:
        kind = "application/json"
        if self.command == "GET":
            devices = [
                {"dev_type": "GPU", "Dev_GID": device, "Host_Port#": port, "OB_GPU_GUID": f"GPU-{device}"}
                for device, port in sorted(self.box.ports.items())
            ]
            known = sorted({*self.box.known, *filter(None, self.box.ports.values())})
            ports = [{"Port#": port, "Port_GID": f"{int(port):02X}h"} for port in known]
            return 200, kind, json.dumps(devices + ports)
        wrong = self.h3api_write(body)
        return 200, kind, json.dumps({"action": "x", "result": [not wrong], "remark": wrong or "done"})

    def h3api_write(self, body: bytes) -> str:
        try:
            value = json.loads(body)
            device = value["dev_gid"]
            gid = value.get("port_gid", "")
        except (ValueError, KeyError, TypeError):
            return "request"
        if self.command == "DELETE":
            return self.box.detach(device)
        return self.box.attach(device, str(int(gid.rstrip("h"), 16)) if gid else "")

    def pool(self, body: bytes) -> tuple[int, str, str]:
        if self.path == "/resources" and self.command == "GET":
            rows = [
                {"devid": device, "uuid": f"GPU-{device}", "hostport": port}
                for device, port in sorted(self.box.ports.items())
            ]
            return 200, "application/json", json.dumps(rows or None)
        if self.path != "/allocation" or self.command not in ("POST", "DELETE"):
            return 405, "text/plain", ""
        try:
            value = json.loads(body)
            device, port = value["devid"], value.get("hostport", "")
            if not isinstance(device, str):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            return 400, "text/plain", "Invalid request payload"
        wrong = self.box.detach(device) if self.command == "DELETE" else self.box.attach(device, port)
        status, text = POOL[wrong] if wrong else (204, "")
        return status, "text/plain", text


@contextmanager
def wrong_server(how: str = "") -> Iterator[tuple[str, Wrong]]:
    """URL and box."""
    box = Wrong(how)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handled", (Handler,), {"box": box}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", box
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
