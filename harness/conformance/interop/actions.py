"""Clauses about actions and their parameters, by what the service says of them: nothing is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, MUST, SHOULD, Clause, must
from mews.harness.conformance.dialects.redfish_model import Walk, walk
from mews.harness.conformance.errors import NotJudgedError
from mews.harness.conformance.fields import at, members, objects, text
from mews.harness.conformance.interop.compare import JudgedObject

GRADES = {"Mandatory": MUST, "Supported": MUST, "Recommended": SHOULD}
INFO = "@Redfish.ActionInfo"


class ActionsOf(Protocol):
    """What has the actions."""

    @property
    def resource(self) -> str:
        """Its type."""
        ...

    def instances(self, bench: ClauseContext) -> list[JudgedObject]:
        """Return the resources."""
        ...


def action_clauses(
    above: str, reference: str, of: ActionsOf, requirements: Mapping[str, Mapping[str, Any]]
) -> Iterator[Clause]:
    """Yield a clause per action, per action info that is asked for and per parameter."""
    for name, each in requirements.items():
        wanted = each.get("ReadRequirement", "Mandatory")
        own, where = f"{above}.#{name}", f"{reference}.ActionRequirements.{name}"
        title = each.get("Purpose") or f"there is the action {name}"
        check = _offered(of, name, wanted)
        yield Clause(own, title, where, check, needs=(above,), grade=GRADES.get(wanted, MAY))
        if each.get("ActionInfo", "None") != "None":
            grade = GRADES[each["ActionInfo"]]
            described = _info(of, name)
            text_ = f"{name} has an action info"
            yield Clause(f"{own}.ActionInfo", text_, where, described, needs=(own,), grade=grade)
        for parameter, asked in each.get("Parameters", {}).items():
            graded = GRADES.get(asked.get("ReadRequirement", "Mandatory"), MAY)
            known = _parameter(of, name, parameter, asked.get("ParameterValues", ()))
            yield Clause(f"{own}.{parameter}", f"{name} takes {parameter}", where, known, needs=(own,), grade=graded)
            if asked.get("RecommendedValues"):
                more = _parameter(of, name, parameter, asked["RecommendedValues"])
                id_ = f"{own}.{parameter}.(recommended)"
                yield Clause(id_, f"{name} takes more of {parameter}", where, more, needs=(own,), grade=SHOULD)


def _action(of: ActionsOf, holder: JudgedObject, name: str) -> Mapping[str, Any]:
    return members(holder.resource, "Actions", f"#{of.resource}.{name}")


def _offered(of: ActionsOf, name: str, wanted: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        found = [(holder, bool(_action(of, holder, name))) for holder in _some(of, bench)]
        if wanted == "Supported":
            must(any(has for _, has in found), f"no {of.resource} has the action {name}")
            return
        if wanted not in ("Mandatory", "Recommended") and not any(has for _, has in found):
            raise NotJudgedError(f"the action {name} is not asked for")
        for holder, has in found:
            must(has or wanted not in ("Mandatory", "Recommended"), f"{holder}: has no action {name}")

    return check


def _info(of: ActionsOf, name: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        for holder, action in _with(of, name, bench):
            must(text(action, INFO), f"{holder}: the action {name} has no {INFO}")

    return check


def _parameter(of: ActionsOf, name: str, parameter: str, values: Any) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        seen, judged = walk(bench), 0
        for holder, action in _with(of, name, bench):
            listed, allowed = _described(seen, action, parameter)
            if listed is None:
                continue
            judged += 1
            must(listed, f"{holder}: the action {name} does not list the parameter {parameter}")
            if isinstance(allowed, list):
                missing = [each for each in values if each not in allowed]
                must(not missing, f"{holder}: {parameter} of {name} does not take {', '.join(missing)}")
        if not judged:
            raise NotJudgedError(f"nothing says what parameters {name} takes")

    return check


def _described(seen: Walk, action: Mapping[str, Any], parameter: str) -> tuple[bool | None, Any]:
    """Return whether the parameter is listed, None where nothing lists any, and the values that it takes, if that is
    said."""
    allowed = action.get(f"{parameter}@Redfish.AllowableValues")
    if allowed is not None:
        return True, allowed
    info = seen.resources.get(text(action, INFO))
    if info is None:
        return None, None
    found = [each for each in objects(info, "Parameters") if each.get("Name") == parameter]
    return bool(found), at(found[0], "AllowableValues") if found else None


def _with(of: ActionsOf, name: str, bench: ClauseContext) -> list[tuple[JudgedObject, Mapping[str, Any]]]:
    found = [(holder, action) for holder in _some(of, bench) if (action := _action(of, holder, name))]
    if not found:
        raise NotJudgedError(f"there is no action {name}")
    return found


def _some(of: ActionsOf, bench: ClauseContext) -> list[JudgedObject]:
    found = of.instances(bench)
    if not found:
        raise NotJudgedError(f"there is no {of.resource}")
    return found
