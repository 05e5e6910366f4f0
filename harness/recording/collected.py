"""Collected files: each is recognised by its content, and what it holds becomes observations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field, structs

from mews.harness.conformance.recording import EXCHANGES, INDEX, load_exchanges
from mews.harness.errors import BadInputError
from mews.harness.recording.chassis_files import Seen, from_json, from_lines, from_recording, reading_of
from mews.harness.recording.histories import is_of_one_chassis, moment_of
from mews.harness.recording.host_logs import HostLog, in_span, is_host_log, read_host_log
from mews.harness.recording.object_files import (
    AUDIT,
    audited,
    is_of_kubernetes,
    json_lines,
    sightings_of,
    yaml_documents,
)
from mews.harness.recording.observations import (
    ClusterObservations,
    LostReading,
    ObjectSighting,
    SeenOperation,
    TableReading,
)
from mews.harness.recording.stamps import year_of

MOST_BYTES = 256 << 20
"""Of one file."""
_MOST_FILES = 10_000
_THIS_YEAR = 1970
"""Of dates without a year where nothing else has one."""


class CollectedText(Struct, frozen=True):
    """A text file; its name is relative to the folder."""

    name: str
    text: str


class _Sorted(Struct):
    """The files by what they are."""

    objects: list[ObjectSighting] = field(default_factory=list)
    chassis: list[tuple[str, list[Seen]]] = field(default_factory=list)
    lines: list[CollectedText] = field(default_factory=list)
    rows: list[tuple[str, list[Any]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collected(folder: Path) -> ClusterObservations:
    """Return what the files of a folder, and of the folders in it, show.

    Raises BadInputError for a folder that cannot be read, or in which nothing is recognised.
    """
    found = _Sorted()
    for recording in sorted(path.parent for path in _files(folder) if path.name == INDEX):
        if (recording / EXCHANGES).is_file():
            _, exchanges = load_exchanges(recording, "--from")
            name = str(recording.relative_to(folder))
            found.chassis.append((name, from_recording(exchanges, name)))
            found.notes.append(f"{name}: a recording of conform has no dates, so only its first listing is taken")
    texts = [text for path in _files(folder) if (text := _text(path, folder, found.notes)) is not None]
    for each in texts:
        _sort(each, found)
    observations = _together(found)
    if not observations.objects and not observations.readings:
        notes = f": {found.notes[0]}" if found.notes else ""
        raise BadInputError(f"--from {folder}: no objects of Kubernetes and no listing of a chassis found{notes}")
    return observations


def _files(folder: Path) -> list[Path]:
    try:
        found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    except OSError as error:
        raise BadInputError(f"--from {folder}: cannot be read: {error.strerror}") from error
    if len(found) > _MOST_FILES:
        raise BadInputError(f"--from {folder}: {len(found)} files, must be {_MOST_FILES} at most")
    return found


def _text(path: Path, folder: Path, notes: list[str]) -> CollectedText | None:
    name = str(path.relative_to(folder))
    if path.name in (INDEX, EXCHANGES) and (path.parent / EXCHANGES).is_file() and (path.parent / INDEX).is_file():
        return None
    try:
        if path.stat().st_size > MOST_BYTES:
            notes.append(f"{name}: skipped, because it has more than {MOST_BYTES >> 20} MiB")
            return None
        content = path.read_bytes()
    except OSError as error:
        notes.append(f"{name}: cannot be read: {error.strerror}")
        return None
    if not content.strip():
        notes.append(f"{name}: empty")
        return None
    try:
        if b"\0" in content[:4096]:
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "a binary file")
        return CollectedText(name, content.decode("utf-8"))
    except UnicodeDecodeError:
        notes.append(f"{name}: skipped, because it is not text in UTF-8")
        return None


def _sort(file: CollectedText, found: _Sorted) -> None:
    rows = json_lines(file.text) if file.text.lstrip()[:1] in ("{", "[") else None
    if rows and all(isinstance(row, dict) and row.get("apiVersion") == AUDIT for row in rows):
        objects, bare = audited(rows)
        found.objects += objects
        found.notes += [
            f"{file.name}: pod {name} was created, but the log does not hold its spec" for name in sorted(bare)
        ]
        return
    if rows and all(isinstance(row, dict) and "method" in row and "path" in row for row in rows):
        found.rows.append((file.name, rows))
        return
    if rows and not is_of_kubernetes(rows[0]) and (reading := reading_of(rows[0], file.name, None)) is not None:
        more = [each for row in rows[1:] if (each := reading_of(row, file.name, None)) is not None]
        found.chassis.append((file.name, [reading, *more]))
        return
    documents = _documents(file, rows)
    if documents and any(map(is_of_kubernetes, documents)):
        _sort_objects(file.name, documents, found)
    elif documents and (reading := reading_of(documents[0], file.name, None)) is not None:
        found.chassis.append((file.name, [reading]))
    elif is_host_log(file.text) or any(from_lines(file.text, file.name, _THIS_YEAR)):
        found.lines.append(file)
    else:
        found.notes.append(f"{file.name}: not recognised, so it is not used")


def _documents(file: CollectedText, rows: list[Any] | None) -> list[Any]:
    if rows:
        return rows
    if "kind:" not in file.text and '"kind"' not in file.text and file.text.lstrip()[:1] != "[":
        return []
    try:
        return yaml_documents(file.text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return []


def _sort_objects(name: str, documents: list[Any], found: _Sorted) -> None:
    objects, skipped = sightings_of(documents)
    found.objects += objects
    if skipped:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(skipped.items()))
        found.notes.append(f"{name}: kinds that a replay does not use: {listed}")


def _together(found: _Sorted) -> ClusterObservations:
    moments = [t for each in found.objects if (t := moment_of(each.obj) or each.at) is not None]
    year = year_of(max(moments)) if moments else _THIS_YEAR
    for name, rows in found.rows:
        _note_undated(name, from_json(rows, name, year), found)
    hosts = sorted({each.key[2] for each in found.objects if each.key[0] == "Node"})
    logs: list[tuple[str, HostLog]] = []
    for file in found.lines:
        seen = from_lines(file.text, file.name, year)
        if seen[0]:
            _note_undated(file.name, seen, found)
        else:
            logs.append((file.name, read_host_log(file.text, hosts, Path(file.name).stem, year)))
    names = _chassis_names(found.chassis)
    every = [structs.replace(each, chassis=names[name]) for name, seen in found.chassis for each in seen]
    times = [*moments, *(each.at for each in every if each.at is not None)]
    began, ended = (min(times), max(times)) if times else (0.0, 0.0)
    troubles = []
    for name, log in logs:
        placed, notes = in_span(log, name, began - 60, ended + 60)
        troubles += placed
        found.notes += notes
    return ClusterObservations(
        objects=tuple(found.objects),
        readings=tuple(each for each in every if isinstance(each, TableReading)),
        lost=tuple(each for each in every if isinstance(each, LostReading)),
        operations=tuple(each for each in every if isinstance(each, SeenOperation)),
        troubles=tuple(troubles),
        notes=tuple(dict.fromkeys(found.notes)),
    )


def _note_undated(name: str, seen: tuple[list[Seen], int], found: _Sorted) -> None:
    lines, undated = seen
    if lines:
        found.chassis.append((name, lines))
    if undated:
        found.notes.append(f"{name}: {undated} lines have no date, so their moves are not in the steps")


def _chassis_names(chassis: Iterable[tuple[str, list[Seen]]]) -> dict[str, str]:
    """File -> A, B and so on: files whose listings share devices are of one chassis."""
    groups: list[tuple[str, set[tuple[str, str]]]] = []
    names: dict[str, str] = {}
    for name, seen in sorted(chassis, key=lambda each: each[0]):
        rows = {(row.device, row.uuid) for each in seen if isinstance(each, TableReading) for row in each.devices}
        known = next((group for group in groups if is_of_one_chassis(group[1], rows)), None)
        if known is None:
            known = (chr(ord("A") + min(len(groups), 25)), set())
            groups.append(known)
        known[1].update(rows)
        names[name] = known[0]
    return names
