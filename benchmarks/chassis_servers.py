"""One Flask application of a chassis behind several HTTP servers: ours with and without its short way for plain GETs,
cheroot as it comes, waitress and, where it is installed, gunicorn with threads."""

from __future__ import annotations

import importlib.util
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.common import await_condition, process, progress, report, requests_per_s
from benchmarks.hardware import hardware

PATH = "/h3api/v1/resources"
SLOW = 150
TURNS = 3
PEERS = ("cheroot", "no short way", "waitress", "gunicorn")

SERVER = """
import os, sys
from mews.emulator import serve
from mews.emulator.http_server import HttpServer
from mews.emulator.inventory_file import load_hardware

kind, file, told = sys.argv[1:]
kept = []

class Kept:
    port = 1
    def __init__(self, app, host, port, *, tls=None, quick=None):
        kept.append((app, quick))
    def start(self): pass
    def stop(self): pass

serve.HttpServer = Kept
chassis = serve.ChassisServer(load_hardware(file), dialects=("h3api",))
chassis.start()
app, quick = kept[0]

def tell(port):
    open(told + ".part", "w").write(str(port))
    os.rename(told + ".part", told)

if kind in ("mews", "no short way"):
    server = HttpServer(app, "127.0.0.1", 0, quick=quick if kind == "mews" else None)
    server.start()
    tell(server.port)
    server._thread.join()
elif kind == "cheroot":
    from cheroot import wsgi
    server = wsgi.Server(("127.0.0.1", 0), app, numthreads=8)
    server.prepare()
    tell(server.bind_addr[1])
    server.serve()
elif kind == "waitress":
    from waitress import create_server
    server = create_server(app, host="127.0.0.1", port=0, threads=8)
    tell(server.effective_port)
    server.run()
else:
    import socket
    from gunicorn.app.base import BaseApplication
    probe = socket.create_server(("127.0.0.1", 0)); port = probe.getsockname()[1]; probe.close()
    class Served(BaseApplication):
        def load_config(self):
            given = {"bind": f"127.0.0.1:{port}", "worker_class": "gthread", "threads": 8, "loglevel": "critical"}
            for name, value in {**given, "post_worker_init": lambda worker: tell(port)}.items():
                self.cfg.set(name, value)
        def load(self): return app
    Served().run()
"""


def slow_clients(port: int) -> float:
    """Return the longest wait in seconds of four requests while others send their heads bit by bit."""
    slow = []
    for _ in range(SLOW):
        wire = socket.create_connection(("127.0.0.1", port), timeout=30)
        wire.sendall(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ".encode())
        slow.append(wire)
    try:
        return max(one_request(port) for _ in range(4))
    finally:
        for wire in slow:
            wire.close()


def one_request(port: int) -> float:
    """Return seconds that a GET takes on a connection of its own; 12 where none came."""
    began = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=12) as wire:
            wire.sendall(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            wire.recv(4096)
    except OSError:
        return 12.0
    return time.monotonic() - began


def p99_s(port: int, *, clients: int = 8, requests: int = 40) -> float:
    """Return that of requests on connections of their own, by several clients at once."""
    took: list[float] = []
    threads = [
        threading.Thread(target=lambda: took.extend(one_request(port) for _ in range(requests))) for _ in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took)[len(took) * 99 // 100]


def held(pid: int) -> tuple[int, float]:
    """Threads and MiB of a process and its children."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())]
    threads, memory = 0, 0.0
    for each in pids:
        status = Path(f"/proc/{each}/status").read_text(encoding="ascii")
        threads += int(status.partition("Threads:")[2].split()[0])
        memory += int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return threads, memory


def main() -> None:
    """Every server, in turns."""
    peers = [peer for peer in PEERS if peer != "gunicorn" or importlib.util.find_spec("gunicorn")]
    found: dict[str, list[list[float]]] = {peer: [] for peer in ("mews", *peers)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hardware.yaml"
        file.write_text(hardware(hosts=4, gpus_per_host=3))
        for turn in range(TURNS):
            for peer in found:
                progress(f"{peer}, turn {turn + 1}")
                found[peer].append(measured(peer, str(file), Path(folder) / f"{peer}-{turn}".replace(" ", "-")))
    means = {peer: [sum(values) / TURNS for values in zip(*turns, strict=True)] for peer, turns in found.items()}
    units = ("requests/s", "p99 s", "longest wait with slow clients s", "threads after", "MiB")
    for peer in peers:
        for unit, ours, theirs in zip(units, means["mews"], means[peer], strict=True):
            report("chassis_servers", ours, unit, baseline=theirs, baseline_name=peer)


def measured(peer: str, file: str, told: Path) -> list[float]:
    """Return the figures of one server, newly started."""
    with process(sys.executable, "-c", SERVER, peer, file, str(told)) as child:
        await_condition(told.exists, peer)
        port = int(told.read_text(encoding="ascii"))
        speed = requests_per_s("127.0.0.1", port, PATH, seconds=1.5)
        tail = p99_s(port)
        waited = slow_clients(port)
        time.sleep(13)  # slow clients are given up by now
        threads, memory = held(child.pid)
    return [speed, tail, waited, threads, memory]


if __name__ == "__main__":
    main()
