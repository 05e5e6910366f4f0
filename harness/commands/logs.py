"""Where log records go on the command line: the journal's side line has those of the components anyway."""

from __future__ import annotations

import logging
import os

from mews.harness.commands.global_options import is_quiet
from mews.harness.commands.log_handler import stderr_handler


def keep_quiet() -> None:
    """Nothing to the terminal: a run tells what went wrong in its report."""
    logging.getLogger("mews").addHandler(logging.NullHandler())
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def to_stderr() -> None:
    """Warnings to standard error, for servers in the foreground; -q: errors alone; -v shows them already."""
    logger = logging.getLogger("mews")
    if not any(isinstance(each, logging.StreamHandler) and each.level for each in logger.handlers):
        logger.addHandler(stderr_handler(logging.ERROR if is_quiet() else logging.WARNING))
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
