"""What a kind may bring of its own into the common life cycle: defaults, admission, validation, deletion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.metadata_errors import USUAL, MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer

S = TypeVar("S")
"""The store that the rules look into: a parameter, since the store is given its rules and neither imports the other."""


class KindRules(Struct, Generic[S], frozen=True):
    """The hooks, in the order in which a write meets them; None: nothing is done. They are named as the methods of
    upstream's strategies (k8s.io/apiserver/pkg/registry/rest), where these have one. All but ``after_commit`` may
    change the object they are given, which nobody else holds yet; refusals are raised or returned as errors."""

    before_create: Callable[[S, Kind], None] | None = None
    """Refuse a new object before it is looked at."""
    default: Callable[[Object], None] | None = None
    """Fill in defaults, on create and update."""
    default_times: Callable[[Object, str], None] | None = None
    """Fill in the times that default to now (object, now), on create and update."""
    warn_early: Callable[[Object], list[str]] | None = None
    """Warnings about an object that is created, which come though it be refused."""
    prepare_create: Callable[[Object, User], None] | None = None
    """Initial status and spec of an object that this user creates."""
    admit: Callable[[S, Kind, Object], None] | None = None
    """Admission on create; sees the other objects."""
    allocate: Callable[[S, Kind, Object, str, bool], None] | None = None
    """Give an object what no other may have too, on create and update (subresource, whether it is a dry run); sees the
    other objects."""
    reword: Callable[[list[FieldError]], list[FieldError]] | None = None
    """What a later release says of the errors that are found, in its words."""
    validate: Callable[[Object], list[FieldError]] | None = None
    """What is wrong with the object."""
    validate_update: Callable[[Object, Object, str], list[FieldError]] | None = None
    """What is wrong with an object that is updated (new, old, subresource), where that is not simply what ``validate``
    and ``compare`` find: a kind may hold against an update only what it brings in."""
    validate_status_update: Callable[[Object, Object], list[FieldError]] | None = None
    """What is wrong with a status that is written (new, old), where that is not what ``validate`` finds: upstream looks
    at no spec then."""
    warn: Callable[[Object, Object | None], list[str]] | None = None
    """Warnings about an object that is written (new, old)."""
    prepare_update: Callable[[Object, Object], None] | None = None
    """What an update keeps of the old object when it does not say it (new, old)."""
    stamp_update: Callable[[Object, Object, str], None] | None = None
    """Times that the server fills in on update (new, old, now)."""
    stamp_create: Callable[[Object, str], None] | None = None
    """Times that the server fills in on create (object, now)."""
    compare: Callable[[Object, Object], list[FieldError]] | None = None
    """What is wrong with the change (new, old)."""
    makes_generation: Callable[[Object, Object], bool] | None = None
    """Whether a change (new, old) makes a new generation though the spec is the same."""
    mark_deleted: Callable[[Object, str], None] | None = None
    """What the first request to delete an object writes into it (object, now), for a kind whose objects always wait for
    what hangs on them."""
    is_held: Callable[[Object], bool] | None = None
    """Whether something besides finalizers and grace keeps a deleted object."""
    check_graceful_delete: Callable[[Object, int | None], int] | None = None
    """Seconds of grace for a deletion that asks for so many; a kind without it knows no grace."""
    after_commit: Callable[[S, Object | None, Object | None], None] | None = None
    """After each commit (old, new)."""
    metadata: MetadataChecks = USUAL
    """What the kind's own validation asks of the metadata."""
    parts: Mapping[str, Callable[[Object, Object], Object]] = {}
    """What a write of a subresource makes of an object (old, new), which leaves the rest as it was."""
    keeps_spec: bool = False
    """Whether its spec stays as it was unless a subresource changes it."""
    shows_grace: bool = True
    """Whether an object that is being deleted shows the seconds of its grace."""
    posts: Mapping[str, str] = {}
    """What answers a POST to a subresource of an object, or ("") a kind that is answered and never stored: the name of
    a part (call, body, request)."""
    orphan_warning: str = ""
    """What the deletion of an object is warned of that does not say what becomes of its dependents."""
    printer: Printer | None = None
    """What makes the cells of ``kubectl get``; None: the name and the age."""
    keeps_status: bool = False
    """A status given on create is kept."""
