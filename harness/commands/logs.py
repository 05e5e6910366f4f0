"""Where log records go on the command line: the journal's side line has those of the components anyway."""

from __future__ import annotations

import logging
import os
import sys

from mews.harness import terminal
from mews.harness.commands.global_options import LOG_FORMAT, is_quiet


def keep_quiet() -> None:
    """Nothing to the terminal: a run tells what went wrong in its report."""
    logging.getLogger("mews").addHandler(logging.NullHandler())
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


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


def to_stderr() -> None:
    """Warnings to standard error, for servers in the foreground; -q: errors alone; -v shows them already."""
    logger = logging.getLogger("mews")
    if not any(isinstance(each, logging.StreamHandler) and each.level for each in logger.handlers):
        logger.addHandler(stderr_handler(logging.ERROR if is_quiet() else logging.WARNING))
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
