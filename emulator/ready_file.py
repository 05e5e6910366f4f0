"""The file that says that all of a server serves."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any


def write_ready(path: Path, ready: dict[str, Any]) -> None:
    """Write a ready file such that a reader sees all of it or none; only its owner may read it, for the token.

    Raises OSError, one line that names the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(json.dumps(ready) + "\n")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OSError(f"--ready {path}: cannot be written: {error.strerror or error}") from error
