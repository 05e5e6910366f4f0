"""A thread for each connection, of which there are so many at the most."""

from __future__ import annotations

import threading
import time
from socketserver import ThreadingMixIn
from typing import Any

from mews.descriptors import PAUSE_S, Refusals, exhausted
from mews.listening.limits import MOST_THREADS


class BoundedThreads(ThreadingMixIn):
    """Mixed into a server of ``socketserver``: a connection that finds no thread left is closed unanswered."""

    daemon_threads = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._pause = threading.Event()
        self._refusals = Refusals("a server on threads")
        self._free = threading.BoundedSemaphore(MOST_THREADS)
        super().__init__(*arguments, **options)

    def get_request(self) -> Any:
        """Accept a connection. With no file left for it, socketserver would ask again and again without a pause."""
        try:
            return super().get_request()  # type: ignore[misc]
        except OSError as error:
            if exhausted(error):
                self._refusals.note(time.monotonic())
                self._pause.wait(PAUSE_S)
            raise

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
