"""What is asked of metadata (k8s.io/apimachinery/pkg/api/validation/objectmeta.go).

Upstream looks at metadata in several places: each update is checked as a whole and against the old object, and then
once more by the kind's own validation. A kind's ``MetadataChecks`` say what that does; an error is named as often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import limits, names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

Metadata = Mapping[str, Any]
NameTexts = Callable[[Object, str, bool], list[str]]
"""Why a name is none for this object; True for the prefix of names that are generated."""

_OWNER_ORDER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_NO_OWNER = ("v1", "Event")
_STANDARD_FINALIZERS = ("foregroundDeletion", "orphan", "kubernetes")


def _masked(text: str, prefix: bool) -> str:
    """A prefix may end with a dash, since something follows."""
    return f"{text[:-2]}a" if prefix and len(text) > 1 and text.endswith("-") else text


def subdomain_named(_: Object, text: str, prefix: bool) -> list[str]:
    """Named by an RFC 1123 subdomain, as most kinds are."""
    return names.subdomain_texts(_masked(text, prefix))


def label_named(_: Object, text: str, prefix: bool) -> list[str]:
    """Named by an RFC 1123 label."""
    return names.label_texts(_masked(text, prefix))


def dns_1035_named(_: Object, text: str, prefix: bool) -> list[str]:
    """Named by an RFC 1035 label."""
    return names.dns_1035_errors(_masked(text, prefix))


def segment_named(_: Object, text: str, prefix: bool) -> list[str]:
    """Named by anything that may stand between two slashes."""
    return names.segment_texts(text) if not (prefix and text in (".", "..")) else []


def anyhow_named(_obj: Object, _text: str, _prefix: bool) -> list[str]:
    """The kind asks nothing of names."""
    return []


class UpdateCheck(Enum):
    """One thing that the validation of an update looks at."""

    METADATA = "the whole of the metadata (ValidateObjectMeta)"
    METADATA_UPDATE = "what an update may change of the metadata (ValidateObjectMetaUpdate)"
    OBJECT = "the rest of the object"
    CHANGE = "what is changed in the rest of the object"


class MetadataChecks(Struct, frozen=True):
    """What a kind's own validation asks of metadata. ``on_update`` and ``on_status`` are what it looks at, one after
    the other; where they do not say ``OBJECT``, that comes last."""

    name_texts: NameTexts = subdomain_named
    on_create: bool = True
    on_update: tuple[UpdateCheck, ...] = (UpdateCheck.METADATA_UPDATE,)
    on_status: tuple[UpdateCheck, ...] = (UpdateCheck.METADATA_UPDATE,)
    plain_finalizers: bool = False
    """Whether any qualified finalizer will do, where others must be of a domain or be standard ones."""
    status_leaves: Sequence[str] = ()
    """Parts of the metadata that a write of the status does not change."""


USUAL = MetadataChecks()
"""As most kinds are checked."""
CUSTOM = MetadataChecks(plain_finalizers=True)


def created_errors(checks: MetadataChecks, obj: Object) -> list[FieldError]:
    """Return what the kind's own validation finds in a new object's metadata."""
    return _created(checks, obj, _ErrorsByPart(obj["metadata"]))


def new_errors(
    checks: MetadataChecks, obj: Object, own: Callable[[Object], Sequence[FieldError]] | None
) -> list[FieldError]:
    """Return what is wrong with a new object: what the kind's own validation finds, ``own`` of the rest, and where that
    is nothing, what is asked of all kinds' objects."""
    parts = _ErrorsByPart(obj["metadata"])
    return [*_created(checks, obj, parts), *(own(obj) if own is not None else ())] or _whole(
        obj, segment_named, True, parts
    )


def updated_errors(
    sequence: Iterable[UpdateCheck],
    checks: MetadataChecks,
    new: Object,
    old: Object,
    fixed: Sequence[FieldError],
    others: Mapping[UpdateCheck, Callable[[], Sequence[FieldError]]],
) -> list[FieldError]:
    """Return what is wrong with an update, in upstream's order; ``fixed``: what it changes of the server's own metadata
    and may not, ``others``: what the checks that are not about metadata do."""
    parts, changes = _ErrorsByPart(new["metadata"]), fixed
    if old["metadata"].get("deletionTimestamp"):
        changes = [*_late_finalizer_errors(old["metadata"], new["metadata"]), *fixed]
    found = _whole(new, segment_named, True, parts)
    found += changes
    found += parts.of_update(True)
    for check in sequence:
        if check is UpdateCheck.METADATA:
            found += _whole(new, checks.name_texts, checks.plain_finalizers, parts)
        elif check is UpdateCheck.METADATA_UPDATE:
            found += changes
            found += parts.of_update(checks.plain_finalizers)
        else:
            found += others[check]()
    return found


class _ErrorsByPart:
    """What is wrong with the parts of one metadata: looked for once, told as often as upstream looks."""

    __slots__ = ("described", "finalizers", "standard")

    def __init__(self, metadata: Metadata) -> None:
        owners, finalizers = metadata.get("ownerReferences"), metadata.get("finalizers")
        self.described = label_and_annotation_errors(metadata)
        if owners:
            self.described += _owner_errors(owners)
        self.finalizers = list(_finalizer_errors(finalizers)) if finalizers else []
        self.standard = list(_standard(finalizers)) if finalizers else []

    def of_whole(self, plain_finalizers: bool) -> list[FieldError]:
        """Return all that is wrong, in upstream's order."""
        found = self.described + self.finalizers
        return found if plain_finalizers else found + self.standard

    def of_update(self, plain_finalizers: bool) -> list[FieldError]:
        """Return what is looked at once more where metadata are compared with the old ones."""
        return self.described if plain_finalizers else self.described + self.standard


def _created(checks: MetadataChecks, obj: Object, parts: _ErrorsByPart) -> list[FieldError]:
    return _whole(obj, checks.name_texts, checks.plain_finalizers, parts) if checks.on_create else []


def _whole(obj: Object, name_texts: NameTexts, plain_finalizers: bool, parts: _ErrorsByPart) -> list[FieldError]:
    metadata, found = obj["metadata"], list[FieldError]()
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    if prefix and (texts := name_texts(obj, prefix, True)):
        found += _bads("metadata.generateName", prefix, texts)
    if not name:
        found.append(refusals.required("metadata.name", "name or generateName is required"))
    elif texts := name_texts(obj, name, False):
        found += _bads("metadata.name", name, texts)
    if metadata.get("generation", 0) < 0:
        text = "must be greater than or equal to 0"
        found.append(refusals.bad("metadata.generation", metadata["generation"], text))
    return found + parts.of_whole(plain_finalizers)


def _bads(path: str, text: str, errors: Sequence[str]) -> list[FieldError]:
    return [refusals.bad(path, text, error) for error in errors]


def fixed_errors(old: Metadata, new: Metadata) -> list[FieldError]:
    """When an object goes is for the server to say."""
    found: list[FieldError] = []
    if "deletionTimestamp" not in old and new.get("deletionTimestamp"):
        found.append(refusals.bad("metadata.deletionTimestamp", new["deletionTimestamp"], "field is immutable"))
    grace_s = new.get("deletionGracePeriodSeconds")
    if grace_s is not None and grace_s != old.get("deletionGracePeriodSeconds"):
        found.append(refusals.bad("metadata.deletionGracePeriodSeconds", grace_s, "field is immutable"))
    return found


def _late_finalizer_errors(old: Metadata, new: Metadata) -> list[FieldError]:
    known = old.get("finalizers") or []
    fresh = sorted({name for name in new.get("finalizers") or [] if name not in known})
    if not fresh:
        return []
    shown = ", ".join(f'"{name}"' for name in fresh)
    text = "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + shown + "}"
    return [refusals.forbidden_field("metadata.finalizers", text)]


def part_errors(metadata: Metadata, *, plain_finalizers: bool = False) -> list[FieldError]:
    """Return what is wrong with labels, annotations, owners and finalizers."""
    return _ErrorsByPart(metadata).of_whole(plain_finalizers)


def _finalizer_errors(finalizers: Sequence[str]) -> Iterator[FieldError]:
    for name in finalizers:
        yield from names.qualified_errors("metadata.finalizers", name)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        yield refusals.bad("metadata.finalizers", list(finalizers), text)


def standard_finalizer_errors(path: str, name: str) -> list[FieldError]:
    """Return a finalizer that is of no domain and not a standard one."""
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [] if "/" in name or name in _STANDARD_FINALIZERS else [refusals.bad(path, name, text)]


def _standard(finalizers: Sequence[str]) -> Iterator[FieldError]:
    for index, name in enumerate(finalizers):
        yield from standard_finalizer_errors(f"metadata.finalizers[{index}]", name)


def label_and_annotation_errors(metadata: Metadata) -> list[FieldError]:
    """Return what is wrong with labels and annotations."""
    return label_errors(metadata) + annotation_errors(metadata)


def label_errors(metadata: Metadata) -> list[FieldError]:
    """Return what is wrong with labels."""
    found: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        found += names.label_pair_errors("metadata.labels", key, value)
    return found


def annotation_errors(metadata: Metadata) -> list[FieldError]:
    """Return what is wrong with annotations: their case does not count."""
    annotations = metadata.get("annotations")
    if not annotations:
        return []
    found: list[FieldError] = []
    for key in annotations:
        if texts := names.qualified_texts(key.lower()):
            found += _bads("metadata.annotations", key, texts)
    return found + limits.annotation_errors(annotations)


def _owner_errors(owners: Sequence[Metadata]) -> Iterator[FieldError]:
    path, first = "metadata.ownerReferences", ""
    for owner in owners:
        given = owner.get("apiVersion", "")
        if given.count("/") > 1 or not given.rpartition("/")[2]:
            yield refusals.bad(f"{path}.apiVersion", given, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield refusals.bad(f"{path}.{name}", "", "must not be empty")
        if (given.removeprefix("/"), owner.get("kind")) == _NO_OWNER:
            shown = {name: owner[name] for name in _OWNER_ORDER if name in owner}
            yield refusals.bad(path, shown, "/v1, Kind=Event is disallowed from being an owner")
        if not owner.get("controller"):
            continue
        named = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if first:
            text = "Only one reference can have Controller set to true. Found "
            whole = [{name: one[name] for name in _OWNER_ORDER if name in one} for one in owners]
            yield refusals.bad(path, whole, f'{text}"true" in references for {first} and {named}')
        else:
            first = named
