"""The file of a snapshot: JSON, read and written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.harness.live.snapshot import read_snapshot
from mews.own_files import write_own

_WANTED = "must be a snapshot, as `mews snapshot save` writes it"


def write_snapshot(path: Path, document: Mapping[str, Any]) -> None:
    """Write it: what was there before stays where that cannot be done. Its owner alone may read it: it has Secrets.

    Raises ValueError, in one line.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        try:
            write_own(part, json.dumps(document, indent=1) + "\n")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror}") from error


def load_snapshot(path: Path) -> dict[str, Any]:
    """Return the document of a file, as far as it can be judged without a session.

    Raises ValueError, in one line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is not text: {_WANTED}") from error
    try:
        document: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = "ends too early, or is not JSON" if text.lstrip().startswith("{") else "is not JSON"
        raise ValueError(f"{path}: {what} ({error}): {_WANTED}") from error
    try:
        read_snapshot(document)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return document
