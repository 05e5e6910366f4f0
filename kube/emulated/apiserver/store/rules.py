"""What a kind may bring of its own into the common life cycle: defaults, admission, validation, deletion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.metadata_faults import USUAL, MetadataChecks
from mews.kube.emulated.apiserver.store.refusals import FieldError
from mews.kube.emulated.apiserver.store.users import User

S = TypeVar("S")
"""The store that the rules look into: a parameter, since the store is given its rules and neither imports the other."""


def _nothing(_: Object) -> None:
    return None


def _no_faults(_: Object) -> list[FieldError]:
    return []


def _no_change_faults(_new: Object, _old: Object) -> list[FieldError]:
    return []


def _unrevised(faults: list[FieldError]) -> list[FieldError]:
    return faults


def _quiet(_: Object) -> list[str]:
    return []


def _silent(_new: Object, _old: Object | None) -> list[str]:
    return []


def _kept(_new: Object, _old: Object) -> None:
    return None


def _admitted(_store: object, _kind: Kind, _obj: Object) -> None:
    return None


def _given(_store: object, _kind: Kind, _obj: Object, _subresource: str, _dry_run: bool) -> None:
    return None


def _anonymous(_obj: Object, _user: User) -> None:
    return None


def _timeless(_new: Object, _old: Object, _now: str) -> None:
    return None


def _unstamped(_obj: Object, _now: str) -> None:
    return None


def _graceless(_obj: Object, _asked_s: int | None) -> int | None:
    return None


def _free(_obj: Object) -> bool:
    return False


def _committed(_store: object, _old: Object | None, _new: Object | None) -> None:
    return None


def _same(_new: Object, _old: Object) -> bool:
    return False


class KindRules(Struct, Generic[S], frozen=True):
    """The hooks, in the order in which a write meets them. All but ``committed`` may change the object they are given,
    which nobody else holds yet; refusals are raised or returned as faults."""

    default: Callable[[Object], None] = _nothing
    """Fill in defaults, on create and update."""
    default_times: Callable[[Object, str], None] = _unstamped
    """Fill in the times that default to now (object, now), on create and update."""
    warn_early: Callable[[Object], list[str]] = _quiet
    """Warnings about an object that is created, which come though it be refused."""
    birth: Callable[[Object], None] = _nothing
    """Initial status and spec, on create."""
    author: Callable[[Object, User], None] = _anonymous
    """What is written into a new object of the user who creates it."""
    admit: Callable[[S, Kind, Object], None] = _admitted
    """Admission on create; sees the other objects."""
    give: Callable[[S, Kind, Object, str, bool], None] = _given
    """What an object is given that others cannot have too, on create and update (subresource, whether it is a dry run);
    sees the other objects."""
    revise: Callable[[list[FieldError]], list[FieldError]] = _unrevised
    """What a later release says of the errors that are found, in its words."""
    validate: Callable[[Object], list[FieldError]] = _no_faults
    """What is wrong with the object."""
    validate_change: Callable[[Object, Object, str], list[FieldError]] | None = None
    """What is wrong with an object that is updated (new, old, subresource), where that is not simply what ``validate``
    and ``compare`` find: a kind may hold against an update only what it brings in."""
    validate_status: Callable[[Object, Object], list[FieldError]] | None = None
    """What is wrong with a status that is written (new, old), where that is not what ``validate`` finds: upstream looks
    at no spec then."""
    warn: Callable[[Object, Object | None], list[str]] = _silent
    """Warnings about an object that is written (new, old)."""
    inherit: Callable[[Object, Object], None] = _kept
    """What an update keeps of the old object when it does not say it (new, old)."""
    stamp: Callable[[Object, Object, str], None] = _timeless
    """Times that the server fills in on update (new, old, now)."""
    stamp_birth: Callable[[Object, str], None] = _unstamped
    """Times that the server fills in on create (object, now)."""
    compare: Callable[[Object, Object], list[FieldError]] = _no_change_faults
    """What is wrong with the change (new, old)."""
    renewed: Callable[[Object, Object], bool] = _same
    """Whether a change (new, old) makes a new generation though the spec is the same."""
    mark: Callable[[Object, str], None] | None = None
    """What the first request to delete an object writes into it (object, now), for a kind whose objects always wait for
    what hangs on them."""
    held: Callable[[Object], bool] = _free
    """Whether something besides finalizers and grace keeps a deleted object."""
    grace: Callable[[Object, int | None], int | None] = _graceless
    """Seconds of grace for a deletion that asks for so many; None = the kind knows no grace."""
    committed: Callable[[S, Object | None, Object | None], None] = _committed
    """After each commit (old, new)."""
    metadata: MetadataChecks = USUAL
    """What the kind's own validation asks of the metadata."""
    keeps_status: bool = False
    """A status given on create is kept."""
