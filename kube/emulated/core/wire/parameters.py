"""Query parameters and bodies that steer a request (contract apiserver.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import BadRequestError, InvalidError, ServerError
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.json_errors import not_a_struct
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.wire.negotiation import decode
from mews.kube.emulated.types.strictness import json_type

_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_LONGEST_MANAGER = 128
_MATCHES = ("Exact", "NotOlderThan")
_PROPAGATION = ("Foreground", "Background", "Orphan")

Query = Mapping[str, str]


def options_error(name: str, error: FieldError) -> InvalidError:
    """422 for an option of the request itself."""
    return options_errors(name, [error])


def options_errors(name: str, errors: Sequence[FieldError]) -> InvalidError:
    """422 for several options at once."""
    causes = [{"reason": error.reason, "message": error.message(), "field": error.path} for error in errors]
    text = str(errors[0]) if len(errors) == 1 else f"[{', '.join(map(str, errors))}]"
    return InvalidError(
        f'{name}.meta.k8s.io "" is invalid: {text}', details={"group": "meta.k8s.io", "kind": name, "causes": causes}
    )


def check_list_options(query: Query) -> None:
    """Check the options of a list.

    Raises ``BadRequestError`` for what cannot be read, ``InvalidError`` for what does not go together.
    """
    match, errors = query.get("resourceVersionMatch", ""), []
    number(query, "timeoutSeconds")
    if match and not query.get("resourceVersion"):
        errors.append(_unmatched("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        errors.append(_unmatched("resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("", *_MATCHES):
        errors.append(refusals.unsupported("resourceVersionMatch", match, (*_MATCHES, "")))
    if match == "Exact" and query.get("resourceVersion") == "0":
        errors.append(_unmatched('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        errors.append(refusals.forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise options_errors("ListOptions", errors)


def check_watch_options(query: Query) -> None:
    """Check the options of a watch.

    Raises ``InvalidError`` for what does not go together.
    """
    match, errors = query.get("resourceVersionMatch", ""), []
    if "sendInitialEvents" in query and match != "NotOlderThan":
        errors.append(_unmatched("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and "sendInitialEvents" not in query:
        text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(_unmatched(text))
    if match not in ("", "NotOlderThan"):
        errors.append(refusals.unsupported("resourceVersionMatch", match, ("NotOlderThan",)))
    if query.get("continue"):
        errors.append(_unmatched("resourceVersionMatch is forbidden when continue is provided"))
    if errors:
        raise options_errors("ListOptions", errors)


def _unmatched(text: str) -> FieldError:
    return refusals.forbidden_field("resourceVersionMatch", text)


def write_request(query: Query, *, user: User, user_agent: str, options: str) -> WriteRequest:
    """Read from a request who writes, and how; 422 for a value that is not allowed."""
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise options_error(
            options, FieldError("dryRun", "FieldValueNotSupported", f'["{dry_run}"]: supported values: "All"')
        )
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATION:
        raise options_error(options, refusals.unsupported("fieldValidation", validation, _FIELD_VALIDATION))
    if len(query.get("fieldManager", "")) > _LONGEST_MANAGER:
        text = f"may not be more than {_LONGEST_MANAGER} bytes"
        raise options_error(options, FieldError("fieldManager", "FieldValueTooLong", text))
    for position, character in enumerate(query.get("fieldManager", "")):
        if not character.isprintable():
            text = f"invalid character U+{ord(character):04X} (at position {position})"
            raise options_error(options, refusals.bad("fieldManager", query["fieldManager"], text))
    # Bytes that are no UTF-8 came as lone surrogates; Go's JSON writes the replacement character for them.
    readable = user_agent.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    manager = query.get("fieldManager") or readable.partition("/")[0]
    return WriteRequest(user, manager, dry_run == "All", validation or "Warn", answers={})


def delete_options(query: Query, body: Any) -> DeleteOptions:
    """Options of a deletion, from the body or else the query."""
    given = body if isinstance(body, Mapping) else {}
    _check_shape(given)
    dry_run = list(given.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else []))
    if dry_run not in ([], ["All"]):
        error = FieldError("dryRun", "FieldValueNotSupported", f'{refusals.shown(dry_run)}: supported values: "All"')
        raise options_error("DeleteOptions", error)
    grace = given.get("gracePeriodSeconds", number(query, "gracePeriodSeconds"))
    propagation = given.get("propagationPolicy") or query.get("propagationPolicy") or None
    orphan = given.get("orphanDependents")
    if propagation is not None and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        raise options_error("DeleteOptions", refusals.bad("propagationPolicy", propagation, text))
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    if propagation is not None and propagation not in _PROPAGATION:
        error = refusals.unsupported("propagationPolicy", propagation, (*_PROPAGATION, "nil"))
        raise options_error("DeleteOptions", error)
    wanted = given.get("preconditions") or {}
    preconditions = Preconditions(wanted.get("uid"), wanted.get("resourceVersion"))
    return DeleteOptions(None if grace is None else int(grace), preconditions, propagation)


_DELETE_OPTIONS = {
    "gracePeriodSeconds": ("int64", "number"),
    "preconditions": ("v1.Preconditions", "object"),
    "orphanDependents": ("bool", "bool"),
    "propagationPolicy": ("v1.DeletionPropagation", "string"),
    "dryRun": ("[]string", "array"),
}
"""Go's type and JSON's, by field."""


def _check_shape(given: Mapping[str, Any]) -> None:
    """500, as upstream, for a body that is no DeleteOptions."""
    if given.get("kind", "DeleteOptions") != "DeleteOptions":
        version = given.get("apiVersion") or "meta.k8s.io/v1"
        text = f'no kind "{given["kind"]}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:110"'
        raise ServerError(text, reason="")
    for name, (go_type, wanted) in _DELETE_OPTIONS.items():
        value = given.get(name)
        if (value is not None and json_type(value) != wanted) or isinstance(value, float):
            text = (
                f"json: cannot unmarshal {json_type(value)} into Go struct field DeleteOptions.{name} of type {go_type}"
            )
            raise ServerError(text, reason="")


def read_delete_options(raw: bytes, content_type: str) -> Any:
    """Return the body of a deletion, None when it is empty; 500, as upstream, for what cannot be read."""
    if not raw:
        return None
    try:
        body = decode(raw, content_type)
    except BadRequestError as error:
        raise ServerError(error.message, reason="") from None
    if not isinstance(body, Mapping):
        raise ServerError(f"couldn't get version/kind; json parse error: {not_a_struct(body)}", reason="")
    return body


def is_dry(query: Query, body: Any) -> bool:
    """Return whether a deletion is to be tried only."""
    return query.get("dryRun") == "All" or (isinstance(body, Mapping) and "All" in (body.get("dryRun") or ()))


def number(query: Query, name: str) -> int | None:
    """Return a whole number among the parameters, None when absent; 400 for anything else."""
    text = query.get(name)
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if not -(1 << 63) <= value < 1 << 63:
        raise BadRequestError(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def flag(query: Query, name: str) -> bool:
    """Return a boolean among the parameters: all but ``false`` and ``0`` counts as true."""
    return query.get(name, "false").lower() not in ("false", "0")
