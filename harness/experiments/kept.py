"""What an experiment has come to so far, in a file: a line for each task that has ended, so that one that was killed
goes on where it was.

The first line says of which experiment, Mews and options the file is. Each further line is one task's result, by the
part and by what the task is: a file made with some seeds serves for more of them, and results whose world has changed
since are not taken for those of the new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, NoReturn

import msgspec

from mews.harness.errors import BadInputError, RequirementError, unreadable
from mews.own_files import append_own

KEPT = "results.jsonl"
"""The file's name in the folder of ``--out``."""
_ENTRY = ("part", "task", "result")


def task_id(task: Any) -> str:
    """Return what tells a task from the others of its part, whenever and wherever it is made."""
    return hashlib.sha256(msgspec.json.encode(task, enc_hook=_encoded)).hexdigest()[:16]


def _encoded(value: Any) -> Any:
    """Return a function by its name and what it is called with."""
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, FunctionType):
        return f"{value.__module__}:{value.__qualname__}"
    raise TypeError(f"{type(value).__name__} in a task of an experiment: must be a value or a function")


class KeptResults:
    """The file, read once and then appended to. Without a path it keeps nothing.

    Each line is written whole or is dropped as the file is taken over: the last one may have been cut off.
    """

    def __init__(self, path: Path | None = None, about: Mapping[str, Any] | None = None) -> None:
        """``about`` is the first line: JSON-serialisable values.

        Raises BadInputError for a file of something else, RequirementError for one that cannot be written.
        """
        self._path = path
        self._known: dict[tuple[str, str], str] = {}
        if path is None:
            return
        if path.exists() and path.stat().st_size:
            self._take_over(path, dict(about or {}))
        if not path.exists() or not path.stat().st_size:
            self._append(json.dumps(about))

    def find(self, part: str, task: str) -> str | None:
        """Return a task's result as JSON, None where it has not ended."""
        return self._known.get((part, task))

    def add(self, part: str, task: str, result: str) -> None:
        """A task has ended; its result is JSON.

        Raises RequirementError.
        """
        self._append(f'{{"part": {json.dumps(part)}, "task": "{task}", "result": {result}}}')

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        try:
            with append_own(self._path) as file:
                file.write(line.encode("utf-8") + b"\n")
        except OSError as error:
            raise RequirementError(f"--out: {self._path}: cannot be written: {error.strerror}") from error

    def _take_over(self, path: Path, about: Mapping[str, Any]) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadInputError(unreadable(path, error)) from None
        lines = data.splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        for number, line in enumerate(whole, start=1):
            self._read(path, number, line, about)
        with path.open("r+b") as file:
            file.truncate(sum(map(len, whole)))

    def _read(self, path: Path, number: int, line: bytes, about: Mapping[str, Any]) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            _foreign(path, number)
        if number == 1:
            if not isinstance(entry, dict) or entry.keys() != about.keys():
                _foreign(path, number)
            other = next((f"{key} {entry[key]!r}, not {about[key]!r}" for key in about if entry[key] != about[key]), "")
            if other:
                raise BadInputError(f"--resume: {path}:1: was made with {other}: use another --out")
            return
        if not isinstance(entry, dict) or tuple(entry) != _ENTRY:
            _foreign(path, number)
        self._known[str(entry["part"]), str(entry["task"])] = json.dumps(entry["result"])


def _foreign(path: Path, number: int) -> NoReturn:
    raise BadInputError(f"--resume: {path}:{number}: not a result of an experiment: must be a line that --out wrote")


def options_of(settings: Sequence[str], sweeps: Sequence[str], log: Path | None) -> str:
    """Return what of a command line changes the results beside the seeds, for the first line of the file. The log by
    what is in it.

    Raises BadInputError.
    """
    found = [f"--set {each}" for each in sorted(settings)] + [f"--sweep {each}" for each in sorted(sweeps)]
    if log is not None:
        try:
            found.append(f"--trace {hashlib.sha256(log.read_bytes()).hexdigest()[:16]}")
        except OSError as error:
            raise BadInputError(unreadable(log, error)) from None
    return " ".join(found)
