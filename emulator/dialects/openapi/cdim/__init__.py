"""The published OpenAPI documents of CDIM, and the patches with which they can be kept (contract cohdi.md 2.5).

The documents are those of project-cdim/docs 7011ed9, release 0.2.0, byte for byte, under the Apache License 2.0, which
lies beside them. They contradict themselves: ``patches.yaml`` lists what is read in another way, each with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from msgspec import Struct, convert

DOCUMENTS = ("configuration-management", "layout-apply")
SHARED = "openapi_schema"
"""What the second document refers to; it becomes a part of it."""


class DocumentPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """One change of a document, at each of the JSON pointers ``at`` (RFC 6901).

    ``set`` replaces or adds a value, ``add`` appends elements to a list, ``remove`` takes a member out, and ``refer``
    changes every reference that begins with the first text to one that begins with the second.
    """

    document: str
    reason: str
    at: tuple[str, ...] = ()
    set: Any = None
    add: list[Any] | None = None
    remove: bool = False
    refer: tuple[str, str] | None = None


class DocumentChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """Prose that contradicts itself, which no schema can say: what is served, and why."""

    document: str
    about: str
    served: str
    reason: str


class Patches(Struct, frozen=True, forbid_unknown_fields=True):
    """All of ``patches.yaml``."""

    patches: tuple[DocumentPatch, ...]
    choices: tuple[DocumentChoice, ...]


def patches() -> Patches:
    """Return the list, in the order in which its patches are made."""
    return convert(_read("patches"), Patches)


def published(document: str) -> dict[str, Any]:
    """Return a document as it was published, its second file put into it; statuses are texts, as in JSON."""
    value = _read(document)
    if document == "layout-apply":
        own = value["components"]["schemas"]
        value["components"]["schemas"] = {**own, **_read(SHARED)["components"]["schemas"]}
    found: dict[str, Any] = _as_json(value)
    return found


def patched(document: str) -> dict[str, Any]:
    """Return the document that the face keeps.

    Raises KeyError for a patch of something that is not there.
    """
    value = published(document)
    for patch in patches().patches:
        if patch.document == document:
            apply(patch, value)
    return value


def apply(patch: DocumentPatch, value: dict[str, Any]) -> None:
    """Make one patch, in place.

    Raises KeyError where it is about something that is not there.
    """
    if patch.refer is not None:
        _refer(value, *patch.refer)
    for pointer in patch.at:
        place, name = _place(value, pointer)
        if patch.remove:
            del place[name]
        elif patch.add is not None:
            place[name] = [*place[name], *patch.add]
        else:
            place[name] = patch.set


def _place(value: Any, pointer: str) -> tuple[Any, Any]:
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in above:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value, int(last) if isinstance(value, list) else last


def _refer(value: Any, old: str, new: str) -> None:
    for place in _objects(value):
        where = place.get("$ref")
        if isinstance(where, str) and where.startswith(old):
            place["$ref"] = new + where.removeprefix(old)


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _objects(each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _as_json(each) for name, each in value.items()}
    return [_as_json(each) for each in value] if isinstance(value, list) else value


def _read(name: str) -> Any:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)
