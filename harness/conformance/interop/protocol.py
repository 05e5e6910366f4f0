"""Clauses about the protocol and about message registries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import MUST, SHOULD, Clause, must
from mews.harness.conformance.dialects.redfish_model import walk
from mews.harness.conformance.dialects.redfish_protocol import ask, collection, features
from mews.harness.conformance.dialects.redfish_table import ROOT
from mews.harness.conformance.errors import NotJudgedError
from mews.harness.conformance.fields import at, local, members, objects, text
from mews.harness.conformance.interop.document import version_of

FEATURES: Mapping[str, tuple[str, ...]] = {
    "FilterQuery": ("FilterQuery",),
    "SelectQuery": ("SelectQuery",),
    "OnlyQuery": ("OnlyMemberQuery",),
    "ExcerptQuery": ("ExcerptQuery",),
    "DeepPATCH": ("DeepOperations", "DeepPATCH"),
    "DeepPOST": ("DeepOperations", "DeepPOST"),
}
"""Requirement -> where ``ProtocolFeaturesSupported`` says so."""
GRADES = {"Mandatory": MUST, "Recommended": SHOULD}
UNSEEN = ("Discovery", "HostInterface")


def protocol_clauses(profile: str, asked: Mapping[str, Any]) -> Iterator[Clause]:
    """Yield those of the part ``Protocol``."""
    for name, wanted in asked.items():
        own, reference = f"profile.protocol.{name}", f"DSP0272 {profile}: Protocol.{name}"
        if name == "MinVersion":
            yield Clause(own, f"Redfish {wanted} or later is spoken", reference, partial(_spoken, minimum=wanted))
        elif name == "ErrorResponse":
            for part, grade in wanted.items():
                if grade in GRADES:
                    check = partial(_error, part=part)
                    yield Clause(f"{own}.{part}", f"errors have {part}", reference, check, grade=GRADES[grade])
        elif wanted in GRADES:
            yield Clause(own, f"{name} is supported", reference, _feature(name), grade=GRADES[wanted])


def _spoken(bench: ClauseContext, minimum: str) -> None:
    found = text(ask(bench, "GET", ROOT).json(), "RedfishVersion")
    must(version_of(found) >= version_of(minimum), f"RedfishVersion {found!r}, must be {minimum} or later")


def _feature(name: str) -> Callable[[ClauseContext], None]:
    def check(bench: ClauseContext) -> None:
        if name in UNSEEN:
            raise NotJudgedError("not to be seen on this wire")
        offered = features(bench)
        if name == "ExpandQuery":
            has = any(each is True for each in members(offered, "ExpandQuery").values())
        else:
            has = at(offered, *FEATURES[name]) is True
        must(has, f"ProtocolFeaturesSupported does not say so of {name}")

    return check


def _error(bench: ClauseContext, part: str) -> None:
    path = f"{collection(bench).rstrip('/')}/mews-no-such-member"
    reply = ask(bench, "GET", path)
    messages = objects(reply.json(), "error", "@Message.ExtendedInfo")
    must(messages, f"GET {path}: HTTP {reply.status} without @Message.ExtendedInfo")
    if part != "ExtendedInfo":
        must(any(part in each for each in messages), f"GET {path}: its message has no {part}")


def registry_clauses(profile: str, asked: Mapping[str, Mapping[str, Any]]) -> Iterator[Clause]:
    """Yield those of the part ``Registries``."""
    for name, each in asked.items():
        wanted = each.get("ReadRequirement", "Mandatory")
        if wanted not in GRADES:
            continue
        own, reference = f"profile.registry.{name}", f"DSP0272 {profile}: Registries.{name}"
        minimum = each.get("MinVersion", "1.0.0")
        check = partial(_registered, name=name, minimum=minimum)
        yield Clause(own, f"the registry {name} {minimum} or later is there", reference, check, grade=GRADES[wanted])
        for message, requirement in each.get("Messages", {}).items():
            grade = GRADES.get(requirement.get("ReadRequirement", "Mandatory"))
            if grade is not None:
                known = partial(_message, name=name, message=message)
                title = f"{name} has the message {message}"
                yield Clause(f"{own}.{message}", title, reference, known, needs=(own,), grade=grade)


def _files(bench: ClauseContext, name: str) -> list[Mapping[str, Any]]:
    found = walk(bench).all("MessageRegistryFile")
    return [each for each in found if text(each, "Registry").partition(".")[0] == name]


def _registered(bench: ClauseContext, name: str, minimum: str) -> None:
    found = [text(each, "Registry") for each in _files(bench, name)]
    must(found, f"there is no registry {name}")
    versions = [version_of(each.partition(".")[2]) for each in found]
    wanted = version_of(minimum)
    newest = max(versions)
    must(newest[: 2 if newest[2] == 0 else 3] >= wanted[: 2 if newest[2] == 0 else 3], f"{found[0]}, must be {minimum}")


def _message(bench: ClauseContext, name: str, message: str) -> None:
    for each in _files(bench, name):
        for location in objects(each, "Location"):
            uri = text(location, "Uri")
            if uri:
                reply = ask(bench, "GET", local(uri))
                if reply.status != 200:
                    raise NotJudgedError(f"{uri}: HTTP {reply.status}")
                registry = reply.json()
                must(message in members(registry, "Messages"), f"{uri}: has no message {message}")
                return
    raise NotJudgedError(f"the registry {name} is not on this service")
