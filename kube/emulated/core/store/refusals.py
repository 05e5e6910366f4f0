"""The API server's refusals, word for word (contract apiserver.md section 2)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mews.kube.api.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerError,
)
from mews.kube.api.quoted_text import quoted

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.kinds import Kind

_REASONS = {
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotFound": "Not found",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "InternalError": "Internal error",
}


class FieldError(Struct, frozen=True):
    """One thing wrong with an object: where, which kind of wrong, and the rest of the sentence."""

    path: str
    reason: str
    text: str = ""

    def message(self) -> str:
        """Return it without the path, as in ``details.causes``."""
        label = _REASONS[self.reason]
        return f"{label}: {self.text}" if self.text else label

    def __str__(self) -> str:
        return f"{self.path}: {self.message()}"


def shown(value: Any) -> str:
    """Return a value as Go prints it in field errors: strings quoted, the rest as JSON."""
    return quoted(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def bad(path: str, value: Any, text: str) -> FieldError:
    """The field has a value that is not valid, and ``text`` says what would be."""
    return FieldError(path, "FieldValueInvalid", f"{shown(value)}: {text}")


def required(path: str, text: str = "") -> FieldError:
    """The field is missing."""
    return FieldError(path, "FieldValueRequired", text)


def forbidden_field(path: str, text: str) -> FieldError:
    """The field may not be set here."""
    return FieldError(path, "FieldValueForbidden", text)


def unsupported(path: str, value: Any, allowed: Sequence[str]) -> FieldError:
    """The field has a value that is not among those allowed."""
    options = ", ".join(shown(option) for option in allowed)
    return FieldError(path, "FieldValueNotSupported", f"{shown(value)}: supported values: {options}")


def duplicate(path: str, value: Any) -> FieldError:
    """Return the field repeats a value that must be unique."""
    return FieldError(path, "FieldValueDuplicate", shown(value))


def invalid(kind: Kind, name: str, errors: Sequence[FieldError], *, by_plural: bool = False) -> InvalidError:
    """422 with all that is wrong; the generic registry names the plural where the others name the Kind."""
    if kind.storage[0] != kind.resource.group:  # checked in the form in which it is stored
        named, group = kind.resource.kind, ""
    else:
        named, group = kind.qualified if by_plural else kind.qualified_kind, kind.resource.group
    texts = list(dict.fromkeys(str(error) for error in errors))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {
        "name": name,
        "group": group,
        "kind": kind.plural if by_plural else kind.resource.kind,
    }
    details["causes"] = [{"reason": error.reason, "message": error.message(), "field": error.path} for error in errors]
    return InvalidError(f'{named} "{name}" is invalid: {text}', details=_lean(details))


def details_of(kind: Kind, name: str = "") -> dict[str, Any]:
    """details of a refusal that names a resource: kind is the plural."""
    return _lean({"name": name, "group": kind.resource.group, "kind": kind.plural})


def unknown_resource() -> NotFoundError:
    """404: no such resource in a group that is served."""
    return NotFoundError("the server could not find the requested resource", details={})


def wrong_method() -> ApiError:
    """405: the resource does not know this method."""
    return ApiError(
        "the server does not allow this method on the requested resource",
        code=405,
        reason="MethodNotAllowed",
        details={},
    )


def missing(kind: Kind, name: str) -> NotFoundError:
    """404: there is no object of that name."""
    return NotFoundError(f'{kind.qualified} "{name}" not found', details=details_of(kind, name))


def exists(kind: Kind, name: str, *, deleting: bool = False) -> AlreadyExistsError:
    """409: there is an object of that name already."""
    text = f'{kind.qualified} "{name}" already exists'
    return AlreadyExistsError(f"object is being deleted: {text}" if deleting else text, details=details_of(kind, name))


def stale(kind: Kind, name: str) -> ConflictError:
    """409: the resourceVersion in the request is not the stored one."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, text)


def conflict(kind: Kind, name: str, text: str, *, about: str = "") -> ConflictError:
    """409 with a reason of its own; ``about`` replaces the plural (``pods/binding``)."""
    details = details_of(kind, name)
    if about:
        details["kind"] = about
    return ConflictError(
        f'Operation cannot be fulfilled on {about or kind.qualified} "{name}": {text}', details=details
    )


def precondition(kind: Kind, name: str, *, what: str, asked: str, stored: str) -> ConflictError:
    """409: a deletion's precondition fails. Unlike others it names the Kind."""
    tail = (
        ". The object might have been deleted and then recreated"
        if what == "UID"
        else ". The object might have been modified"
    )
    text = f"the {what} in the precondition ({asked}) does not match the {what} in record ({stored}){tail}"
    details = _lean({"name": name, "group": kind.resource.group, "kind": kind.resource.kind})
    return ConflictError(f'Operation cannot be fulfilled on {kind.qualified_kind} "{name}": {text}', details=details)


def forbidden(kind: Kind, name: str, text: str, *, causes: Sequence[dict[str, str]] = ()) -> ForbiddenError:
    """403: admission refuses the request."""
    details = details_of(kind, name)
    if causes:
        details["causes"] = list(causes)
    return ForbiddenError(f'{kind.qualified} "{name}" is forbidden: {text}', details=details)


def bad_version(text: str) -> BadRequestError:
    """400: a resourceVersion that is not a number."""
    return BadRequestError(f"invalid resource version: {version_error(text)}")


def future_version(wanted: int, current: int) -> ApiError:
    """504: a resourceVersion that is not there yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        code=504,
        reason="Timeout",
        details={"causes": [cause], "retryAfterSeconds": 1},
    )


def version_error(text: str) -> FieldError:
    """Return what is wrong with a resourceVersion that is not a number."""
    reason = "value out of range" if text.isdecimal() else "invalid syntax"
    return bad("resourceVersion", text, f"strconv.ParseUint: parsing {shown(text)}: {reason}")


def version_on_create() -> ServerError:
    """500, without a reason, as upstream."""
    return ServerError("resourceVersion should not be set on objects to be created", reason="")


def names_differ(name: str, url_name: str) -> BadRequestError:
    """400: the name in the body is not the one in the path."""
    return BadRequestError(f"the name of the object ({name}) does not match the name on the URL ({url_name})")


def namespaces_differ() -> BadRequestError:
    """400: likewise for the namespace."""
    return BadRequestError("the namespace of the provided object does not match the namespace sent on the request")


def _lean(details: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in details.items() if value}
