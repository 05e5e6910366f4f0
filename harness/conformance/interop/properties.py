"""Clauses about properties: whether they are there, what they hold, and whether they can be written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, MUST, SHOULD, Clause, must
from mews.harness.conformance.dialects.redfish_model import Walk, walk
from mews.harness.conformance.errors import NotJudgedError, UnmetClauseError
from mews.harness.conformance.fields import at
from mews.harness.conformance.interop.compare import ABSENT, JudgedObject, applying, find, holds

Holders = Callable[[ClauseContext], list[JudgedObject]]
OF_READING = {"Mandatory": MUST, "Supported": MUST, "IfPopulated": MUST, "Excluded": MUST, "Conditional": MUST}
OF_WRITING = {"Mandatory": MUST, "Supported": MUST}
NOTHING = ("None", "Conditional", "IfImplemented")
TOGETHER = ("AnyOf", "AllOf")


def property_clauses(
    above: str, reference: str, holders: Holders, name: str, requirement: Mapping[str, Any]
) -> Iterator[Clause]:
    """Yield those of one property of these objects, and of what is inside it. ``above``: the clause about the
    objects."""
    own = f"{above}.{name}"
    wanted = requirement.get("ReadRequirement", "Mandatory")
    grade = OF_READING.get(wanted, SHOULD if wanted == "Recommended" else MAY)
    if wanted in NOTHING and ("Values" in requirement or "MinCount" in requirement):
        grade = MUST
    title = requirement.get("Purpose") or f"{name} is there{' with the values asked for' * ('Values' in requirement)}"
    yield Clause(own, title, reference, _readable(holders, name, requirement), needs=(above,), grade=grade)
    conditions = requirement.get("ConditionalRequirements", ())
    writing = [
        requirement.get("WriteRequirement", "None"),
        *(each.get("WriteRequirement", "None") for each in conditions),
    ]
    asked = [each for each in writing if each != "None"]
    if asked:
        graded = OF_WRITING.get(asked[0], SHOULD)
        check = _writable(holders, name, requirement)
        yield Clause(f"{own}.(write)", f"{name} can be written", reference, check, needs=(own,), grade=graded)
    for inner, each in requirement.get("PropertyRequirements", {}).items():
        yield from property_clauses(own, reference, _inside(holders, name), inner, each)


def _inside(holders: Holders, name: str) -> Holders:
    """Return the object or the objects that a property holds."""

    def inner(bench: ClauseContext) -> list[JudgedObject]:
        found = []
        for holder in holders(bench):
            value = holder.value.get(name)
            for number, each in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(each, Mapping):
                    place = f"{holder.place}/{name}" + (f"/{number}" if isinstance(value, list) else "")
                    found.append(JudgedObject(holder.uri, place, holder.resource, each))
        return found

    return inner


def _readable(holders: Holders, name: str, requirement: Mapping[str, Any]) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        seen, judged, values = walk(bench), 0, []
        present: list[bool] = []
        together: Mapping[str, Any] = {}
        for holder in _some(holders, bench):
            needed = applying(seen, requirement, holder)
            if _is_replaced(needed, holder, name):
                continue
            value = holder.value.get(name, ABSENT)
            present.append(value is not ABSENT)
            judged += _judge_presence(needed, holder, name, value)
            if value is ABSENT:
                continue
            _judge_size(needed, holder, name, value)
            if needed.get("Comparison", "AnyOf") in TOGETHER and "Values" in needed:
                values += value if isinstance(value, list) else [value]
                together = needed
            elif "Comparison" in needed:
                _judge_value(seen, needed, holder, name, value)
        _judge_support(requirement, name, present)
        _judge_together(seen, together, name, values)
        if not judged:
            raise NotJudgedError(f"{name} is not required anywhere")

    return check


def _judge_presence(needed: Mapping[str, Any], holder: JudgedObject, name: str, value: Any) -> bool:
    """Return whether there was something to judge.

    Raises UnmetClauseError.
    """
    wanted = needed.get("ReadRequirement", "Mandatory")
    if wanted == "IfPopulated":
        wanted = "None" if at(holder.resource, "Status", "State") == "Absent" else "Mandatory"
    if wanted == "Excluded":
        must(value is ABSENT, f"{holder}: {name} must not be there")
        return True
    if wanted in ("Mandatory", "Recommended"):
        must(value is not ABSENT, f"{holder}: {name} is missing")
        return True
    return value is not ABSENT or wanted == "Supported"


def _judge_size(needed: Mapping[str, Any], holder: JudgedObject, name: str, value: Any) -> None:
    if "MinCount" in needed:
        must(isinstance(value, list), f"{holder}: {name} is no array")
        count = sum(each is not None for each in value) if isinstance(value, list) else 0
        must(count >= needed["MinCount"], f"{holder}: {name} has {count} elements, must have {needed['MinCount']}")
    if "MinSupportValues" in needed:
        allowed = holder.value.get(f"{name}@Redfish.AllowableValues")
        if isinstance(allowed, list):
            missing = [each for each in needed["MinSupportValues"] if each not in allowed]
            must(not missing, f"{holder}: {name} does not support {', '.join(missing)}")


def _judge_value(seen: Walk, needed: Mapping[str, Any], holder: JudgedObject, name: str, value: Any) -> None:
    how, values = needed["Comparison"], needed.get("Values", ())
    must(holds(seen, value, how, values), f"{holder}: {name} is {value!r:.60}, must be {how} {_shown(values)}")


def _judge_support(requirement: Mapping[str, Any], name: str, present: Sequence[bool]) -> None:
    if requirement.get("ReadRequirement") == "Supported" and present:
        must(any(present), f"no instance has {name}")


def _judge_together(seen: Walk, needed: Mapping[str, Any], name: str, values: Sequence[Any]) -> None:
    """Values that the instances must show among them."""
    if not needed:
        return
    wanted = needed["Values"]
    if needed.get("Comparison", "AnyOf") == "AnyOf":
        must(holds(seen, list(values), "AnyOf", wanted), f"{name} is nowhere any of {_shown(wanted)}")
        return
    missing = [each for each in wanted if not holds(seen, list(values), "AnyOf", [each])]
    must(not missing, f"{name} is nowhere {_shown(missing)}")


def _writable(holders: Holders, name: str, requirement: Mapping[str, Any]) -> Callable[[ClauseContext], None]:
    """Return it by what the service says of itself: nothing is written."""

    def check(bench: ClauseContext) -> None:
        seen = walk(bench)
        found: list[str] = []
        unknown = 0
        wanted: set[str] = set()
        for holder in _some(holders, bench):
            needed = applying(seen, requirement, holder).get("WriteRequirement", "None")
            if needed == "None" or name not in holder.value:
                continue
            wanted.add(needed)
            can = _can_be_written(seen, holder, name)
            unknown += can is None
            found += [str(holder)] if can is False else []
            if can and needed == "Supported":
                return
        if found:
            raise UnmetClauseError(f"{found[0]}: {name} cannot be written")
        if unknown or not wanted:
            raise NotJudgedError(f"nothing says whether {name} can be written")

    return check


def _can_be_written(seen: Walk, holder: JudgedObject, name: str) -> bool | None:
    reply = seen.replies.get(holder.uri)
    allow = "" if reply is None else reply.headers.get("allow", "").upper()
    if allow and "PATCH" not in allow and "PUT" not in allow:
        return False
    listed = holder.value.get("@Redfish.WriteableProperties")
    return name in listed if isinstance(listed, list) else None


def _is_replaced(needed: Mapping[str, Any], holder: JudgedObject, name: str) -> bool:
    """Return whether another property stands in for this one, as the profile allows."""
    newer = needed.get("ReplacedByProperty")
    if newer is not None and find(holder, newer) is not ABSENT:
        return True
    older = needed.get("ReplacesProperty")
    return older is not None and name not in holder.value and find(holder, older) is not ABSENT


def _some(holders: Holders, bench: ClauseContext) -> list[JudgedObject]:
    found = holders(bench)
    if not found:
        raise NotJudgedError("there is no such object")
    return found


def _shown(values: Sequence[Any]) -> str:
    return " or ".join(map(str, values))
