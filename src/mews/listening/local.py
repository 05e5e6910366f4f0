"""Unix sockets answered on threads."""

from __future__ import annotations

import socketserver
from pathlib import Path
from typing import Any

from mews.listening.threads import BoundedThreads

_BACKLOG = 256


class LocalThreads(BoundedThreads, socketserver.UnixStreamServer):
    """Listens on a path, whose folder says who may enter; ``handler`` is made for each connection.

    Raises OSError where the path cannot be bound.
    """

    request_queue_size = _BACKLOG

    def __init__(self, path: Path, handler: Any) -> None:
        super().__init__(str(path), handler)
