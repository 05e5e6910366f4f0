"""All bugs of the museum, and whether a bug shows where it is and does not where it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.errors import BadInputError
from mews.harness.museum.bug import FILE, WORLD, Bug, read_bug
from mews.harness.museum.planting import LostPlaceError, changed
from mews.harness.package import room
from mews.names import did_you_mean

PATIENCE_S = 300.0
"""Wall-clock time for one run of a world, which takes about a second, or some with a program of others."""


class Played(Struct, frozen=True):
    """A run of the bug's world: its verdict, and what it complains of, a line each."""

    verdict: str
    complaints: tuple[str, ...]


_NOT_PLAYED = Played("skipped", ())


class Reproduction(Struct, frozen=True):
    """Both runs of a bug's world. ``skipped``: why there are none."""

    bug: Bug
    with_bug: Played
    without: Played
    skipped: str = ""

    @property
    def cited(self) -> str:
        """What the run with the bug says of it, "" where it does not."""
        return next((line for line in self.with_bug.complaints if self.bug.seen.bug in line), "")

    @property
    def wrong(self) -> str:
        """Why the bug is not reproduced, "" where it is."""
        if self.skipped:
            return ""
        if self.with_bug.verdict != "failed":
            why = "".join(f" ({complaint})" for complaint in self.with_bug.complaints[:1])
            return f"with the bug: {self.with_bug.verdict}{why}; it must fail: {self.bug.seen.bug}"
        if not self.cited:
            complaints = "; ".join(self.with_bug.complaints)
            return f"with the bug: failed, but not by {self.bug.seen.bug!r}: {complaints}"
        if self.without.verdict != "passed":
            complaints = "; ".join(self.without.complaints)
            return f"without the bug: {self.without.verdict}; it must pass: {complaints}"
        return ""


def all_bugs() -> list[Bug]:
    """Return those that come with Mews, by name."""
    return [read_bug(path.parent) for path in sorted(room("bugs").glob(f"*/{FILE}"))]


def bug_of(name: str) -> Bug:
    """Return the bug of that name, or of that folder.

    Raises BadInputError.
    """
    folder = room("bugs") / name
    if name and "/" not in name and (folder / FILE).is_file():
        return read_bug(folder)
    if (Path(name) / FILE).is_file():
        return read_bug(Path(name))
    near = did_you_mean(name, [path.parent.name for path in room("bugs").glob(f"*/{FILE}")])
    raise BadInputError(
        f"mews reproduce {name}: no such bug{near}; `mews reproduce --list` lists all; a folder needs {FILE}"
    )


def check_places(bugs: Sequence[Bug]) -> None:
    """Look for the world and the place of each bug before anything runs.

    Raises BadInputError.
    """
    for bug in bugs:
        if not bug.scenario and not (bug.folder / WORLD).is_file():
            raise BadInputError(f"{bug.folder / FILE}: needs {WORLD} in the same folder, or `scenario`")
        for switch in (bug.twin, bug.remedy):
            if switch is not None and switch.change is not None:
                try:
                    changed(switch.change)
                except LostPlaceError as error:
                    raise BadInputError(f"{bug.folder / FILE}: change: {error}") from None


def reproduce(
    bugs: Sequence[Bug], *, jobs: int, artefacts: Path | None, begun: Callable[[Bug], object]
) -> Iterator[Reproduction]:
    """Yield each of them as it is reproduced, in their order, so many at a time. With ``artefacts`` the journals and
    reports of both runs lie in ``artefacts/NAME/with`` and ``artefacts/NAME/without``."""

    def both(bug: Bug) -> Reproduction:
        begun(bug)
        lacking = "" if bug.program is None else bug.program.lacking()
        if lacking:
            return Reproduction(bug, _NOT_PLAYED, _NOT_PLAYED, lacking)
        folder = None if artefacts is None else artefacts / bug.name
        return Reproduction(bug, _played(bug, folder, has_bug=True), _played(bug, folder, has_bug=False))

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(both, bugs)


def command_of(bug: Bug, words: Sequence[str], *, has_bug: bool) -> list[str]:
    """Return the command line that runs a command of mews with the bug, or without it."""
    which = "with" if has_bug else "without"
    return [sys.executable, "-m", __package__, str(bug.folder), which, *words]


def words_of(bug: Bug, *, has_bug: bool) -> list[str]:
    """`run` and what follows, without what is written."""
    words = ["run", bug.world, "--seed", str(bug.seed)]
    if bug.program is not None:
        words += ["--time", "wall"]
    for key, value in bug.switch(has_bug=has_bug).set.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return words


def _played(bug: Bug, artefacts: Path | None, *, has_bug: bool) -> Played:
    words = [*words_of(bug, has_bug=has_bug), "--json", "-"]
    if artefacts is not None:
        folder = artefacts / ("with" if has_bug else "without")
        folder.mkdir(parents=True, exist_ok=True)
        words += ["--journal", str(folder / "journal.jsonl"), "--html", str(folder / "report.html")]
    command = command_of(bug, words, has_bug=has_bug)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return Played("error", (f"did not end within {PATIENCE_S:.0f} s",))
    try:
        (result,) = json.loads(ended.stdout)
    except ValueError:
        return Played("error", (ended.stderr.strip() or f"ended with exit code {ended.returncode}",))
    return Played(result["verdict"], tuple(_complaints(result)))


def _complaints(result: dict[str, Any]) -> Iterator[str]:
    if result.get("reason"):
        yield " ".join(str(result["reason"]).split())
    for violation in result.get("violations", ()):
        first = violation.get("first") or {}
        line = f" (first wrong line: {first['line']})" if "line" in first else ""
        yield f"invariant {violation['invariant']}: {' '.join(violation['what'].split())}{line}"
