"""Where log records go on the command line: the journal's side line has those of the components anyway."""

from __future__ import annotations

import logging
import os
import sys


def keep_quiet() -> None:
    """Nothing to the terminal: a run tells what went wrong in its report."""
    logging.getLogger("mews").addHandler(logging.NullHandler())
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def to_stderr() -> None:
    """Warnings to standard error, for servers in the foreground."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("mews").addHandler(handler)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
