"""What is known beforehand about a chassis: quirk profiles of a firmware, and waivers of its vendor or user."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields

from mews.dialects import DIALECTS
from mews.emulator.yaml_document import DocumentError, read_document
from mews.harness.conformance.clause import Clause
from mews.harness.conformance.table import Limits
from mews.harness.errors import BadInputError, unreadable
from mews.harness.package import room
from mews.names import must_be

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LIMITS = tuple(limit.name for limit in fields(Limits))


class Quirks(Struct, frozen=True):
    """Behaviour that is known of a firmware: clause -> why it does not hold there."""

    name: str = ""
    firmware: str = ""
    expect: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


class Waiver(Struct, frozen=True):
    """A deviation that is accepted until a day, that day included."""

    clause: str
    reason: str
    expires: date


def shipped_quirks() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package."""
    folder = room("fixtures") / "quirks"
    return tuple(sorted(path.stem for path in folder.glob("*.yaml")))


def load_quirks(name_or_file: str, dialect: str, clauses: Sequence[Clause]) -> Quirks:
    """Return a shipped profile, or one of the dialect's, by its name, or one of a file.

    ``{apiVersion: mews/v1, kind: Quirks, metadata: {name, firmware}, dialect, limits: {attach_s…}, expect: [{clause,
    reason}]}``. Raises BadInputError, one line.
    """
    if name_or_file in shipped_quirks():
        path = room("fixtures") / "quirks" / f"{name_or_file}.yaml"
    elif name_or_file in (own := DIALECTS.find(dialect).quirks):
        path = Path(own[name_or_file])
    else:
        path = Path(name_or_file)
        if not path.exists():
            known = ", ".join((*shipped_quirks(), *own))
            raise BadInputError(f"--quirks {name_or_file}: no such file or included profile; included are {known}")
    value = mapping(path, read_yaml(path), "")
    only(path, value, "", ("apiVersion", "kind", "metadata", "dialect", "limits", "expect"))
    is_one_of(path, value, "kind", ("Quirks",))
    is_one_of(path, value, "apiVersion", ("mews/v1",))
    is_one_of(path, value, "dialect", (dialect,))
    metadata = mapping(path, value.get("metadata") or {}, "metadata")
    only(path, metadata, "metadata", ("name", "firmware"))
    expect: dict[str, str] = {}
    for place, entry in entries(path, value.get("expect") or [], "expect", ("clause", "reason")):
        clause = _clause(path, entry, place, clauses)
        if clause in expect:
            raise BadInputError(f"{path}: {place}.clause: {clause!r}: is listed twice; write it once")
        expect[clause] = text_in(path, entry, place, "reason")
    limits = Limits(**limits_in(path, value))
    return Quirks(str(metadata.get("name") or path.stem), str(metadata.get("firmware") or ""), expect, limits)


def limits_in(path: Path, value: Mapping[str, Any]) -> dict[str, float]:
    """Return the ``limits`` of a document: name -> seconds.

    Raises BadInputError.
    """
    limits = mapping(path, value.get("limits") or {}, "limits")
    only(path, limits, "limits", LIMITS)
    for name, seconds in limits.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            raise BadInputError(f"{path}: limits.{name}: {seconds!r}: must be seconds, a number from 0 on")
    return {name: float(seconds) for name, seconds in limits.items()}


def load_waivers(path: Path, clauses: Sequence[Clause]) -> tuple[Waiver, ...]:
    """Return a file with a list of ``{clause, reason, expires}``; ``expires`` is a day, ``YYYY-MM-DD``.

    Raises BadInputError, one line.
    """
    waivers: list[Waiver] = []
    for place, entry in entries(path, read_yaml(path), "", ("clause", "reason", "expires")):
        clause = _clause(path, entry, place, clauses)
        if clause in (waiver.clause for waiver in waivers):
            raise BadInputError(f"{path}: {place}.clause: {clause!r}: is waived twice; once is enough")
        waivers.append(Waiver(clause, text_in(path, entry, place, "reason"), _day(path, entry, place)))
    return tuple(waivers)


def _day(path: Path, entry: Mapping[str, Any], place: str) -> date:
    given = entry.get("expires")
    try:
        if isinstance(given, str) and _DAY.fullmatch(given):
            return date.fromisoformat(given)
    except ValueError:
        pass
    raise BadInputError(f"{path}: {place}.expires: {given!r}: must be a day, YYYY-MM-DD")


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds.

    Raises BadInputError.
    """
    try:
        return read_document(path.read_text(encoding="utf-8"), str(path)).value
    except DocumentError as error:
        raise BadInputError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(path, error)) from error


def entries(path: Path, value: Any, place: str, names: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the elements of a list, each with its place, all of them mappings with no other names than these."""
    if not isinstance(value, list):
        raise BadInputError(f"{path}: {place + ': ' if place else ''}must be a list of {{{', '.join(names)}}}")
    entries = []
    for number, entry in enumerate(value):
        where = f"{place}[{number}]"
        only(path, mapping(path, entry, where), where, names)
        entries.append((where, entry))
    return entries


def mapping(path: Path, value: Any, place: str) -> Mapping[str, Any]:
    """Return the value, which must be a mapping."""
    if not isinstance(value, Mapping):
        shown = "empty" if value is None else f"{value!r:.60}"
        raise BadInputError(f"{path}: {place + ': ' if place else ''}{shown}: must be a mapping")
    return value


def only(path: Path, value: Mapping[str, Any], place: str, names: Sequence[str]) -> None:
    """Raise BadInputError for any other name."""
    for name in value:
        if name not in names:
            raise BadInputError(f"{path}: {place + '.' if place else ''}{name}: unknown; allowed: {', '.join(names)}")


def is_one_of(path: Path, value: Mapping[str, Any], name: str, allowed: Sequence[str], place: str = "") -> None:
    """Raise BadInputError unless that member is one of these."""
    if value.get(name) not in allowed:
        where = f"{place}.{name}" if place else name
        raise BadInputError(f"{path}: {where}: {value.get(name)!r}: must be {', '.join(allowed)}")


def text_in(path: Path, entry: Mapping[str, Any], place: str, name: str) -> str:
    """Return a member that must be a text and not empty.

    Raises BadInputError.
    """
    text = entry.get(name)
    if not isinstance(text, str) or not text.strip():
        raise BadInputError(f"{path}: {place}.{name}: {text!r}: must be a text")
    return text.strip()


def _clause(path: Path, entry: Mapping[str, Any], place: str, clauses: Sequence[Clause]) -> str:
    given = entry.get("clause")
    known = [clause.id for clause in clauses]
    if given not in known:
        raise BadInputError(f"{path}: {place}.clause: {given!r}: {must_be(given, known)}")
    return str(given)
