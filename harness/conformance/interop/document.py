"""Reads a profile document; what is unknown, or of another type than DSP0272's, is refused with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.conformance.json_members import once
from mews.harness.errors import BadInputError, unreadable
from mews.kube.cel.regexes import PatternError, searcher

READ = ("Mandatory", "Supported", "Recommended", "IfImplemented", "IfPopulated", "Conditional", "Excluded", "None")
WRITE = ("Mandatory", "Supported", "Recommended", "None")
ASKED = ("Mandatory", "Recommended", "None")
COMPARISONS = (
    *("Absent", "AnyOf", "AllOf", "Equal", "NotEqual", "GreaterThan", "GreaterThanOrEqual", "LessThan"),
    *("LessThanOrEqual", "Present", "LinkToResource", "Range", "Pattern"),
)
USE_CASES = ("Normal", "AbsentResource")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")

Check = Callable[["ProfilePlace", Any], None]


class ProfilePlace(Struct, frozen=True):
    """Where in which file something stands."""

    file: Path
    path: str = ""

    def __truediv__(self, name: object) -> ProfilePlace:
        return ProfilePlace(self.file, f"{self.path}.{name}" if self.path else str(name))

    def wrong(self, text: str) -> BadInputError:
        """Return the error, one line."""
        return BadInputError(f"{self.file}: {self.path + ': ' if self.path else ''}{text}")


_PARTS = ("Protocol", "Resources", "Registries")


def read_document(file: Path) -> Mapping[str, Any]:
    """Return the profile, with the requirements of those that it requires (they lie beside it, by DMTF's file names).

    Raises BadInputError.
    """
    document = _read(file, ())
    if not any(document.get(part) for part in _PARTS):
        raise BadInputError(f"{file}: requires nothing: must have one of {', '.join(_PARTS)}")
    return document


def _read(file: Path, above: tuple[str, ...]) -> dict[str, Any]:
    place = ProfilePlace(file)
    try:
        value = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=once)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(file, error)) from error
    except (ValueError, RecursionError) as error:
        raise place.wrong(f"not JSON: {error}") from error
    _object(DOCUMENT)(place, value)
    if not str(value.get("SchemaDefinition", "")).startswith("RedfishInteroperabilityProfile."):
        raise place.wrong(
            f"SchemaDefinition: {value.get('SchemaDefinition')!r}: must be RedfishInteroperabilityProfile.…"
        )
    document = dict(value)
    for name, required in value.get("RequiredProfiles", {}).items():
        where = place / "RequiredProfiles" / name
        if name in above:
            raise where.wrong("requires itself")
        base = _read(_beside(where, required.get("MinVersion", "1.0.0")), (*above, name))
        for part in _PARTS:
            document[part] = {**base.get(part, {}), **document.get(part, {})}
    return document


def _beside(where: ProfilePlace, minimum: str) -> Path:
    name = where.path.rpartition(".")[2]
    found = [(version_of(path.stem), path) for path in where.file.parent.glob(f"{name}.v*.json")]
    fitting = [each for each in found if each[0] >= version_of(minimum)]
    if not fitting:
        raise where.wrong(f"must be next to it, as {name}.vX_Y_Z.json, version {minimum} or later; nothing is fetched")
    return max(fitting)[1]


def version_of(text: str) -> tuple[int, ...]:
    """``1.2.3``, or ``Name.v1_2_3`` and the like, as three numbers."""
    numbers = re.findall(r"\d+", text.rpartition(".v")[2] if ".v" in text else text)
    return tuple(int(number) for number in (*numbers, "0", "0", "0")[:3])


def _object(members: Mapping[str, Check]) -> Check:
    def check(place: ProfilePlace, value: Any) -> None:
        if not isinstance(value, dict):
            raise place.wrong(f"{json.dumps(value)[:60]}: must be an object")
        for name, each in value.items():
            if name.startswith(("@", "$")) or name == "Oem":
                continue
            if name not in members:
                raise place.wrong(f"{name}: unknown; allowed: {', '.join(members)}")
            members[name](place / name, each)

    return check


def _each(inner: Check) -> Check:
    """Return a check of members with any names, each of which is one of these."""

    def check(place: ProfilePlace, value: Any) -> None:
        if not isinstance(value, dict):
            raise place.wrong(f"{json.dumps(value)[:60]}: must be an object")
        for name, each in value.items():
            inner(place / name, each)

    return check


def _list(inner: Check) -> Check:
    def check(place: ProfilePlace, value: Any) -> None:
        if not isinstance(value, list):
            raise place.wrong(f"{json.dumps(value)[:60]}: must be an array")
        for number, each in enumerate(value):
            inner(place / number, each)

    return check


def _is(kind: type | tuple[type, ...], what: str) -> Check:
    def check(place: ProfilePlace, value: Any) -> None:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise place.wrong(f"{json.dumps(value)[:60]}: must be {what}")

    return check


def _one_of(*allowed: str) -> Check:
    def check(place: ProfilePlace, value: Any) -> None:
        if value not in allowed:
            raise place.wrong(f"{json.dumps(value)[:60]}: must be one of {', '.join(allowed)}")

    return check


def _version(place: ProfilePlace, value: Any) -> None:
    if not isinstance(value, str) or VERSION.fullmatch(value) is None:
        raise place.wrong(f"{json.dumps(value)[:60]}: must be a version, such as 1.2.0")


def _pattern(place: ProfilePlace, value: Any) -> None:
    text(place, value)
    try:
        searcher(value)
    except PatternError as error:
        raise place.wrong(f"{value!r}: {error}") from error


def _unsupported(why: str) -> Check:
    def check(place: ProfilePlace, value: Any) -> None:
        raise place.wrong(f"not judged by mews: {why}")

    return check


def _property(place: ProfilePlace, value: Any) -> None:
    _object(PROPERTY)(place, value)
    _comparison(place, value, "Comparison", "Values")


def _condition(place: ProfilePlace, value: Any) -> None:
    _object(CONDITION)(place, value)
    _comparison(place, value, "CompareType", "CompareValues")
    if ("CompareProperty" in value) != ("CompareType" in value):
        raise place.wrong("CompareProperty and CompareType: only together")


def _below(place: ProfilePlace, value: Any) -> None:
    """A condition of a whole resource: that it is below others. Others are not judged."""
    for name in value if isinstance(value, dict) else ():
        if name in CONDITION and name not in BELOW:
            raise place.wrong(f"not judged by mews: {name} of a whole resource; give it to its properties")
    _object(BELOW)(place, value)
    if not value.get("SubordinateToResource"):
        raise place.wrong("SubordinateToResource: missing")


def _comparison(place: ProfilePlace, value: Mapping[str, Any], kind: str, values: str) -> None:
    how = value.get(kind)
    given = value.get(values, [])
    if how in (None, "Absent", "Present"):
        return
    if not given:
        raise place.wrong(f"{kind} {how}: needs {values}")
    if how == "Pattern":
        _list(_pattern)(place / values, given)
    if how in ("GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"):
        _list(_is((int, float), "a number"))(place / values, given)


def _resource(place: ProfilePlace, value: Any) -> None:
    if isinstance(value, dict) and "UseCases" in value:
        _object({"UseCases": _list(_object(RESOURCE))})(place, value)
    else:
        _object(RESOURCE)(place, value)


text = _is(str, "a text")
boolean = _is(bool, "true or false")
VALUES = _list(_is((bool, int, float, str, type(None)), "a value"))

BELOW: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "Purpose": text,
    "SubordinateToResource": _list(text),
}
CONDITION: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "WriteRequirement": _one_of(*WRITE),
    "Purpose": text,
    "URIs": _list(_pattern),
    "SubordinateToResource": _list(text),
    "Comparison": _one_of(*COMPARISONS),
    "Values": VALUES,
    "CompareProperty": text,
    "CompareType": _one_of(*COMPARISONS),
    "CompareValues": VALUES,
}
PROPERTY: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "WriteRequirement": _one_of(*WRITE),
    "ReplacedByProperty": text,
    "ReplacesProperty": text,
    "Priority": _is(int, "a number"),
    "Purpose": text,
    "MinCount": _is(int, "a number"),
    "MinSupportValues": _list(text),
    "Comparison": _one_of(*COMPARISONS),
    "Values": VALUES,
    "ConditionalRequirements": _list(_condition),
    "PropertyRequirements": _each(_property),
}
PARAMETER: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "ParameterValues": _list(text),
    "RecommendedValues": _list(text),
}
ACTION: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "Purpose": text,
    "ActionInfo": _one_of(*ASKED),
    "Parameters": _each(_object(PARAMETER)),
}
RESOURCE: dict[str, Check] = {
    "MinVersion": _version,
    "Repository": text,
    "ReadRequirement": _one_of(*READ),
    "URIs": _list(_pattern),
    "CreateResource": boolean,
    "DeleteResource": boolean,
    "UpdateResource": boolean,
    "Purpose": text,
    "UseCaseType": _one_of(*USE_CASES),
    "UseCaseTitle": text,
    "UseCaseKeyProperty": text,
    "UseCaseKeyValues": VALUES,
    "UseCaseComparison": _one_of(*COMPARISONS),
    "RequiredResourceProfile": _unsupported("put that profile's requirements into this one"),
    "ConditionalRequirements": _list(_below),
    "PropertyRequirements": _each(_property),
    "ActionRequirements": _each(_object(ACTION)),
}
NAMED = _each(_object({"ReadRequirement": _one_of(*READ)}))
REGISTRY: dict[str, Check] = {
    "ReadRequirement": _one_of(*READ),
    "Purpose": text,
    "MinVersion": _version,
    "Repository": text,
    "Messages": NAMED,
}
PROTOCOL: dict[str, Check] = {
    "MinVersion": _version,
    **{
        name: _one_of(*ASKED)
        for name in (
            *("Discovery", "HostInterface", "ExpandQuery", "FilterQuery", "SelectQuery", "OnlyQuery", "ExcerptQuery"),
            *("DeepPATCH", "DeepPOST"),
        )
    },
    "ErrorResponse": _object({name: _one_of(*ASKED) for name in ("ExtendedInfo", "Resolution", "ResolutionSteps")}),
}
DOCUMENT: dict[str, Check] = {
    **dict.fromkeys(("SchemaDefinition", "ProfileName", "OwningEntity", "ContributedBy", "License"), text),
    **dict.fromkeys(("Purpose", "ContactInfo"), text),
    "ProfileVersion": _version,
    "ProfileType": _one_of("Interop", "Product"),
    "RequiredProfiles": _each(_object({"Repository": text, "MinVersion": _version})),
    "Protocol": _object(PROTOCOL),
    "Resources": _each(_resource),
    "Registries": _each(_object(REGISTRY)),
}
