"""A bug of the museum, as ``bugs/NAME/bug.yaml`` describes it. Imports nothing that a mistake could be planted in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from mews.harness.errors import BadInputError, unreadable
from mews.harness.museum.programs import BugProgram

FILE = "bug.yaml"
WORLD = "scenario.yaml"


class SourceChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one place: ``planted`` takes the place of ``source``, which ``file`` (below ``mews/``) has once."""

    file: str
    source: str
    planted: str

    @property
    def module(self) -> str:
        """The name under which that file is imported."""
        parts = Path(self.file).with_suffix("").parts
        return ".".join(("mews", *(parts[:-1] if parts[-1] == "__init__" else parts)))


class BugSwitch(Struct, frozen=True, forbid_unknown_fields=True):
    """Gives a run the mistake, or takes it away: one change, or values of the scenario (dotted path -> value)."""

    change: SourceChange | None = None
    set: Mapping[str, Any] = field(default_factory=dict)


class BugSigns(Struct, frozen=True, forbid_unknown_fields=True):
    """How the two runs differ: ``bug`` is part of what the failed run complains of, ``otherwise`` says in a sentence
    what happens without the mistake."""

    bug: str
    otherwise: str


class Bug(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """One bug.

    ``links``: public, the first one names the bug. ``component`` is the program that has it, ``affected`` its versions
    and ``fixed`` the first one without it, "" while it is open. ``mechanism`` explains it in two sentences.
    ``scenario``: a shipped one that shows it, "" for the ``scenario.yaml`` beside the file.

    ``twin`` gives a component of ours the mistake. Where ours has it already, as the published program does,
    ``remedy`` takes it away instead. ``program``: upstream's own program shows it, at the version that has it.
    """

    title: str
    component: str
    links: tuple[str, ...]
    affected: str
    mechanism: str
    seen: BugSigns
    fixed: str = ""
    scenario: str = ""
    seed: int = 1
    twin: BugSwitch | None = None
    remedy: BugSwitch | None = None
    program: BugProgram | None = None
    name: str = ""
    folder: Path = Path()

    @property
    def is_open(self) -> bool:
        """Whether no version is known that does not have it."""
        return not self.fixed

    @property
    def world(self) -> str:
        """The scenario, as `mews run` takes it."""
        return self.scenario or str(self.folder / WORLD)

    def switch(self, *, has_bug: bool) -> BugSwitch:
        """Return what the run with the bug, or the one without it, needs."""
        if self.program is not None:
            return BugSwitch(set=self.program.side(has_bug=has_bug).set)
        chosen = self.twin if has_bug else self.remedy
        return chosen or BugSwitch()


def read_bug(folder: Path) -> Bug:
    """Return the bug that a folder describes.

    Raises BadInputError.
    """
    import yaml

    path = folder / FILE
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
        bug = msgspec.convert(given, Bug)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(path, error)) from None
    except yaml.YAMLError as error:
        raise BadInputError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except msgspec.ValidationError as error:
        raise BadInputError(f"{path}: {error}") from None
    wrong = _wrong(bug)
    if wrong:
        raise BadInputError(f"{path}: {wrong}")
    return msgspec.structs.replace(bug, name=folder.name, folder=folder)


def _wrong(bug: Bug) -> str:
    if sum(each is not None for each in (bug.twin, bug.remedy, bug.program)) != 1:
        return "twin, remedy, program: needs one of them"
    switch = bug.twin or bug.remedy or BugSwitch()
    if bug.program is None and (switch.change is None) == (not switch.set):
        return "change, set: needs one of them"
    if not bug.links or not all(link.startswith("https://") for link in bug.links):
        return "links: must be addresses that begin with https://, at least one"
    return "" if bug.seen.bug.strip() else "seen.bug: must not be empty"
