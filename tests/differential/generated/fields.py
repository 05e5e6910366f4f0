"""Cases for each field of each built-in kind: absent, zero, wrong in type, at and beyond a boundary, changed.

A case is a good object (``bases``) with one place changed; which places there are and what could stand in them comes
from the published types alone. Creations and updates are dry runs, so that each case meets the same state.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.differential.areas.bodies import opened
from tests.differential.generated.bases import BASES, Base
from tests.differential.generated.published import Schema, resolved, type_of_kind
from tests.differential.generated.values import REMOVED, candidates, filled
from tests.differential.model import Answer, Sent

SPACE = "fields"
_DEPTH = 6
_DEPTH_OF_PODS = 9
_SETTLED_S = 2.0
_WEIGHT_OF_A_STEP = 0.8
_WEIGHT_OF_PRESENT = 3
_WEIGHT_OF_METADATA = 0.15
_WEIGHT_OF_TEMPLATES = 0.1
"""Metadata and pod templates are in many kinds and have many fields: each of them is drawn less often."""

_MORE_CASES = {"v1/Pod": 3}
"""A kind that has many rules gets more cases than the others."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """Where in a kind's objects, and what the published types let stand there."""

    path: Path
    schema: Schema

    @property
    def shown(self) -> str:
        """``spec.ports[0].port``."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)[1:]


@dataclass(frozen=True, slots=True)
class FieldCase:
    """One value at one place of one kind, on create or on update."""

    base: Base
    place: FieldPlace
    label: str
    value: Any
    update: bool

    @property
    def name(self) -> str:
        """Which case it is, in words."""
        words = (self.base.kind, self.base.variant, "update" if self.update else "create", self.place.shown, self.label)
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class JoinedCase:
    """Two cases of one kind at once: what a field means for another, and which of two faults is named first."""

    first: FieldCase
    second: FieldCase

    @property
    def name(self) -> str:
        """Which cases they are, in words."""
        return f"{self.first.name} and {self.second.place.shown} {self.second.label}"


def places(base: Base) -> list[FieldPlace]:
    """All places of a kind down to a depth, those in lists and maps by one item."""
    depth = _DEPTH_OF_PODS if base.kind == "v1/Pod" else _DEPTH
    return list(_places(type_of_kind(base.kind), base.body, (), depth, ()))


def _places(schema: Schema, value: Any, path: Path, depth: int, above: tuple[str, ...]) -> Iterator[FieldPlace]:
    name = schema.get("ref", "")
    if name and name in above:
        return
    above = (*above, name) if name else above
    schema = resolved(schema)
    for field, below in schema.get("fields", {}).items():
        here = (*path, field)
        if field in ("apiVersion", "kind") and not path:
            continue
        yield FieldPlace(here, below)
        if len(here) < depth:
            yield from _places(below, _member(value, field), here, depth, above)
    if "items" in schema:
        here = (*path, 0)
        yield FieldPlace(here, schema["items"])
        if len(here) < depth:
            yield from _places(schema["items"], _member(value, 0), here, depth, above)
    if "members" in schema:
        key = next(iter(value), "a") if isinstance(value, Mapping) else "a"
        yield FieldPlace((*path, key), schema["members"])


def _member(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and len(value) > step else None
    return value.get(step) if isinstance(value, Mapping) else None


def set_at(body: Any, path: Path, value: Any, schema: Schema) -> Any:
    """A copy of the body with the value at the path; parents that are not there are made as the types ask for."""
    if not path:
        return copy.deepcopy(value)
    step, rest = path[0], path[1:]
    schema = resolved(schema)
    if isinstance(step, int):
        items = list(body) if isinstance(body, list) else []
        if value is REMOVED and not rest:
            return items[:step] + items[step + 1 :]
        if len(items) <= step:
            items.append(filled(schema["items"]))
        items[step] = set_at(items[step], rest, value, schema["items"])
        return items
    members = dict(body) if isinstance(body, Mapping) else filled(schema)
    below = schema.get("fields", {}).get(step) or schema.get("members") or {}
    if value is REMOVED and not rest:
        members.pop(step, None)
        return members
    members[step] = set_at(members.get(step), rest, value, below)
    return members


def _weight(base: Base, place: FieldPlace) -> float:
    """Deep places are many, so each is drawn less often; those that the good object has, more often."""
    weight = _WEIGHT_OF_A_STEP ** len(place.path)
    if _at(base.body, place.path) is not None:
        weight *= _WEIGHT_OF_PRESENT
    if place.path[0] == "metadata":
        return weight * _WEIGHT_OF_METADATA
    return weight * (_WEIGHT_OF_TEMPLATES if "template" in place.path[1:-1] else 1)


def drawn(seed: int, count: int, kinds: Collection[str] = ()) -> list[FieldCase]:
    """So many different cases, a fair share of each kind; ``kinds``: of those alone (``Job``)."""
    bases = [base for base in BASES if not kinds or base.kind.rpartition("/")[2] in kinds]
    shares = [_MORE_CASES.get(base.kind, 1) for base in bases]
    found: list[FieldCase] = []
    for base, share in zip(bases, shares, strict=True):
        wanted = max(1, round(count * share / sum(shares)))
        found += _drawn_of(base, random.Random(f"{base.kind}{base.variant}/{seed}"), wanted)
    return found


def _drawn_of(base: Base, rng: random.Random, wanted: int) -> list[FieldCase]:
    known = places(base)
    weights = [_weight(base, place) for place in known]
    found: dict[str, FieldCase] = {}
    for _ in range(wanted * 20):
        place = rng.choices(known, weights)[0]
        label, value = rng.choice(candidates(place.schema, _at(base.body, place.path)))
        is_status = place.path[0] == "status"
        update = base.updates and (is_status or rng.random() < 0.45)
        case = FieldCase(base, place, label, value, update)
        if is_status and not base.has_status:
            continue
        found.setdefault(case.name, case)
        if len(found) == wanted:
            break
    return list(found.values())


def joined(seed: int, count: int, kinds: Collection[str] = ()) -> list[JoinedCase]:
    """So many pairs of drawn cases that one request can hold, or nearly."""
    found: list[JoinedCase] = []
    waiting: dict[tuple[str, bool, bool], FieldCase] = {}
    for case in drawn(seed, 2 * count, kinds):
        key = (f"{case.base.kind}{case.base.variant}", case.update, case.place.path[0] == "status")
        other = waiting.pop(key, None)
        if other is None or _within(case.place.path, other.place.path):
            waiting[key] = case
        else:
            found.append(JoinedCase(other, case))
    return found


def _within(one: Path, other: Path) -> bool:
    """Whether one of two places lies in the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _at(body: Any, path: Path) -> Any:
    for step in path:
        body = _member(body, step)
    return body


def changed(case: FieldCase | JoinedCase, body: Any) -> Any:
    """The body with the case's value, or both, in its place."""
    if isinstance(case, JoinedCase):
        return changed(case.second, changed(case.first, body))
    return set_at(body, case.place.path, case.value, type_of_kind(case.base.kind))


def sent(case: FieldCase | JoinedCase) -> Sent:
    """The request of a case."""
    first = case.first if isinstance(case, JoinedCase) else case
    base = first.base
    if not first.update:
        body = changed(case, base.named("new"))
        return Sent(case.name, "POST", f"{base.folder(SPACE)}?dryRun=All", body)
    part = "/status" if first.place.path[0] == "status" else ""
    path = f"{base.folder(SPACE)}/{base.name('old')}"
    return Sent(case.name, "PUT", f"{path}{part}?dryRun=All", edits=(path, _Edit(case)))


@dataclass(frozen=True, slots=True)
class _Edit:
    """What a case makes of the stored object."""

    case: FieldCase | JoinedCase

    def __call__(self, stored: Any) -> Any:
        stored["metadata"].pop("managedFields", None)
        return changed(self.case, stored)


def prepared() -> list[Sent]:
    """The requests that make what updates change."""
    made = [
        Sent(f"{base.kind} {base.name('old')}", "POST", base.folder(SPACE), base.named("old"))
        for base in BASES
        if base.updates
    ]
    return [opened(SPACE), *made]


def cases(seed: int, count: int, kinds: Collection[str] = (), *, pairs: bool = False) -> tuple[Sent, ...]:
    """The objects that are updated, then the cases; ``pairs``: two at once each."""
    asked = [sent(case) for case in (joined if pairs else drawn)(seed, count, kinds)]
    if asked:
        first = asked[0]
        asked[0] = Sent(first.name, first.method, first.path, first.body, edits=first.edits, after_s=_SETTLED_S)
    return (*prepared(), *asked)


def kind_of(name: str) -> str:
    """The kind that a case is about."""
    return name.partition(" ")[0]


_STRUCT = re.compile(r"Invalid value: \{(?:(?!Invalid value: ).)*?\}: field is immutable")
"""A whole struct that may not change: upstream prints its internal one."""

_FOLLOWED_BY_A_DIFF = ("spec: Forbidden: ", "spec.persistentvolumesource: Forbidden: ")
_DIFF = "\n"
"""Where upstream begins a diff of its internal structs, which nobody can read back from an object."""


def compared(answer: Answer) -> Answer:
    """The verdict: status, and of a refusal reason, message and causes in their order; warnings.

    Of a message with a diff of upstream's internal structs what stands before the diff is compared; the message of the
    whole, which is joined of those of the causes, is left out then."""
    body = answer["body"]
    found: Answer = {"status": answer["status"], "warnings": answer["warnings"]}
    if answer["status"] >= 300 and isinstance(body, Mapping):
        details = body.get("details") or {}
        causes = details.get("causes") or []
        found |= {"reason": body.get("reason"), "message": body.get("message"), "causes": causes}
        found = json.loads(_STRUCT.sub("Invalid value: <struct>: field is immutable", json.dumps(found)))
        causes = found["causes"]
        if any(text in str(body.get("message")) for text in _FOLLOWED_BY_A_DIFF):
            cut = [{**cause, "message": cause["message"].partition(_DIFF)[0]} for cause in causes]
            found |= {"message": None, "causes": cut}
    elif answer["status"] >= 300:
        found["body"] = json.dumps(body)
    return found
