"""Judges the generator: rules of the embedded server are switched off, and generated cases must notice.

Which rules there are is read from the modules (``core/checks``, ``kinds``, ``packs`` and ``core/store/names``): every
function that returns errors. A rule is switched off by giving its function the code of a function that finds none;
cases run in process.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
import re
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from mews.kube.api.errors import ApiError
from mews.kube.emulated import kinds, packs
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.core import checks
from mews.kube.emulated.core.objects import creation, update
from mews.kube.emulated.core.store import names
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.store import Store
from tests.differential.generated.bases import BASES, Base
from tests.differential.generated.fields import SPACE, FieldCase, changed

_NOW = 1_700_000_000.0
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MARK = "FieldError"


def rule_functions() -> dict[str, FunctionType]:
    """All functions that return faults, by module and name."""
    modules = [
        importlib.import_module(entry.name)
        for room in (checks, kinds, packs)
        for entry in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")
    ]
    found = {}
    for module in (*modules, names):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            returned = str(function.__annotations__.get("return", ""))
            mine = function.__module__ == module.__name__ and not function.__closure__
            if mine and returned in (f"list[{_MARK}]", f"Iterator[{_MARK}]"):
                found[f"{module.__name__.rpartition('.')[2]}.{name}"] = function
    return found


def _no_list(*_: Any, **__: Any) -> list[Any]:
    return []


def _no_items(*_: Any, **__: Any) -> Iterator[Any]:
    yield from ()


@contextmanager
def without(rule: FunctionType) -> Iterator[None]:
    """While it lasts the rule finds nothing, wherever it is referred to."""
    code, defaults = rule.__code__, rule.__kwdefaults__
    empty = _no_items if inspect.isgeneratorfunction(rule) else _no_list
    rule.__code__, rule.__kwdefaults__ = empty.__code__, None
    try:
        yield
    finally:
        rule.__code__, rule.__kwdefaults__ = code, defaults


def furnished() -> Store:
    """A store with the objects that updates change."""
    store = fresh_store(lambda: _NOW, random.Random(1))
    _create(store, "namespaces", {"metadata": {"name": SPACE}}, "")
    for base in BASES:
        if base.updates:
            creation.create(store, kind_of(store, base), _space(base), base.named("old"), WriteRequest())
    return store


def _create(store: Store, plural: str, body: Any, space: str) -> None:
    kind = next(kind for kind in store.kinds if kind.plural == plural)
    creation.create(store, kind, space, body, WriteRequest())


def kind_of(store: Store, base: Base) -> Kind:
    """The kind of the embedded server."""
    return next(kind for kind in store.kinds if f"{kind.resource.api_version}/{kind.resource.kind}" == base.kind)


def _space(base: Base) -> str:
    return SPACE if base.namespaced else ""


def verdict(store: Store, case: FieldCase) -> str:
    """What the embedded server says of a case: "" or the refusal."""
    kind = kind_of(store, case.base)
    request = WriteRequest(dry_run=True, validation="Warn")
    try:
        if not case.update:
            creation.create(store, kind, _space(case.base), changed(case, case.base.named("new")), request)
        else:
            name = case.base.name("old")
            stored = store.get(kind, _space(case.base), name)
            part = "status" if case.place.path[0] == "status" else ""
            update.replace(
                store, kind, _space(case.base), name, changed(case, stored), subresource=part, request=request
            )
    except ApiError as refusal:
        return _UID.sub("<uid>", f"{refusal.code} {refusal} {refusal.details}")
    return ""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case, what is said of it, and the code of all rules that were asked."""

    case: FieldCase
    verdict: str
    asked: frozenset[CodeType]


def judged(store: Store, cases: Sequence[FieldCase]) -> list[JudgedCase]:
    """The verdicts of all cases."""
    rules_by_code = {rule.__code__ for rule in rule_functions().values()}
    return [_judged(store, case, rules_by_code) for case in cases]


def _judged(store: Store, case: FieldCase, known: Set[CodeType]) -> JudgedCase:
    asked: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in known:
            asked.add(frame.f_code)

    sys.setprofile(note)
    try:
        said = _verdict(store, case)
    finally:
        sys.setprofile(None)
    return JudgedCase(case, said, frozenset(asked))


def _verdict(store: Store, case: FieldCase) -> str:
    try:
        return verdict(store, case)
    except (AttributeError, KeyError, TypeError, ValueError) as fault:  # a rule that is off may have guarded another
        return repr(fault)


def notices(store: Store, cases: Sequence[JudgedCase], rule: FunctionType) -> FieldCase | None:
    """The first case that is judged otherwise without the rule."""
    asked = [entry for entry in cases if rule.__code__ in entry.asked]
    with without(rule):
        return next((entry.case for entry in asked if _verdict(store, entry.case) != entry.verdict), None)
