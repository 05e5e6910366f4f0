"""How DSP0272 compares a property with values, finds a property, and chooses among conditional requirements."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.conformance.dialects.redfish_model import Walk, schema_of
from mews.harness.conformance.fields import at, link_of
from mews.kube.cel.regexes import searcher

ABSENT = object()
_PLACEHOLDER = re.compile(r"\{[A-Za-z]\w*\}")
"""A name in braces, such as {ChassisId}; a number in braces repeats, in a regular expression."""
NUMERIC: Mapping[str, Callable[[Any, Any], bool]] = {
    "GreaterThan": lambda value, bound: value > bound,
    "GreaterThanOrEqual": lambda value, bound: value >= bound,
    "LessThan": lambda value, bound: value < bound,
    "LessThanOrEqual": lambda value, bound: value <= bound,
}


class JudgedObject(Struct, frozen=True):
    """An object that a requirement is about: inside which resource, at which place, and itself."""

    uri: str
    place: str
    resource: Mapping[str, Any]
    value: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.uri}{': ' + self.place if self.place else ''}"


def find(holder: JudgedObject, name: str) -> Any:
    """Return a property by its name, at the object and then further up, or by its JSON pointer; ABSENT without it."""
    if name.startswith("/"):
        found: Any = holder.resource
        for part in name[1:].split("/"):
            if isinstance(found, Mapping) and part in found:
                found = found[part]
            elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            else:
                return ABSENT
        return found
    for place in (holder.value, holder.resource):
        if name in place:
            return place[name]
    return ABSENT


def holds(seen: Walk, value: Any, how: str, values: Sequence[Any]) -> bool:
    """Return whether a value compares so; each element of an array must."""
    if how in ("Absent", "Present"):
        return (value is ABSENT) == (how == "Absent")
    if value is ABSENT:
        return False
    elements = value if isinstance(value, list) else [value]
    if how in ("AnyOf", "Equal"):
        return any(same(each, wanted) for each in elements for wanted in values)
    if how == "AllOf":
        return all(any(same(each, wanted) for each in elements) for wanted in values)
    return all(_one_holds(seen, each, how, values) for each in elements)


def _one_holds(seen: Walk, value: Any, how: str, values: Sequence[Any]) -> bool:
    if how == "NotEqual":
        return not any(same(value, each) for each in values)
    if how == "Pattern":
        return isinstance(value, str) and any(searcher(each).fullmatch(value) for each in values)
    if how == "LinkToResource":
        linked = seen.resources.get(link_of(value))
        return linked is not None and type_of(linked) in values
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if how == "Range":
        low, high = (*values, None, None)[:2]
        return (low is None or value >= low) and (high is None or value <= high)
    return all(NUMERIC[how](value, bound) for bound in values)


def same(one: Any, other: Any) -> bool:
    """Equal, and true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def type_of(resource: Mapping[str, Any]) -> str:
    """Return the unversioned name of a resource's type, also of a collection's."""
    return schema_of(resource) or str(at(resource, "@odata.type") or "").lstrip("#").partition(".")[0]


def at_uri(uri: str, patterns: Sequence[str]) -> bool:
    """Return whether a URI is one of these, in the form of the Redfish specification or as a regular expression."""
    forms = (_PLACEHOLDER.sub("[^/]+", each) for each in patterns)
    return any(searcher(form).fullmatch(uri.rstrip("/")) is not None for form in forms)


def applying(seen: Walk, requirement: Mapping[str, Any], holder: JudgedObject) -> Mapping[str, Any]:
    """Return the requirement as its first condition that is met changes it."""
    for condition in requirement.get("ConditionalRequirements", ()):
        if _met(seen, condition, holder):
            changed = {name: each for name, each in requirement.items() if name not in ("Values", "Comparison")}
            own = ("Values", "Comparison", "Purpose")
            changed.update({name: condition[name] for name in own if name in condition})
            changed["ReadRequirement"] = condition.get("ReadRequirement", "Mandatory")
            changed["WriteRequirement"] = condition.get("WriteRequirement", "None")
            return changed
    return requirement


def _met(seen: Walk, condition: Mapping[str, Any], holder: JudgedObject) -> bool:
    if "URIs" in condition and not at_uri(holder.uri, condition["URIs"]):
        return False
    parents = condition.get("SubordinateToResource", ())
    if parents and not is_below(seen, holder.uri, parents):
        return False
    if "CompareProperty" in condition:
        value = find(holder, condition["CompareProperty"])
        return holds(seen, value, condition["CompareType"], condition.get("CompareValues", ()))
    return True


def is_below(seen: Walk, uri: str, parents: Sequence[str]) -> bool:
    """Return whether the resources above it are of these types, the last one being the nearest."""
    above = uri.rstrip("/")
    for wanted in reversed(parents):
        above = above.rpartition("/")[0]
        resource = seen.resources.get(above) or seen.resources.get(f"{above}/")
        if resource is None or type_of(resource) != wanted:
            return False
    return True
