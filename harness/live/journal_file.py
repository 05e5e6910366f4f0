"""The journal of a session on disk: one line each, beside ready.json, bounded."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path
from typing import IO

from mews.harness.journal import Journal
from mews.kube.system.journal import Line

log = logging.getLogger(__name__)

NAME = "journal.jsonl"
OLDER = "journal.older.jsonl"
"""The lines before those of the former, once that was full."""
MOST_BYTES = 64 * 1024 * 1024


class JournalFile:
    """Writes every line of a journal from now on, those it remembers first. A disk that is full, or a folder that has
    gone, ends the writing and nothing else: it is logged once."""

    def __init__(self, folder: Path, journal: Journal, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most = most_bytes
        self._written = 0
        self._file: IO[str] | None = None
        for name in (NAME, OLDER):
            with contextlib.suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        self._open()
        for line in journal.lines():
            self._write(line)
        self._stop = journal.listen(self._write)

    def close(self) -> None:
        """Write no more."""
        self._stop()
        self._shut()

    def _open(self) -> None:
        try:
            descriptor = os.open(self._folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        except OSError as error:
            self._complain(error)
            return
        self._file = os.fdopen(descriptor, "w", buffering=1, encoding="utf-8")
        self._written = 0

    def _write(self, line: Line) -> None:
        if self._file is None:
            return
        text = line.as_json() + "\n"
        try:
            if self._written + len(text) > self._most:
                self._shut()
                (self._folder / NAME).replace(self._folder / OLDER)
                self._open()
            if self._file is not None:
                self._file.write(text)
                self._written += len(text)
        except OSError as error:
            self._complain(error)
            self._shut()

    def _shut(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _complain(self, error: OSError) -> None:
        log.warning("%s: the journal is kept no longer: %s", self._folder / NAME, error.strerror)
