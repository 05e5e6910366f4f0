"""Which files of a scenario's folder a pod of the user's software gets: those that its words name, the modules that are
imported, and those that ``files`` lists. No more: a folder may hold what is nobody else's business."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from mews.harness.errors import RequirementError
from mews.harness.scenario.containment import lies_within
from mews.harness.scenario.errors import ScenarioError

LIMIT = 2**20
"""Bytes of a ConfigMap's contents (core/v1 validation: MaxSecretSize)."""
_PYTHON = re.compile(r"(.*/)?(python[0-9.]*|\{python\})")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


class ReplacementFiles(Struct):
    """Collects files of one folder. ``where`` is the place in the scenario, for messages; ``follow``: links of the
    folder that lead out of it count as files of it.

    Every method raises ScenarioError for a file that is not there, RequirementError for one that cannot be carried.
    """

    folder: Path
    where: str
    follow: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    """Path below the folder -> content."""

    def argv(self, argv: Sequence[str]) -> None:
        """What a program's words name; the program itself, and the script that a Python runs, must be there."""
        words = list(argv)
        if words and "/" in words[0] and not words[0].startswith(("/", "{")):
            self._needed(words[0])
        if words and _PYTHON.fullmatch(words[0]):
            self._script(words[1:])
        self.words(words)

    def _script(self, words: Sequence[str]) -> None:
        rest = iter(words)
        for word in rest:
            if word in _WITH_VALUE:
                next(rest, None)
            elif word == "-m":
                self.module(next(rest, ""))
                return
            elif word == "-c":
                self._imports(next(rest, "").encode(), None)
                return
            elif not word.startswith("-"):
                if not word.startswith(("/", "{")):
                    self._needed(word)
                return

    def _needed(self, name: str) -> None:
        if not _exists(self.folder / name):
            raise ScenarioError(f"{self.where}: {name!r}: no such file ({self.folder / name})")
        self._take(self.folder / name)

    def words(self, words: Iterable[str]) -> None:
        """Files and folders that words name: as they are, after an equals sign, or between colons."""
        for word in words:
            value = word.partition("=")[2]
            for part in dict.fromkeys((word, value, *value.split(":"), *word.split(":"))):
                if part.strip("./") and not part.startswith("/") and _exists(self.folder / part):
                    self._take(self.folder / part)

    def module(self, name: str, beside: Path | None = None) -> None:
        """The module, if it lies in the folder (or in that of the one that imports it), and what it imports."""
        top = name.partition(".")[0]
        for folder in (beside, self.folder):
            if folder is None or not top:
                continue
            if (folder / f"{top}.py").is_file():
                self._take(folder / f"{top}.py")
                return
            if (folder / top).is_dir() and any((folder / top).rglob("*.py")):
                self._take(folder / top)
                return

    def _imports(self, source: bytes, beside: Path | None) -> None:
        for module in imported(source):
            self.module(module, beside)

    def patterns(self, patterns: Iterable[str]) -> None:
        """What ``files`` lists."""
        for pattern in patterns:
            if not pattern.strip("./") or pattern.startswith("/") or ".." in Path(pattern).parts:
                raise ScenarioError(f"{self.where}.files: {pattern!r}: must be a pattern below the scenario's folder")
            found = sorted(path for path in self.folder.glob(pattern) if path.is_file())
            if not found:
                raise ScenarioError(f"{self.where}.files: {pattern!r}: no such file in {self.folder}")
            for path in found:
                self._take(path)

    def _take(self, path: Path) -> None:
        for file in _below(path):
            try:
                name = str(Path(os.path.abspath(file)).relative_to(os.path.abspath(self.folder)))  # links stay
            except ValueError:
                raise RequirementError(
                    f"{self.where}: {file}: is outside the scenario's folder, the only one that pods get"
                ) from None
            if name in self.files:
                continue
            if not self.follow and not lies_within(file, self.folder):
                raise ScenarioError(
                    f"{self.where}: {name}: a link that leads out of the scenario's folder; must be a file in that "
                    "folder or below, unless --allow-outside is given"
                )
            try:
                self._check_size(name, file.stat().st_size)
                self.files[name] = file.read_bytes()
            except OSError as error:
                raise ScenarioError(f"{self.where}: {file}: cannot be read: {error.strerror}") from error
            if file.suffix == ".py":
                self._imports(self.files[name], file.parent)

    def _check_size(self, name: str, size: int) -> None:
        sizes = {known: len(content) for known, content in self.files.items()} | {name: size}
        whole = sum(sizes.values())
        if whole > LIMIT:
            largest = max(sizes, key=lambda each: (sizes[each], each))
            raise RequirementError(
                f"{self.where}: with {name} its files have {whole} bytes (largest: {largest}); a ConfigMap holds "
                f"{LIMIT}: build an image of them, and name it by image"
            )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # too long, not ours to see, or no path at all


def _below(path: Path) -> Iterator[Path]:
    """Yield the file itself, or those of a folder that are not hidden and not compiled."""
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith(".") and entry.name != "__pycache__" and entry.suffix != ".pyc":
            yield from _below(entry)


def imported(source: bytes) -> tuple[str, ...]:
    """Return the modules that a Python text imports by absolute name; none of a text that is not Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names[node.module] = None
    return tuple(names)
