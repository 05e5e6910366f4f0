"""A thread for each connection, of which there are so many at the most."""

from __future__ import annotations

import threading
from socketserver import ThreadingMixIn
from typing import Any

from mews.listening.limits import MOST_THREADS


class BoundedThreads(ThreadingMixIn):
    """Mixed into a server of ``socketserver``: a connection that finds no thread left is closed unanswered."""

    daemon_threads = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._free = threading.BoundedSemaphore(MOST_THREADS)
        super().__init__(*arguments, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, if there is one left."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)  # type: ignore[attr-defined]
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and give the thread back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()
