"""JSON patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic merge patch.

Nothing here changes its arguments; results may share parts with them. Errors are ``ApiError`` worded as the API server
does (contract apiserver.md section 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mews.kube.api.errors import ApiError, BadRequestError, InvalidError
from mews.kube.api.objects import SCALARS, clone

MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
"""Bytes of JSON that the copies of one patch may come to (upstream apiserver/pkg/server/config.go,
JSONPatchMaxCopyBytes): a copy of a list into itself doubles it, and thirty of them would fill any memory."""


def merge_patch(target: Any, patch: Any) -> Any:
    """Merge patch: null deletes, maps merge, all else replaces."""
    if type(patch) is not dict and not isinstance(patch, Mapping):
        return clone(patch)
    result = dict(target) if type(target) is dict or isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif type(value) in SCALARS:
            result[key] = value
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Any, operations: Any) -> Any:
    """Apply the operations in order.

    Raises ``BadRequestError`` when they are not a list, ``InvalidError`` when one fails.
    """
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        raise BadRequestError(
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MOST_OPERATIONS:
        text = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise ApiError(f"Request entity too large: {text}", code=413, reason="RequestEntityTooLarge")
    document = clone(target)
    left = MOST_COPIED
    for operation in operations:
        if not isinstance(operation, Mapping):
            word = "string" if isinstance(operation, str) else "array" if isinstance(operation, list) else "number"
            raise BadRequestError(
                f"error decoding patch: json: cannot unmarshal {word} into Go value of type handlers.jsonPatchOp"
            )
        if operation.get("op") == "copy":
            left -= _copied_bytes(document, operation)
            if left < 0:
                raise _refused()
        document = _operate(document, operation)
    return document


def _copied_bytes(document: Any, operation: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode(_look(document, _pointer(str(operation.get("from", ""))))))


def _refused() -> InvalidError:
    return InvalidError("the server rejected our request due to an error in our request", details={})


def _operate(document: Any, operation: Mapping[str, Any]) -> Any:
    verb = operation.get("op")
    path = operation.get("path")
    if not isinstance(path, str):
        raise _refused()
    match verb:
        case "add" | "replace":
            return _place(document, _pointer(path), clone(operation.get("value")), insert=verb == "add")
        case "remove":
            return _remove(document, _pointer(path))
        case "test":
            if _look(document, _pointer(path), missing_is_null=True) != operation.get("value"):
                raise _refused()
            return document
        case "copy" | "move":
            source = _pointer(str(operation.get("from", "")))
            value = _look(document, source)
            if verb == "copy":
                value = clone(value)
            else:
                document = _remove(document, source)
            return _place(document, _pointer(path), value, insert=True)
    raise _refused()


def _pointer(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise _refused()
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _index(items: Sequence[Any], part: str, *, end: int) -> int:
    try:
        index = int(part)
    except ValueError:
        raise _refused() from None
    if index < 0:
        index += len(items)
    if not 0 <= index < end:
        raise _refused()
    return index


def _look(document: Any, parts: Sequence[str], *, missing_is_null: bool = False) -> Any:
    for number, part in enumerate(parts):
        if isinstance(document, list):
            document = document[_index(document, part, end=len(document))]
        elif isinstance(document, dict) and part in document:
            document = document[part]
        elif missing_is_null and isinstance(document, dict) and number == len(parts) - 1:
            return None
        else:
            raise _refused()
    return document


def _place(document: Any, parts: Sequence[str], value: Any, *, insert: bool) -> Any:
    if not parts:
        return value
    parent, last = _look(document, parts[:-1]), parts[-1]
    if isinstance(parent, dict):
        parent[last] = value  # the API server's library lets replace add a missing key
    elif isinstance(parent, list) and insert:
        parent.insert(len(parent) if last == "-" else _index(parent, last, end=len(parent) + 1), value)
    elif isinstance(parent, list):
        parent[_index(parent, last, end=len(parent))] = value
    else:
        raise _refused()
    return document


def _remove(document: Any, parts: Sequence[str]) -> Any:
    if not parts:
        raise _refused()
    parent, last = _look(document, parts[:-1]), parts[-1]
    if isinstance(parent, dict) and last in parent:
        del parent[last]
    elif isinstance(parent, list):
        del parent[_index(parent, last, end=len(parent))]
    else:
        raise _refused()
    return document
