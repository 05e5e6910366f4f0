"""Import a changed text in the place of a source file, before that module has been imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

import mews
from mews.harness.museum.bug import SourceChange


class LostPlaceError(ValueError):
    """The source has changed: the place is not there, or there several times."""


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


class _Finder:
    def __init__(self, name: str, path: str, text: str) -> None:
        self._name, self._path, self._text = name, path, text

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            spec.loader = _Loader(name, self._path, self._text)
        return spec


def plant_text(module: str, path: Path, text: str) -> None:
    """From now on this process imports ``text`` as that module, whose file is ``path``.

    Raises RuntimeError where the module has been imported already.
    """
    if module in sys.modules:
        raise RuntimeError(f"{module} is imported already: a change would come too late")
    sys.meta_path.insert(0, _Finder(module, str(path), text))


def plant(change: SourceChange) -> None:
    """From now on this process has that change.

    Raises LostPlaceError, RuntimeError as ``plant_text`` does.
    """
    path, text = changed(change)
    plant_text(change.module, path, text)


def changed(change: SourceChange) -> tuple[Path, str]:
    """Return the file, and its text with the change; it compiles.

    Raises LostPlaceError.
    """
    path = _file_of(change)
    source, before = path.read_text(encoding="utf-8"), change.source.strip("\n")
    times = source.count(before)
    if times != 1:
        raise LostPlaceError(f"{change.file} has {before.strip()!r} {times} times; it must have it once")
    text = source.replace(before, change.planted.strip("\n"))
    try:
        compile(text, change.file, "exec")
    except SyntaxError as error:
        raise LostPlaceError(f"{change.file}: does not compile with the change: {error}") from None
    return path, text


def _file_of(change: SourceChange) -> Path:
    # By hand: importlib would import the packages around it, and with them the module itself.
    found = next((path for root in mews.__path__ if (path := Path(root) / change.file).is_file()), None)
    if found is None:
        raise LostPlaceError(f"{change.file}: there is no such file below mews/")
    return found
