"""``mews new``: a minimal scenario, dialect, fault or system that runs, with its test."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from mews.harness import terminal
from mews.harness.commands.words import FailingParser
from mews.harness.errors import BadInputError
from mews.kube.system.command import Command, CommandContext
from mews.names import must_be

KINDS = ("scenario", "dialect", "fault", "system")

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def new(kind: str, folder: Path) -> int:
    """Write the files of that kind into a folder that is not there yet, or is empty; its name becomes theirs.

    Raises BadInputError.
    """
    if kind not in KINDS:
        raise BadInputError(f"{kind}: {must_be(kind, KINDS)}")
    name = folder.absolute().name
    if not _NAME.fullmatch(name):
        raise BadInputError(
            f"{folder}: its name becomes the {kind}'s: must be small letters and digits, with - between"
        )
    module = name.replace("-", "_")
    if kind != "scenario" and keyword.iskeyword(module):
        raise BadInputError(f"{folder}: its name becomes a module's, and {module} is a keyword of Python")
    if kind != "scenario" and module in sys.stdlib_module_names | {"mews", "scenario", "tests"}:
        raise BadInputError(f"{folder}: its name becomes a module's, and there is a module {module} already")
    names = {"NAME": name, "MODULE": module, "CLASS": "".join(part.capitalize() for part in name.split("-"))}
    written = _write(kind, folder, {**names, **_default_stack()})
    lines = [f"{folder / file}" for file in written]
    terminal.out("\n".join((*lines, *(f"  {line}" for line in _next(kind, folder)))) + "\n")
    return 0


def _default_stack() -> dict[str, str]:
    """Return who schedules what, where a scenario says nothing of its stack."""
    from mews.harness.scenario.stack import Stack

    pooled = Stack().pooled
    assert pooled is not None, "the default stack pools devices"
    return {"SCHEDULER": pooled.scheduler, "RESOURCE": pooled.resource}


def _write(kind: str, folder: Path, names: Mapping[str, str]) -> list[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(os.listdir(folder))
    except NotADirectoryError:
        raise BadInputError(f"{folder}: is not a folder") from None
    except FileExistsError:
        raise BadInputError(f"{folder}: is not a folder") from None
    except OSError as error:
        raise BadInputError(f"{folder}: cannot be made: {error.strerror}") from error
    if there:
        raise BadInputError(f"{folder}: is not empty: has {', '.join(there[:4])}")
    written = []
    templates = files("mews.harness.new").joinpath(kind)
    for template in sorted(templates.iterdir(), key=lambda each: each.name):
        file = template.name.removesuffix(".txt").replace("MODULE", names["MODULE"])
        try:
            (folder / file).write_text(_filled(template.read_text("utf-8"), names), encoding="utf-8")
        except OSError as error:
            raise BadInputError(f"{folder / file}: cannot be written: {error.strerror}") from error
        written.append(file)
    return written


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return text


def _next(kind: str, folder: Path) -> list[str]:
    """Return what to do with it."""
    install = [f"pip install --editable {folder}"] if kind == "system" else []
    return [*install, f"mews run {folder / 'scenario.yaml'}", f"pytest {folder}"]


def run(words: Sequence[str], context: CommandContext) -> int:
    """Return the command.

    Raises BadInputError; ValueError for bad arguments.
    """
    parser = FailingParser("new")
    parser.add_argument("kind", metavar="KIND")
    parser.add_argument("folder", metavar="DIR", type=Path)
    given = parser.parse_args(words)
    return new(given.kind, given.folder)


COMMAND = Command(
    "new",
    "Write a minimal scenario, dialect, fault or system that runs, with its test.",
    run,
    "KIND DIR",
    options={
        "KIND": f"choose what to write: {', '.join(KINDS[:-1])} or {KINDS[-1]}",
        "DIR": "write into this folder, and derive names of modules and classes from it",
    },
    examples=("mews new scenario my-scenario", "mews new system my-system"),
)
