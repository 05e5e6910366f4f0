"""Values that are found by a name: ours from a table, somebody else's by an entry point or as ``module:attribute``.

Nothing is loaded before it is asked for, and no entry point is looked through while the name is one of ours. This
module belongs to no room, so that rooms which never meet look names up in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mews.names import candidates, did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

GROUPS = "mews."
"""How the names of our entry-point groups begin."""

_folder: ContextVar[Path | None] = ContextVar("mews_folder", default=None)
_loaded_from: dict[str, Path] = {}
"""Top module -> the folder that it was found in beside the Python path."""


class NotRegisteredError(ValueError):
    """There is no such value, or it cannot be loaded or used: one line. ``reason`` is the line without the name."""

    def __init__(self, noun: str, name: str, reason: str) -> None:
        super().__init__(f"{noun} {name!r}: {reason}")
        self.reason = reason


class CannotLoadError(ValueError):
    """A ``module:attribute`` names nothing that can be had: one line."""


@contextmanager
def looking_in(folder: Path | None) -> Iterator[None]:
    """Within, modules named by references are looked up in that folder first (a scenario's own)."""
    before = _folder.set(folder if folder is None else folder.absolute())
    try:
        yield
    finally:
        _folder.reset(before)


def folder() -> Path | None:
    """Return the folder of ``looking_in`` that is in force; whoever starts a process puts it on that one's Python
    path."""
    return _folder.get()


def is_reference(name: str) -> bool:
    """Return whether the name is a ``module:attribute``."""
    module, colon, attribute = name.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), *attribute.split(".")))


def load(reference: str) -> Any:
    """Return what ``module:attribute`` names; a module that the scenario's folder or the working directory has comes
    first.

    Raises CannotLoadError, also for whatever goes wrong in that module.
    """
    module, _, path = reference.partition(":")
    try:
        found: Any = _import(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        text = " ".join(str(error).split())
        raise CannotLoadError(f"{reference} cannot be loaded: {type(error).__name__}: {text}") from error
    return found


def _import(module: str) -> Any:
    top = module.partition(".")[0]
    if top == __package__:
        return import_module(module)  # Ours are the same wherever a scenario lies.
    for beside in filter(None, (_folder.get(), Path.cwd())):
        if (beside / f"{top}.py").is_file() or (beside / top / "__init__.py").is_file():
            return _import_from(module, top, beside)
    return import_module(module)


def _import_from(module: str, top: str, beside: Path) -> Any:
    """Return the module as that folder has it: another scenario's modules of the same name are others."""
    if _loaded_from.get(top, beside) != beside:
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]
    if top not in sys.modules:
        _loaded_from[top] = beside
    sys.path.insert(0, str(beside))
    try:
        return import_module(module)
    finally:
        sys.path.remove(str(beside))


@lru_cache(maxsize=8)
def _points_on(path: tuple[str, ...]) -> Mapping[str, Mapping[str, EntryPoint]]:
    """Group -> name -> entry point. They are read from files on the Python path, so they are the same as long as the
    path is. One look at all packages serves every group, and only those that name one of ours are read closely: there
    may be hundreds of others."""
    from importlib.metadata import distributions

    found: dict[str, dict[str, EntryPoint]] = {}
    seen = set()
    for distribution in distributions():
        if f"[{GROUPS}" not in (distribution.read_text("entry_points.txt") or ""):
            continue
        name = distribution.metadata["Name"]
        if name in seen:
            continue  # the same package further down the path is hidden by the one above
        seen.add(name)
        for point in distribution.entry_points:
            found.setdefault(point.group, {}).setdefault(point.name, point)
    return found


def points(group: str) -> Mapping[str, EntryPoint]:
    """Return what installed packages register in an entry-point group of ours, by name."""
    return _points_on(tuple(sys.path)).get(group, {})


class ValueRegistry(Generic[T]):
    """The values of one sort. ``noun`` is what errors call one, ``group`` the entry points' group, ``ours`` has values
    or ``module:attribute``; ``accept`` makes of what was loaded under a name what is used, or raises ValueError or
    TypeError saying what it must be."""

    def __init__(self, noun: str, group: str, ours: Mapping[str, Any], accept: Callable[[str, Any], T]) -> None:
        if not group.startswith(GROUPS):
            raise ValueError(f"group {group!r}: must begin with {GROUPS!r}")
        self._noun = noun
        self._group = group
        self._ours = ours
        self._accept = accept
        self._known: dict[tuple[str, Path | None], T] = {}

    def names(self) -> tuple[str, ...]:
        """Return all names that can be had, ours first."""
        return (*self._ours, *self.others())

    def ours(self) -> tuple[str, ...]:
        """Return the names that come with Mews."""
        return tuple(self._ours)

    def others(self) -> tuple[str, ...]:
        """Return the names that installed packages registered."""
        return tuple(sorted(name for name in points(self._group) if name not in self._ours))

    def find(self, name: str) -> T:
        """Return the value of that name, or of that ``module:attribute``.

        Raises NotRegisteredError, naming what there is.
        """
        key = (name, _folder.get() if ":" in name else None)
        if key not in self._known:
            self._known[key] = self._found(name)
        return self._known[key]

    def _found(self, name: str) -> T:
        try:
            return self._accept(name, self._loaded(name))
        except (TypeError, ValueError) as error:
            raise NotRegisteredError(self._noun, name, str(error)) from error

    def _loaded(self, name: str) -> Any:
        if name in self._ours:
            value = self._ours[name]
            return load(value) if isinstance(value, str) else value
        if is_reference(name):
            return load(name)
        point = points(self._group).get(name)
        if point is None:
            known = f"one of {candidates(name, self.names())}, or " if self.names() else ""
            raise ValueError(f"must be {known}module:attribute{did_you_mean(name, self.names())}")
        return load(point.value.partition("[")[0].replace(" ", ""))
