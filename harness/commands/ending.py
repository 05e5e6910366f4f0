"""How a command with worker processes ends when it is told to."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within, SIGTERM is Ctrl-C, so that workers end and reports are written."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
