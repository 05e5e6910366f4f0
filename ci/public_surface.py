"""What users rely on, one line each; ``python -m ci.public_surface`` compares it with what was recorded.

The record, ``tests/ci/public-surface.txt``, is part of each change: ``--write`` makes it anew once CHANGELOG.md has the
change under ``Unreleased``. What is removed or renamed must be named there, between backticks.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main

from ci.reference import commands, testing
from mews import dialects
from mews import testing as python
from mews.emulator.chassis.faults import spec
from mews.emulator.inventory.schema import hardware_schema
from mews.harness import cli, invariant_registry
from mews.harness.commands.further import all_commands
from mews.harness.errors import EXIT_CODES
from mews.harness.invariants.vocabulary import WORDS
from mews.harness.scenario import extension
from mews.harness.scenario.loader import schema
from mews.systems import registry

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "tests" / "ci" / "public-surface.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
_ADVICE = "describe the change in CHANGELOG.md, then run: python -m ci.public_surface --write"


def surface() -> list[str]:
    """Return all of it, sorted."""
    return sorted({*_commands(), *_exit_codes(), *_files(), *_pytest(), *_python(), *_journal(), *_systems()})


def _commands() -> Iterator[str]:
    group: Any = typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        yield f"command mews {name}"
        yield from (f"option mews {name}: {commands.shown(each).strip('`')}" for each in commands.options(command))
    for name, command in all_commands().items():
        yield f"command mews {name}"
        yield from (f"option mews {name}: {option}" for option in command.options)


def _exit_codes() -> Iterator[str]:
    yield from (f"exit code {code}: {meaning}" for code, meaning in EXIT_CODES.items())


def _files() -> Iterator[str]:
    for kind, whole in (("scenario", schema()), ("hardware", hardware_schema())):
        yield from _keys(f"{kind} file", whole)
        for name, part in whole.get("$defs", {}).items():
            yield from _keys(f"{kind} file, {name}", part)


def _keys(where: str, part: Mapping[str, Any], path: str = "") -> Iterator[str]:
    needed = part.get("required", ())
    for key, value in part.get("properties", {}).items():
        yield f"{where}: {path}{key}{' (required)' if key in needed else ''}"
        if isinstance(value, Mapping):
            yield from (f"{where}: {path}{key}: {word!r}" for word in value.get("enum", ()))
            yield from _keys(where, value, f"{path}{key}.")
    for inner in (part.get("items"), part.get("additionalProperties"), *part.get("anyOf", ())):
        if isinstance(inner, Mapping):
            yield from _keys(where, inner, f"{path}*.")


def _pytest() -> Iterator[str]:
    yield from (f"fixture {name}" for name in testing.fixtures())
    yield from (f"pytest option {option}" for option, *_ in testing.options())
    yield from (f"ini option {option}" for option, *_ in testing.ini_options())


def _python() -> Iterator[str]:
    for name in sorted(vars(python)):
        value = getattr(python, name)
        if not name.startswith("_") and getattr(value, "__module__", "") == python.__name__ and callable(value):
            yield f"mews.testing.{name}({', '.join(inspect.signature(value).parameters)})"


def _journal() -> Iterator[str]:
    for (layer, event), (must, may) in WORDS.items():
        yield f"journal {layer} {event}"
        yield from (f"journal {layer} {event}: {name}" for name in must)
        yield from (f"journal {layer} {event}: {name} (where it is known)" for name in may - must)


def _systems() -> Iterator[str]:
    groups = re.findall(r'"(mews\.(?:dialects|faults|invariants|steps|systems))"', "".join(_sources()))
    yield from (f"entry-point group {group}" for group in sorted(set(groups)))
    for name in registry.names():
        yield f"system {name}"
        yield from (f"component {name}/{component.name}" for component in registry.system(name).components)


def _sources() -> Iterator[str]:
    for module in (dialects, registry, extension, invariant_registry, spec):
        yield inspect.getsource(module)


def unreleased(changelog: str) -> str:
    """Return the section of the CHANGELOG that names what the next release changes."""
    found = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


def digest_of(section: str) -> str:
    """Return it by which the record knows the section that it was made with."""
    return hashlib.sha256(section.encode()).hexdigest()[:16]


def undescribed(gone: Iterable[str], section: str) -> list[str]:
    """Return what has gone, and is not named between backticks in the section."""
    named = " ".join(re.findall(r"`([^`]+)`", section))
    return [item for item in gone if not re.search(rf"(?<![\w-]){re.escape(_word(item))}(?![\w-])", named)]


def _word(item: str) -> str:
    """Return what a reader looks for: the option in full, the key, the field, the value."""
    text = (item.rpartition(": ")[2] or item).partition(" (")[0].partition("(")[0]
    if text.startswith("-"):
        return max(re.findall(r"--?[\w-]+", text.partition(" <")[0]), key=len)
    if text.startswith(f"{python.__name__}."):
        return text
    return re.split(r"[ .]", text.strip("'"))[-1]


def difference(recorded: str, changelog: str) -> str:
    """Return what is wrong with the record, "" where nothing is; otherwise lines with what to do."""
    head, *before = recorded.splitlines()
    now, section = surface(), unreleased(changelog)
    gone, new = [each for each in before if each not in set(now)], [each for each in now if each not in set(before)]
    if not (gone or new):
        return ""
    lines = [*(f"- {each}" for each in gone), *(f"+ {each}" for each in new)]
    missing = undescribed(gone, section)
    if missing:
        names = ", ".join(f"`{_word(each)}`" for each in missing)
        return "\n".join([*lines, f"CHANGELOG.md, Unreleased: does not name {names}"])
    if head == f"# {digest_of(section)}":
        return "\n".join([*lines, f"CHANGELOG.md, Unreleased: says nothing new; {_ADVICE}"])
    return "\n".join([*lines, _ADVICE])


def main() -> int:
    """Compare, or with ``--write`` make the record anew. The exit code is 1 where something must be described."""
    parser = argparse.ArgumentParser(description="Compare what users rely on with what was recorded.")
    parser.add_argument("--write", action="store_true", help="make the record anew, once CHANGELOG.md has the changes")
    write = parser.parse_args().write
    changelog = CHANGELOG.read_text(encoding="utf-8")
    recorded = RECORD.read_text(encoding="utf-8") if RECORD.exists() else "# new\n"
    found = difference(recorded, changelog)
    if write and RECORD.exists() and "CHANGELOG.md, Unreleased:" in found:
        sys.stderr.write(f"{found}\n")
        return 1
    if write:
        lines = [f"# {digest_of(unreleased(changelog))}", *surface()]
        RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return 0
    sys.stdout.write((found or f"{len(recorded.splitlines()) - 1} items, all as recorded") + "\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
