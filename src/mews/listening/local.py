"""Unix sockets answered on threads: one for each connection, of which there are so many at the most."""

from __future__ import annotations

import socketserver
import threading
from pathlib import Path
from typing import Any

from mews.listening.limits import MOST_THREADS

_BACKLOG = 256


class LocalThreads(socketserver.ThreadingUnixStreamServer):
    """Listens on a path, whose folder says who may enter; ``handler`` is made for each connection.

    Raises OSError where the path cannot be bound.
    """

    daemon_threads = True
    request_queue_size = _BACKLOG

    def __init__(self, path: Path, handler: Any) -> None:
        self._free = threading.BoundedSemaphore(MOST_THREADS)
        super().__init__(str(path), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, if there is one left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and give the thread back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()
