"""Scenario files to values. Every error is one line: file and line, dotted path, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from mews.emulator.hardware.inventory import Hardware
from mews.harness.catalogue.files import SCENARIO, missing, shipped, shipped_files
from mews.harness.errors import unreadable
from mews.harness.scenario.complaints import deepest, worded
from mews.harness.scenario.containment import NamedFiles
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.extension import add_to_schema
from mews.harness.scenario.hardware import hardware_of
from mews.harness.scenario.key_words import add_words
from mews.harness.scenario.known import KnownNames
from mews.harness.scenario.language.expand import Expansion
from mews.harness.scenario.language.names import is_late
from mews.harness.scenario.language.schema import add_language
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.overrides import Override, apply_overrides, overrides_of
from mews.harness.scenario.references import dangling
from mews.harness.scenario.stack_checks import check_stack
from mews.harness.scenario.trace import read_trace
from mews.harness.scenario.yamlfile import Document, Place, read_yaml, shown
from mews.names import among, did_you_mean
from mews.registry import looking_in


def load_scenario(
    path: str | Path, overrides: Sequence[str] | Mapping[str, Any] = (), *, allow_outside: bool = False
) -> Scenario:
    """Return the scenario of a file, with ``--set`` overrides (texts ``a.b=c``, or a mapping of dotted path to value).

    ``allow_outside``: the file may name files outside its folder, as overrides always may. Raises ScenarioError.
    """
    path = Path(path)
    return parse_scenario(_text(path), path, overrides, allow_outside=allow_outside)


def parse_scenario(
    text: str, path: Path, overrides: Sequence[str] | Mapping[str, Any] = (), *, allow_outside: bool = False
) -> Scenario:
    """Return the same from a text; relative paths in it count from the path's folder.

    Raises ScenarioError.
    """
    given = overrides_of(overrides)
    document = read_yaml(text, str(path))
    if not isinstance(document.value, dict):
        there = "empty" if document.value is None else shown(document.value)
        raise ScenarioError(f"{path}: {there}: must be a mapping with apiVersion: mews/v1, kind: Scenario")
    bindings = document.value.get("bindings")
    document = replace(document, value=apply_overrides(document.value, given))
    folder = path.parent
    _describe(document, text)
    expansion = Expansion(NamedFiles(document, folder, given, allow_outside), bindings)
    document = expansion.run()
    _resolve_paths(replace(expansion.files, document=document))
    try:
        with looking_in(folder):
            scenario = Scenario.model_validate({**document.value, "path": path})
    except ValidationError as error:
        raise ScenarioError(_message(error, document, given)) from None
    for (part, index), written in expansion.late.items():
        (scenario.finally_ if part == "finally" else getattr(scenario, part))[index].make_anew_from(written)
    scenario = _without_measurements(scenario, given).read_with(
        partial(_placed, document, given), allow_outside=allow_outside, included=expansion.included
    )
    hardware = hardware_of(scenario, document)
    check_stack(scenario, hardware)
    _check_references(scenario, hardware, document, given)
    if scenario.workload is not None:
        read_trace(scenario.workload, document.where(("workload",)))
    return scenario


def _check_references(
    scenario: Scenario, hardware: Hardware, document: Document, overrides: Sequence[Override]
) -> None:
    for place, value, wrong in dangling(KnownNames(scenario, hardware, document.value)):
        raise ScenarioError(_placed(document, overrides, place, f"{document.path(place)}: {shown(value)}: {wrong}"))


def load_scenarios(
    paths: Sequence[str | Path], overrides: Sequence[str] | Mapping[str, Any] = (), *, allow_outside: bool = False
) -> list[Scenario]:
    """Return all scenarios of files and folders (searched through; sorted by path). All are checked before any is
    returned.

    Raises ScenarioError, one line per bad file.
    """
    scenarios, errors = [], []
    for path in find_scenarios(paths):
        try:
            scenarios.append(load_scenario(path, overrides, allow_outside=allow_outside))
        except ScenarioError as error:
            errors.append(str(error))
    if errors:
        raise ScenarioError("\n".join(errors))
    return scenarios


def find_scenarios(paths: Sequence[str | Path]) -> list[Path]:
    """Scenario files; of a folder all YAML files of kind Scenario in it and below.

    Raises ScenarioError for a path that is not there and a folder without any.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.yaml") if p.is_file() and _is_scenario(p))
            if not inside:
                raise ScenarioError(f"{path}: no scenario in this folder: expected *.yaml with kind: Scenario")
            found += inside
        else:
            found.append(path)
    return found


def schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files (``mews validate --schema``)."""
    published = _model_schema()
    add_language(published)
    add_words(published)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **published}


def _model_schema() -> dict[str, Any]:
    """Return those of a scenario in which all is in its place."""
    published = Scenario.model_json_schema(by_alias=True)
    published["properties"].pop("path", None)
    add_to_schema(published)
    return published


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: {missing('scenario', path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(unreadable(path, error)) from None


def _is_scenario(path: Path) -> bool:
    return SCENARIO.search(_text(path)) is not None


def _without_measurements(scenario: Scenario, overrides: Sequence[Override]) -> Scenario:
    """What was measured (bounds with ``of``) was measured with the file's own workload: with another one it says
    nothing, unless the bounds are overridden too."""
    touched = {override.place[0] for override in overrides}
    if "workload" not in touched or "metrics" in touched:
        return scenario
    kept = {name: bound for name, bound in scenario.metrics.items() if bound.of is None}
    return scenario.model_copy(update={"metrics": kept})


def _describe(document: Document, text: str) -> None:
    """The first line of a scenario is a comment that says what it shows: that is its description."""
    first = text.split("\n", 1)[0]
    metadata = document.value.get("metadata")
    if first.startswith("#") and isinstance(metadata, dict):
        metadata.setdefault("description", first.lstrip("# ").strip())


def _file(files: NamedFiles, place: Place, name: str) -> Path:
    """Return the file that is named there.

    Raises ScenarioError where there is none, or the scenario may not name it.
    """
    path = files.path(place, name)
    if path is None or not path.is_file():
        where = files.document.where(place)
        raise ScenarioError(f"{where}: {files.document.path(place)}: {name!r}: no such file ({path or 'not a path'})")
    return path


def _resolve_paths(files: NamedFiles) -> None:
    root = files.document.value
    hardware = root.get("hardware")
    if isinstance(hardware, str):
        root["hardware"] = str(_hardware_path(files, ("hardware",), hardware))
    elif isinstance(hardware, dict) and "file" in hardware:
        if not isinstance(hardware["file"], str):
            where = files.document.where(("hardware", "file"))
            raise ScenarioError(
                f"{where}: hardware.file: {shown(hardware['file'])}: must be a path or an included name"
            )
        path = _hardware_path(files, ("hardware", "file"), hardware["file"])
        root["hardware"] = {**hardware, "file": str(path)}
    workload = root.get("workload")
    if isinstance(workload, dict) and isinstance(workload.get("trace"), str):
        workload["trace"] = str(_file(files, ("workload", "trace"), workload["trace"]))
    for place, yours in _replacements(root):
        files.patterns((*place, "files"), yours.get("files"))
        if isinstance(yours.get("manifest"), str):
            yours["manifest"] = str(_file(files, (*place, "manifest"), yours["manifest"]))
        for target, name in _mapping(yours.get("mounts")).items():
            if isinstance(name, str):
                yours["mounts"][target] = str(_file(files, (*place, "mounts", target), name))
    extenders = _mapping(root.get("stack")).get("extenders")
    for index, extender in enumerate(extenders if isinstance(extenders, list) else ()):
        files.patterns(("stack", "extenders", index, "files"), _mapping(extender).get("files"))


def _replacements(root: Any) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield what stands under ``stack.replace``, by a component's name or below its system's."""
    for name, given in _mapping(_mapping(_mapping(root).get("stack")).get("replace")).items():
        yield ("stack", "replace", name), _mapping(given)
        for component, yours in _mapping(given).items():
            yield ("stack", "replace", name, component), _mapping(yours)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _hardware_path(files: NamedFiles, place: Place, name: str) -> Path:
    path = files.path(place, name)
    if path is not None and path.is_file():
        return path
    found = None if path is None else shipped("hardware", name)
    if found is None:
        where = files.document.where(("hardware",))
        near = did_you_mean(name, shipped_files("hardware"))
        there = f"neither a file ({path or 'not a path'}) nor an inventory shipped with mews"
        raise ScenarioError(f"{where}: hardware: {name!r}: {there}{near}")
    files.check(place, name, [found])
    return found


def _message(error: ValidationError, document: Document, overrides: Sequence[Override]) -> str:
    """Return the most telling of pydantic's complaints, as one line."""
    complaint = deepest(error, lambda loc: len(_place(document.value, loc)))
    place = _place(document.value, complaint["loc"])
    if complaint["type"] == "extra_forbidden":
        allowed = _fields_at(place[:-1])
        key = str(place[-1]) if place else ""
        text = f"{document.path(place)}: unknown key; allowed: {among(key, allowed) if allowed else 'nothing'}"
    elif complaint["type"] == "missing":
        text = f"{document.path(place)}: missing; {_allowed_text(place)}"
    else:
        late = " (an output is a text unless its type says otherwise)" if is_late(complaint["input"]) else ""
        text = f"{document.path(place)}: {shown(complaint['input'])}: {worded(complaint)}{late}"
    return _placed(document, overrides, place, text)


def _placed(document: Document, overrides: Sequence[Override], place: Place, text: str) -> str:
    """Return a complaint behind the place that it is about: the file's line, or the override that made it so."""
    written = document.written_at(place)
    by = None if written is None else next((o for o in overrides if _within(written, o.place)), None)
    return f"--set {by.text}: {text} (in {document.name})" if by is not None else f"{document.where(place)}: {text}"


def _within(place: Place, override: Place) -> bool:
    parts = tuple(str(part) for part in place)
    return parts[: len(override)] == override or override[: len(parts)] == parts


def _place(value: Any, loc: Sequence[str | int]) -> Place:
    """Pydantic's place without what is not in the file: index 0 of a single item, names of union members."""
    place: list[str | int] = []
    current = value
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(current, dict) and isinstance(part, str) and (part in current or last):
            place.append(part)
            current = current.get(part)
        elif isinstance(current, list) and isinstance(part, int) and part < len(current):
            place.append(part)
            current = current[part]
    return tuple(place)


def _allowed_text(place: Place) -> str:
    known = {"apiVersion": "mews/v1", "kind": "Scenario"}
    return f"must be {known[str(place[-1])]}" if len(place) == 1 and str(place[-1]) in known else "it is required"


def _fields_at(place: Place) -> list[str]:
    """Return the keys that the published schema allows at a place."""
    root = _model_schema()
    current: dict[str, Any] = root
    for part in place:
        current = _enter(_options(current, root), part)
    return list(dict.fromkeys(key for option in _options(current, root) for key in option.get("properties", {})))


def _enter(options: list[dict[str, Any]], part: str | int) -> dict[str, Any]:
    for option in options:
        if isinstance(part, int) and "items" in option:
            return dict(option["items"])
        for name in (part, to_camel(str(part))):
            if not isinstance(part, int) and name in option.get("properties", {}):
                return dict(option["properties"][name])
    for option in options:
        if isinstance(option.get("additionalProperties"), dict):
            return dict(option["additionalProperties"])
    return {}


def _options(node: dict[str, Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    found = [node]
    for option in node.get("anyOf", ()):
        found += _options(option, root)
    return [
        *found,
        *(deeper for o in found if "items" in o for deeper in _options(o["items"], root) if "anyOf" in node),
    ]
