"""Which files a scenario may name: those of its own folder and below, and what comes with the package.

Scenarios come from pull requests. One that names a file elsewhere on the machine would have it read, and told in
complaints or carried into pods. Only the user may say that this is meant: by ``--allow-outside``, or by giving the
path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from mews.harness.package import room
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.overrides import Override
from mews.harness.scenario.yamlfile import Document, Place, shown

_ROOMS = ("fixtures", "scenarios")
_OUTSIDE = (
    "lies outside the scenario's folder; must be a file in that folder or below, links followed, unless "
    "--allow-outside is given"
)


def lies_within(path: Path, folder: Path) -> bool:
    """Return whether a file lies in a folder or below, wherever links lead."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # links in a circle
        return False


class NamedFiles(Struct, frozen=True):
    """The files that a scenario names, as it was written and with what the user overrode in it."""

    document: Document
    folder: Path
    overrides: Sequence[Override] = ()
    allow_outside: bool = False

    def path(self, place: Place, name: str) -> Path | None:
        """Return the absolute path of what is named there, or None for what can be none.

        Raises ScenarioError for one that the scenario may not name; nothing of such a file is read.
        """
        if not name.isprintable() or not name:
            return None
        self.check(place, name, [self.folder / name])
        return (self.folder / name).resolve()

    def check(self, place: Place, name: str, paths: Iterable[Path]) -> None:
        """Raise ScenarioError unless the scenario may name all of these files there."""
        if self.allow_outside or self._is_the_users(place):
            return
        allowed = (self.folder, *map(room, _ROOMS))
        if not all(any(lies_within(path, folder) for folder in allowed) for path in paths):
            raise ScenarioError(f"{self.document.where(place)}: {self.document.path(place)}: {shown(name)}: {_OUTSIDE}")

    def check_path(self, path: Path, refuse: Callable[[str], ScenarioError]) -> None:
        """Raise the refusal of a file that no scenario may include."""
        if not self.allow_outside and not any(
            lies_within(path, folder) for folder in (self.folder, *map(room, _ROOMS))
        ):
            raise refuse(_OUTSIDE)

    def patterns(self, place: Place, patterns: object) -> None:
        """Raise ScenarioError unless the scenario may name all that the patterns of a list find."""
        for index, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
            if isinstance(pattern, str) and pattern.isprintable():
                self.check((*place, index), pattern, self._found(pattern))

    def _found(self, pattern: str) -> list[Path]:
        """Return what a pattern finds; of one that leads elsewhere as it is written, where it leads."""
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            return [self.folder / pattern]
        return list(self.folder.glob(pattern)) if pattern.strip("./") else []

    def _is_the_users(self, place: Place) -> bool:
        """Return whether what stands there was given by an override, not by the file."""
        written = self.document.written_at(place)
        if written is None:
            return False
        parts = tuple(str(part) for part in written)
        return any(parts[: len(override.place)] == override.place for override in self.overrides)
