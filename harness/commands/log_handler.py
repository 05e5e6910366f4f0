"""What writes log records to a terminal."""

from __future__ import annotations

import logging
import sys

from mews.harness import terminal

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Shown(logging.Formatter):
    """Records as a terminal may have them: they quote what strangers sent."""

    def format(self, record: logging.LogRecord) -> str:
        return terminal.escaped(super().format(record))


def stderr_handler(level: int | str) -> logging.Handler:
    """Writes records of that level and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level)
    handler.setFormatter(_Shown(LOG_FORMAT))
    return handler
