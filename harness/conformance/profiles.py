"""What is asked of a chassis: profiles of the contract's clauses, as data, and interoperability profiles of others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, fields, replace

from mews.dialects import DIALECTS, OURS
from mews.harness.conformance.clause import GRADES, Clause, resting_on
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import entries, is_one_of, limits_in, mapping, only, read_yaml, text_in
from mews.harness.conformance.table import Limits, Units
from mews.harness.errors import BadInputError
from mews.harness.package import room

STACK = "stack"
PARTS = ("extends", "grades", "off", "limits", "units")
"""Of a profile of ours, besides its name."""


class ConformProfile(Struct, frozen=True):
    """``clauses`` are judged, in order; ``grades`` are those of them that it gives another grade than their own.
    ``off``: clauses that are not judged -> why; ``limits``: times that it knows -> seconds; ``units``: what its devices
    are called."""

    name: str
    clauses: tuple[Clause, ...]
    grades: Mapping[str, str] = field(default_factory=dict)
    off: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    units: Units = field(default_factory=Units)

    def grade(self, clause: Clause) -> str:
        """must, should or may."""
        return self.grades.get(clause.id, clause.grade)

    def timing(self, known: Limits) -> Limits:
        """Return its times, where those of a quirk profile are the usual ones."""
        usual, given = asdict(Limits()), asdict(known)
        return Limits(**{**given, **{name: each for name, each in self.limits.items() if given[name] == usual[name]}})


def shipped_profiles() -> tuple[str, ...]:
    """Return the names of those that come with the package."""
    return tuple(sorted(path.stem for path in (room("fixtures") / "profiles").glob("*.yaml")))


def load_profile(name_or_file: str, dialect: str, clauses: Sequence[Clause], gates: Sequence[str]) -> ConformProfile:
    """Return a shipped profile by its name, or one of a file: YAML of ours, or JSON after DSP0272, for Redfish.

    An interoperability profile brings clauses of its own; of the contract's only ``gates`` are judged beside them.
    Raises BadInputError, one line.
    """
    path = Path(name_or_file)
    if name_or_file in shipped_profiles():
        path = room("fixtures") / "profiles" / f"{name_or_file}.yaml"
    elif not path.exists():
        known = ", ".join(shipped_profiles())
        raise BadInputError(f"--profile {name_or_file}: no such file or included profile; included are {known}")
    if path.suffix == ".json":
        return _interop(path, dialect, clauses, gates)
    return _own(path, dialect, clauses)


def _interop(path: Path, dialect: str, clauses: Sequence[Clause], gates: Sequence[str]) -> ConformProfile:
    from mews.harness.conformance.interop.clauses import interop_clauses
    from mews.harness.conformance.interop.document import read_document

    if dialect != "redfish":
        raise BadInputError(f"--profile {path}: an interoperability profile is for --dialect redfish, not {dialect}")
    document = read_document(path)
    kept = tuple(clause for clause in clauses if clause.id in gates)
    above = tuple(clause.id for clause in kept if not clause.last)
    name = f"{document.get('ProfileName', path.stem)} {document.get('ProfileVersion', '')}".strip()
    return ConformProfile(name, (*kept, *resting_on(above, interop_clauses(document))))


def _own(path: Path, dialect: str, clauses: Sequence[Clause], above: tuple[Path, ...] = ()) -> ConformProfile:
    """Return a profile of ours, and below it the one that it extends."""
    value = mapping(path, read_yaml(path), "")
    only(path, value, "", ("apiVersion", "kind", "metadata", *PARTS))
    is_one_of(path, value, "apiVersion", ("mews/v1",))
    is_one_of(path, value, "kind", ("ConformProfile",))
    metadata = mapping(path, value.get("metadata") or {}, "metadata")
    only(path, metadata, "metadata", ("name", "title"))
    if not any(value.get(part) for part in PARTS):
        raise BadInputError(f"{path}: grades: missing; a profile has one of {', '.join(PARTS)}")
    below = ConformProfile("", tuple(clauses))
    if "extends" in value:
        below = _own(_extended(path, value["extends"], (*above, path)), dialect, clauses, (*above, path))
    units = mapping(path, value.get("units") or {}, "units")
    return ConformProfile(
        str(metadata.get("name") or path.stem),
        tuple(clauses),
        {**below.grades, **_grades(path, value, dialect, clauses)},
        {**below.off, **_off(path, value, dialect, clauses)},
        {**below.limits, **limits_in(path, value)},
        replace(below.units, **_units(path, units)),
    )


def _extended(path: Path, name: Any, above: tuple[Path, ...]) -> Path:
    """Return the file of a profile that is extended: an included one by its name, or a file beside the one that names
    it."""
    if not isinstance(name, str) or not name:
        raise BadInputError(f"{path}: extends: {name!r:.60}: must be an included profile or a file")
    included = name in shipped_profiles()
    found = room("fixtures") / "profiles" / f"{name}.yaml" if included else path.parent / name
    if not found.is_file() or found.suffix == ".json":
        known = ", ".join(shipped_profiles())
        raise BadInputError(f"{path}: extends: {name}: no such YAML file or included profile; included are {known}")
    if any(found.samefile(each) for each in above):
        raise BadInputError(f"{path}: extends: {name}: extends itself")
    return found


def _grades(path: Path, value: Mapping[str, Any], dialect: str, clauses: Sequence[Clause]) -> dict[str, str]:
    grades: dict[str, str] = {}
    for place, entry in entries(path, value.get("grades") or [], "grades", ("dialect", "clauses", "grade")):
        is_one_of(path, entry, "grade", GRADES, place)
        grades.update(dict.fromkeys(_meant(path, entry, place, dialect, clauses), entry["grade"]))
    return grades


def _off(path: Path, value: Mapping[str, Any], dialect: str, clauses: Sequence[Clause]) -> dict[str, str]:
    off: dict[str, str] = {}
    for place, entry in entries(path, value.get("off") or [], "off", ("dialect", "clauses", "reason")):
        reason = text_in(path, entry, place, "reason")
        off.update(dict.fromkeys(_meant(path, entry, place, dialect, clauses), reason))
    return off


def _units(path: Path, units: Mapping[str, Any]) -> dict[str, str]:
    only(path, units, "units", tuple(each.name for each in fields(Units)))
    found = {name: text_in(path, units, "units", name) for name in units}
    try:
        re.compile(found.get("uuid", ""))
    except re.error as error:
        raise BadInputError(f"{path}: units.uuid: {found['uuid']!r}: must be a regular expression: {error}") from error
    return found


def _meant(path: Path, entry: Mapping[str, Any], place: str, dialect: str, clauses: Sequence[Clause]) -> list[str]:
    """Return the clauses of this dialect that an entry names."""
    if ":" not in str(entry.get("dialect", dialect)):
        is_one_of(path, {"dialect": dialect, **entry}, "dialect", tuple(DIALECTS.names()), place)
    patterns = _patterns(path, entry, place)
    if entry.get("dialect", dialect) != dialect:
        return []
    meant: list[str] = []
    for pattern in patterns:
        found = [clause.id for clause in clauses if fnmatchcase(clause.id, pattern)]
        if not found and ("dialect" in entry or not _in_another(pattern, dialect)):
            where = dialect if "dialect" in entry else "any dialect"
            raise BadInputError(f"{path}: {place}.clauses: {pattern!r}: no clause of {where} is called so")
        meant += found
    return meant


def _in_another(pattern: str, dialect: str) -> bool:
    """Return whether a dialect beside this one has such clauses: an entry without a dialect is for all of them."""
    others = (each for each in OURS if each != dialect)
    return any(fnmatchcase(clause.id, pattern) for each in others for clause in clauses_of(each).clauses)


def _patterns(path: Path, entry: Mapping[str, Any], place: str) -> list[str]:
    found = entry.get("clauses")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadInputError(f"{path}: {place}.clauses: {found!r:.60}: must be a list of clauses; * stands for anything")
    return found
