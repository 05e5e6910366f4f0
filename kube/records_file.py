"""Structured log records as JSON lines in a file, for whoever wants to follow a component that is another process."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

from mews.own_files import append_own


class RecordsFile(logging.Handler):
    """Appends ``{"t", "actor", "event", "fields"}`` (t: unix seconds) for each ``mews.kube.component.record``, and
    ``{"t", "actor", "level", "message"}`` for each warning; ``-`` is standard output."""

    def __init__(self, path: Path) -> None:
        super().__init__(logging.INFO)
        standard = str(path) == "-"
        self._file = sys.stdout if standard else io.TextIOWrapper(append_own(path), encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        entry = {"t": round(record.created, 6), "actor": record.name}
        event = getattr(record, "event", None)
        if event is not None:
            entry |= {"event": str(event), "fields": getattr(record, "fields", {})}
        elif record.levelno >= logging.WARNING:
            entry |= {"level": record.levelname.lower(), "message": record.getMessage()}
        else:
            return
        self._file.write(json.dumps(entry, separators=(",", ":"), default=str) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not sys.stdout:
            self._file.close()
        super().close()
