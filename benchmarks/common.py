"""What the benchmarks share: one JSON line a figure, processes that end, and a keep-alive HTTP load."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def report(bench: str, value: float, unit: str, *, baseline: float | None = None, baseline_name: str = "") -> None:
    """Print one figure as a JSON object on a line of its own; ratio = value / baseline."""
    line = {
        "bench": bench,
        "value": round(value, 4),
        "unit": unit,
        "baseline": None if baseline is None else round(baseline, 4),
        "baseline_name": baseline_name or None,
        "ratio": round(value / baseline, 3) if baseline else None,
    }
    print(json.dumps(line), flush=True)


def progress(text: str) -> None:
    """Say on standard error what is being measured."""
    print(text, file=sys.stderr, flush=True)


def await_condition(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    """Wait for a condition with a deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:.0f} s for {what}")
        time.sleep(0.02)


@contextmanager
def process(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """Provide a child that is terminated at the end."""
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def in_turns(*measures: Callable[[], float], turns: int = 3) -> list[float]:
    """Return the mean of each, taken one after the other several times: what else the machine does meets all of
    them."""
    found = [[measure() for measure in measures] for _ in range(turns)]
    return [sum(values) / turns for values in zip(*found, strict=True)]


def requests_per_s(host: str, port: int, path: str, *, connections: int = 8, seconds: float = 3.0) -> float:
    """GETs answered with 200 per second over keep-alive connections, one thread each."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    counts = [0] * connections
    errors: list[str] = []
    begin = time.monotonic() + 0.3
    end = begin + seconds

    def drive(slot: int) -> None:
        with socket.create_connection((host, port)) as connection, connection.makefile("rb") as answers:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while time.monotonic() < end:
                connection.sendall(request)
                status = answers.readline()
                if b" 200 " not in status:
                    errors.append(status.decode(errors="replace"))
                    return
                length = 0
                while (header := answers.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                answers.read(length)
                if time.monotonic() >= begin:
                    counts[slot] += 1

    threads = [threading.Thread(target=drive, args=(slot,)) for slot in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(f"GET {path}: {errors[0].strip()}")
    return sum(counts) / seconds
