"""What is asked of a chassis: profiles of the contract's clauses, as data, and interoperability profiles of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from mews.dialects import DIALECTS, OURS
from mews.harness.conformance.clause import GRADES, Clause, resting_on
from mews.harness.conformance.dialects.registry import clauses_of
from mews.harness.conformance.expectations import entries, is_one_of, mapping, only, read_yaml
from mews.harness.errors import BadInput
from mews.harness.package import room

STACK = "stack"


class ConformProfile(Struct, frozen=True):
    """``clauses`` are judged, in order; ``grades`` are those of them that it gives another grade than their own."""

    name: str
    clauses: tuple[Clause, ...]
    grades: Mapping[str, str] = field(default_factory=dict)

    def grade(self, clause: Clause) -> str:
        """must, should or may."""
        return self.grades.get(clause.id, clause.grade)


def shipped_profiles() -> tuple[str, ...]:
    """The names of those that come with the package."""
    return tuple(sorted(path.stem for path in (room("fixtures") / "profiles").glob("*.yaml")))


def load_profile(name_or_file: str, dialect: str, clauses: Sequence[Clause], gates: Sequence[str]) -> ConformProfile:
    """A shipped profile by its name, or one of a file: YAML of ours, or JSON after DSP0272, for Redfish.

    An interoperability profile brings clauses of its own; of the contract's only ``gates`` are judged beside them.
    Raises BadInput, one line.
    """
    path = Path(name_or_file)
    if name_or_file in shipped_profiles():
        path = room("fixtures") / "profiles" / f"{name_or_file}.yaml"
    elif not path.exists():
        known = ", ".join(shipped_profiles())
        raise BadInput(f"--profile {name_or_file}: no such file or included profile; included are {known}")
    if path.suffix == ".json":
        return _interop(path, dialect, clauses, gates)
    return _own(path, dialect, clauses)


def _interop(path: Path, dialect: str, clauses: Sequence[Clause], gates: Sequence[str]) -> ConformProfile:
    from mews.harness.conformance.interop.clauses import interop_clauses
    from mews.harness.conformance.interop.document import read_document

    if dialect != "redfish":
        raise BadInput(f"--profile {path}: an interoperability profile is for --dialect redfish, not {dialect}")
    document = read_document(path)
    kept = tuple(clause for clause in clauses if clause.id in gates)
    above = tuple(clause.id for clause in kept if not clause.last)
    name = f"{document.get('ProfileName', path.stem)} {document.get('ProfileVersion', '')}".strip()
    return ConformProfile(name, (*kept, *resting_on(above, interop_clauses(document))))


def _own(path: Path, dialect: str, clauses: Sequence[Clause]) -> ConformProfile:
    value = mapping(path, read_yaml(path), "")
    only(path, value, "", ("apiVersion", "kind", "metadata", "grades"))
    is_one_of(path, value, "apiVersion", ("mews/v1",))
    is_one_of(path, value, "kind", ("ConformProfile",))
    metadata = mapping(path, value.get("metadata") or {}, "metadata")
    only(path, metadata, "metadata", ("name", "title"))
    grades: dict[str, str] = {}
    if not value.get("grades"):
        raise BadInput(f"{path}: grades: missing; must be a list of {{dialect, clauses, grade}}")
    for place, entry in entries(path, value["grades"], "grades", ("dialect", "clauses", "grade")):
        is_one_of(path, entry, "grade", GRADES, place)
        if ":" not in str(entry.get("dialect", dialect)):
            is_one_of(path, {"dialect": dialect, **entry}, "dialect", tuple(DIALECTS.names()), place)
        patterns = _patterns(path, entry, place)
        if entry.get("dialect", dialect) != dialect:
            continue
        for pattern in patterns:
            found = [clause.id for clause in clauses if fnmatchcase(clause.id, pattern)]
            if not found and ("dialect" in entry or not _in_another(pattern, dialect)):
                where = dialect if "dialect" in entry else "any dialect"
                raise BadInput(f"{path}: {place}.clauses: {pattern!r}: no clause of {where} is called so")
            grades.update(dict.fromkeys(found, entry["grade"]))
    return ConformProfile(str(metadata.get("name") or path.stem), tuple(clauses), grades)


def _in_another(pattern: str, dialect: str) -> bool:
    """Whether a dialect beside this one has such clauses: an entry without a dialect is for all of them."""
    others = (each for each in OURS if each != dialect)
    return any(fnmatchcase(clause.id, pattern) for each in others for clause in clauses_of(each).clauses)


def _patterns(path: Path, entry: Mapping[str, Any], place: str) -> list[str]:
    found = entry.get("clauses")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise BadInput(f"{path}: {place}.clauses: {found!r:.60}: must be a list of clauses; * stands for anything")
    return found
