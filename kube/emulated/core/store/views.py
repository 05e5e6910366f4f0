"""Kinds that are another view of stored objects: how to show them and how to store what comes in
(contract apiserver.md section 7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.admission import PendingCallsError
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.parts import part


def _same(obj: Object) -> Object:
    return obj


VERSIONED = "versioned"
"""The view of a kind that is stored in another version of its group, with the same fields but where it has a shape."""


class KindView(Struct, frozen=True):
    """``show`` turns a stored object into the kind's form, ``store`` back. Neither changes its argument."""

    show: Callable[[Object], Object] = _same
    store: Callable[[Object], Object] = _same


_SAME = KindView()


def view_of(kind: Kind) -> KindView:
    """Return how the kind shows stored objects."""
    if kind.custom:
        return KindView(show=kind.forms[0]) if kind.forms is not None else _SAME
    if not kind.view:
        return _SAME
    return _versioned(kind) if kind.view == VERSIONED else _named(kind.view)


@cache
def _named(reference: str) -> KindView:
    found: KindView = part(reference)
    return found


@cache
def _versioned(kind: Kind) -> KindView:
    """Objects that bear another version, and have another shape where that version has one."""
    kept = f"{kind.resource.group}/{kind.kept_in}"
    own, plural = kind.resource.api_version, kind.plural
    shown, stored = (part(f"{kind.shape}:{name}") if kind.shape else _same_shape for name in ("shown", "stored"))
    return KindView(
        show=lambda obj: {**shown(plural, obj), "apiVersion": own},
        store=lambda obj: {**stored(plural, obj), "apiVersion": kept},
    )


def _same_shape(plural: str, obj: Object) -> Object:
    return obj


def all_shown(kind: Kind, objects: Iterable[Object]) -> list[Object]:
    """Stored objects as the kind shows them; what has to be asked for them is asked together
    (``PendingCallsError``)."""
    show, found = view_of(kind).show, []
    missing: dict[Hashable, Any] = {}
    for obj in objects:
        try:
            found.append(show(obj))
        except PendingCallsError as pending:
            for key, call in pending.calls.items():
                if missing.setdefault(key, call) is not call:
                    missing[key].join(call)
    if missing:
        raise PendingCallsError(missing)
    return found


def ask_ahead(kind: Kind, obj: Object) -> None:
    """Stop with ``PendingCallsError``, before anything is changed, where the answer to a write has to be asked for."""
    if kind.forms is not None:
        kind.forms[0](obj)


def stored_form(kind: Kind, obj: Object) -> Object:
    """Return an object of a custom kind, checked in its own version, as it is stored."""
    return kind.forms[1](obj) if kind.forms is not None else obj
