"""``mews validate``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mews.emulator.chassis.errors import HardwareError
from mews.emulator.inventory.schema import hardware_schema
from mews.emulator.inventory_file import load_hardware
from mews.harness import terminal
from mews.harness.catalogue.files import file_of, shipped_files
from mews.harness.commands.global_options import is_quiet
from mews.harness.errors import BadInputError
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, schema
from mews.kube.emulated.types.ignored_warnings import ignored_warnings
from mews.names import did_you_mean

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario

SCHEMAS: Mapping[str, Callable[[], Mapping[str, Any]]] = {"scenario": schema, "hardware": hardware_schema}

_KIND = re.compile(r"^[^#\n]*\bkind[\"']?:\s*[\"']?(Scenario|Hardware)\b", re.MULTILINE)


def validate(paths: Sequence[Path], *, allow_outside: bool = False) -> int:
    """Check all scenario and hardware files, tell every error; on standard error what objects of scenarios ask for
    and emulated clusters ignore.

    Raises BadInputError with one line per bad file.
    """
    kinds: list[str] = []
    errors: list[str] = []
    warnings: list[str] = []
    for path, kind in _found(paths):
        try:
            if kind == "Hardware":
                load_hardware(path)
            else:
                warnings += _warnings(path, load_scenario(path, allow_outside=allow_outside))
            kinds.append(kind)
        except (ScenarioError, HardwareError) as error:
            errors.append(str(error))
    if errors:
        raise BadInputError("\n".join(errors))
    for warning in warnings:
        terminal.err(f"warning: {warning}\n")
    if not is_quiet():
        terminal.out(f"{_counted(kinds.count('Scenario'), kinds.count('Hardware'))} valid\n")
    return 0


def _warnings(path: Path, scenario: Scenario) -> Iterator[str]:
    containers = scenario.unknown_images == "container"
    for step in scenario.all_steps:
        for obj in (*(step.apply or ()), *(step.create or ())):
            named = f"{path}: {obj['kind']} {(obj.get('metadata') or {}).get('name', '')}"
            yield from (f"{named}: {text}" for text in ignored_warnings(obj, containers=containers))


def print_schema(names: Sequence[str]) -> int:
    """Return the JSON Schema of scenario files, or of those that are named, on standard output.

    Raises BadInputError for another name.
    """
    name = names[0] if names else "scenario"
    if name not in SCHEMAS or len(names) > 1:
        raise BadInputError(f"--schema {' '.join(names)}: must be one of {', '.join(SCHEMAS)}")
    terminal.out(json.dumps(SCHEMAS[name](), indent=2) + "\n")
    return 0


def _found(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return the files, and what each is; of a folder those in it and below that say so.

    Raises BadInputError for a folder without any.
    """
    found: list[tuple[Path, str]] = []
    for path in map(_existing, paths):
        if not path.is_dir():
            found.append((path, _kind(path) or "Scenario"))
            continue
        files = [each for each in sorted(path.rglob("*.yaml")) if each.is_file()]
        inside = [(each, kind) for each in files if (kind := _kind(each)) is not None]
        if not inside:
            raise BadInputError(
                f"{path}: no scenario in this folder: expected *.yaml with kind: Scenario or kind: Hardware"
            )
        found += inside
    return found


def _existing(path: Path) -> Path:
    """Return the file, or that of an included scenario or inventory of that name.

    Raises BadInputError.
    """
    found = next((found for kind in ("scenario", "hardware") if (found := file_of(kind, path)).exists()), None)
    if found is None:
        near = did_you_mean(path, [*shipped_files("scenario"), *shipped_files("hardware")])
        raise BadInputError(f"{path}: no such file, and no included scenario or inventory of that name{near}")
    return found


def _kind(path: Path) -> str | None:
    """Return what a file says it is. A scenario may hold its hardware, so it is one wherever it says so."""
    if path.suffix == ".csv":
        return "Hardware"
    try:
        kinds = set(_KIND.findall(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return None
    return "Scenario" if "Scenario" in kinds else next(iter(kinds), None)


def _counted(scenarios: int, hardware: int) -> str:
    """Return how many of what: hardware files are named where there are any."""
    files = f"{hardware} hardware file{'s' * (hardware != 1)}"
    if hardware and not scenarios:
        return files
    return f"{scenarios} scenario{'s' * (scenarios != 1)}" + (f" and {files}" if hardware else "")
