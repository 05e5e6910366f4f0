"""Clauses out of a profile document: ``profile.<resource>[.<property>…]``, ``profile.protocol.<feature>``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MAY, MUST, SHOULD, Clause, must
from mews.harness.conformance.dialects.redfish_model import walk
from mews.harness.conformance.errors import NotJudgedError
from mews.harness.conformance.fields import at, links, text
from mews.harness.conformance.interop.actions import action_clauses
from mews.harness.conformance.interop.compare import JudgedObject, at_uri, holds, is_below, type_of
from mews.harness.conformance.interop.document import version_of
from mews.harness.conformance.interop.properties import property_clauses
from mews.harness.conformance.interop.protocol import protocol_clauses, registry_clauses

GRADE = {"Mandatory": MUST, "Supported": MUST, "Excluded": MUST, "IfPopulated": MUST, "Recommended": SHOULD}


class UseCase(Struct, frozen=True):
    """The instances of a resource that requirements are about, and how they are called."""

    resource: str
    requirement: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Of the clause about the resource itself."""
        title = self.requirement.get("UseCaseTitle")
        return f"profile.{self.resource}" + (f"[{title}]" if title else "")

    def instances(self, bench: ClauseContext) -> list[JudgedObject]:
        """Return those of the walk."""
        seen = walk(bench)
        found = [
            JudgedObject(uri, "", value, value)
            for uri, value in seen.resources.items()
            if type_of(value) == self.resource and at_uri(uri, self.requirement.get("URIs") or (".*",))
        ]
        return [holder for holder in found if self._is_meant(bench, holder)]

    def _is_meant(self, bench: ClauseContext, holder: JudgedObject) -> bool:
        if self.requirement.get("UseCaseType") == "AbsentResource":
            return bool(at(holder.resource, "Status", "State") == "Absent")
        name = self.requirement.get("UseCaseKeyProperty")
        if name is None:
            return True
        how = self.requirement.get("UseCaseComparison", "AnyOf")
        value = holder.resource.get(name)
        return holds(walk(bench), value, how, self.requirement.get("UseCaseKeyValues", ()))


def interop_clauses(document: Mapping[str, Any]) -> tuple[Clause, ...]:
    """Return all clauses of a document that has been read."""
    name = str(document.get("ProfileName", "profile"))
    return (
        *protocol_clauses(name, document.get("Protocol", {})),
        *registry_clauses(name, document.get("Registries", {})),
        *(clause for use_case in _use_cases(document) for clause in _resource_clauses(name, use_case)),
    )


def _use_cases(document: Mapping[str, Any]) -> Iterator[UseCase]:
    for resource, requirement in document.get("Resources", {}).items():
        for each in requirement.get("UseCases", (requirement,)):
            yield UseCase(resource, each)


def _resource_clauses(profile: str, use_case: UseCase) -> Iterator[Clause]:
    requirement = use_case.requirement
    reference = f"DSP0272 {profile}: Resources.{use_case.resource}"
    wanted = requirement.get("ReadRequirement", "Mandatory")
    title = f"there is a {use_case.resource}" + (f", {purpose}" if (purpose := requirement.get("Purpose")) else "")
    yield Clause(use_case.id, title, reference, _present(use_case, wanted), grade=GRADE.get(wanted, MAY))
    for condition in requirement.get("ConditionalRequirements", ()):
        parents, asked = condition["SubordinateToResource"], condition.get("ReadRequirement", "Mandatory")
        text_ = condition.get("Purpose") or f"there is a {use_case.resource} below each {' / '.join(parents)}"
        check = _present_below(use_case, parents, asked)
        id_ = f"{use_case.id}.(below {'/'.join(parents)})"
        yield Clause(id_, text_, reference, check, grade=GRADE.get(asked, MAY))
    if "MinVersion" in requirement:
        minimum = requirement["MinVersion"]
        text_ = f"{use_case.resource} is of version {minimum} or later"
        check = _of_version(use_case, minimum)
        yield Clause(f"{use_case.id}.MinVersion", text_, reference, check, needs=(use_case.id,))
    for option, verbs in (("CreateResource", ("POST",)), ("DeleteResource", ("DELETE",)), ("UpdateResource", WRITES)):
        if requirement.get(option):
            text_ = f"{use_case.resource} allows {' or '.join(verbs)}"
            check = _allows(use_case, option, verbs)
            yield Clause(f"{use_case.id}.{option}", text_, reference, check, needs=(use_case.id,))
    for name, each in requirement.get("PropertyRequirements", {}).items():
        yield from property_clauses(use_case.id, reference, use_case.instances, name, each)
    yield from action_clauses(use_case.id, reference, use_case, requirement.get("ActionRequirements", {}))


WRITES = ("PATCH", "PUT")


def _present(use_case: UseCase, wanted: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        found = use_case.instances(bench)
        if wanted == "Excluded":
            must(not found, f"{found[0] if found else ''}: must not be there")
            return
        if not found and wanted in ("None", "IfImplemented", "IfPopulated", "Conditional"):
            raise NotJudgedError(f"there is no {use_case.resource}, and none is required")
        must(found, f"no {use_case.resource} can be reached")

    return check


def _present_below(use_case: UseCase, parents: Sequence[str], wanted: str) -> Callable[[ClauseContext], None]:
    """Return that of a resource that must be below others: each of those has one, or none where it is excluded."""

    def check(bench: ClauseContext) -> None:
        seen = walk(bench)
        above = [uri for uri in seen.resources if is_below(seen, f"{uri.rstrip('/')}/any", parents)]
        if not above or wanted not in ("Mandatory", "Recommended", "Excluded"):
            raise NotJudgedError(f"there is no {' / '.join(parents)}" if not above else "none is asked for there")
        inside = {holder.uri.rstrip("/").rpartition("/")[0]: holder for holder in use_case.instances(bench)}
        for uri in above:
            found = inside.get(uri.rstrip("/"))
            if wanted == "Excluded":
                must(found is None, f"{found}: must not be there")
            else:
                must(found is not None, f"{uri}: has no {use_case.resource}")

    return check


def _of_version(use_case: UseCase, minimum: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        for holder in _some(use_case, bench):
            kind = text(holder.resource, "@odata.type")
            if ".v" in kind:
                of_type = version_of(kind.rpartition(".")[0])
                must(of_type >= version_of(minimum), f"{holder}: {kind}, must be {minimum} or later")

    return check


def _allows(use_case: UseCase, option: str, verbs: Sequence[str]) -> Callable[[ClauseContext], None]:
    """Return that of a collection, deletes and updates are its members'."""

    def check(bench: ClauseContext) -> None:
        seen = walk(bench)
        for holder in _some(use_case, bench):
            inside = links(holder.resource, "Members") if use_case.resource.endswith("Collection") else []
            where = [holder.uri] if option == "CreateResource" or not inside else inside[:1]
            for uri in where:
                reply = seen.replies.get(uri)
                if reply is None or "allow" not in reply.headers:
                    raise NotJudgedError(f"{uri}: no Allow header says what may be done")
                allowed = [verb.strip().upper() for verb in reply.headers["allow"].split(",")]
                must(any(verb in allowed for verb in verbs), f"{uri}: Allow {', '.join(allowed)}")

    return check


def _some(use_case: UseCase, bench: ClauseContext) -> list[JudgedObject]:
    found = use_case.instances(bench)
    if not found:
        raise NotJudgedError(f"there is no {use_case.resource}")
    return found
