"""The files that a scenario includes, each relative to the one that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from mews.emulator.yaml_document import Document
from mews.harness.errors import unreadable
from mews.harness.scenario.containment import NamedFiles
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.language.bindings import Refuse
from mews.harness.scenario.yamlfile import read_yaml

_DEPTH = 20


class Included(Struct, frozen=True):
    """One document of an included file."""

    path: Path
    document: Document

    @classmethod
    def read(cls, files: NamedFiles, name: Any, folder: Path, through: tuple[Path, ...], refuse: Refuse) -> Self:
        """Return the one document of the file that is named. ``through`` are the files that lead here, the scenario's
        first.

        Raises ScenarioError for what is no file, lies elsewhere, cannot be read, or includes itself.
        """
        path = _found(files, name, folder, through, refuse)
        return cls(path, read_yaml(_text(path), _shown(path, files)))

    @classmethod
    def read_all(
        cls, files: NamedFiles, name: Any, folder: Path, through: tuple[Path, ...], refuse: Refuse
    ) -> list[Self]:
        """Return all documents of a file of objects, empty ones left out."""
        path = _found(files, name, folder, through, refuse)
        found, line = [], 0
        for part in _text(path).split("\n---"):
            text = part.removeprefix("---")
            document = read_yaml("\n" * line + text, _shown(path, files))
            line += part.count("\n") + 1
            if document.value is not None:
                found.append(cls(path, document))
        return found


def _found(files: NamedFiles, name: Any, folder: Path, through: tuple[Path, ...], refuse: Refuse) -> Path:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise refuse(name, "must be the path of a file")
    files.check_path(folder / name, lambda reason: refuse(name, reason))
    path = (folder / name).resolve()
    if not path.is_file():
        raise refuse(name, f"no such file ({path})")
    if path in through:
        way = " -> ".join(each.name for each in (*through[through.index(path) :], path))
        raise refuse(name, f"includes itself: {way}")
    if len(through) > _DEPTH:
        raise refuse(name, f"included too deep: at most {_DEPTH} files within each other")
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(unreadable(path, error)) from None


def _shown(path: Path, files: NamedFiles) -> str:
    """Return the file as the scenario's own is named: relative where that is."""
    folder = files.folder.resolve()
    return str(files.folder / path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
