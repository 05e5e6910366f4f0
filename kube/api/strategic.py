"""Kubernetes' strategic merge patch: lists of objects merge by a key of theirs, steered by ``$`` directives.

Which lists merge, and by what, the caller tells; all others are replaced.
Source: contract apiserver.md section 4; k8s.io/apimachinery/pkg/util/strategicpatch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mews.kube.api.errors import ServerError
from mews.kube.api.objects import clone

PRIMITIVE = ""
"""Marks a merged list of plain values."""

Keys = Mapping[str, str]
"""Dotted path, list elements not counted -> merge key."""


def strategic_merge(target: Mapping[str, Any], patch: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    """Return the object after the patch.

    Raises ``ServerError`` for a missing merge key or an unknown directive, as the API server does.
    """
    return _merge_map(target, patch, keys, "")


def _fail(text: str) -> ServerError:
    return ServerError(text, reason="")


def _merge_map(original: Mapping[str, Any], patch: Mapping[str, Any], keys: Keys, path: str) -> dict[str, Any]:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: clone(value) for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    if directive is not None and directive != "merge":
        raise _fail(f"unknown patch type: {directive} in map: {go_text(patch)}")
    result = dict(original)
    if "$retainKeys" in patch:
        result = {key: value for key, value in result.items() if key in patch["$retainKeys"]}
    orders = {key.partition("/")[2]: value for key, value in patch.items() if key.startswith("$setElementOrder/")}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [item for item in result.get(name) or () if item not in value]
        elif not key.startswith("$"):
            _merge_field(result, key, value, keys, f"{path}.{key}" if path else key)
    for name, order in orders.items():
        if isinstance(result.get(name), list):
            merge_key = keys.get(f"{path}.{name}" if path else name, PRIMITIVE)
            result[name] = _ordered(result[name], order, original.get(name) or [], merge_key)
    return result


def _merge_field(result: dict[str, Any], key: str, value: Any, keys: Keys, path: str) -> None:
    if value is None:
        result.pop(key, None)
    elif isinstance(value, Mapping):
        present = result.get(key)
        result[key] = _merge_map(present if isinstance(present, Mapping) else {}, value, keys, path)
    elif isinstance(value, Sequence) and not isinstance(value, str) and path in keys:
        result[key] = _merge_list(result.get(key) or [], value, keys, path)
    else:
        result[key] = clone(value)


def _merge_list(original: Sequence[Any], patch: Sequence[Any], keys: Keys, path: str) -> list[Any]:
    merge_key = keys[path]
    if merge_key == PRIMITIVE:
        merged = [*original, *(item for item in patch if item not in original)]
        return _ordered(merged, patch, original, merge_key)
    plain: list[Mapping[str, Any]] = []
    gone: list[Any] = []
    replace = False
    for item in patch:
        directive = item.get("$patch") if isinstance(item, Mapping) else None
        if directive == "replace":
            replace = True
        elif directive == "delete":
            gone.append(_key(item, merge_key))
        elif directive is not None and directive != "merge":
            raise _fail(f"unknown patch type: {directive} in map: {go_text(item)}")
        else:
            plain.append(item)
    if replace:
        return [clone(item) for item in plain]
    result = [item for item in original if item.get(merge_key) not in gone]
    for item in plain:
        wanted = _key(item, merge_key)
        place = next((index for index, known in enumerate(result) if known.get(merge_key) == wanted), None)
        if place is None:
            result.append(_merge_map({}, item, keys, path))
        else:
            result[place] = _merge_map(result[place], item, keys, path)
    return _ordered(result, plain, original, merge_key)


def _key(item: Any, merge_key: str) -> Any:
    if not isinstance(item, Mapping) or merge_key not in item:
        raise _fail(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def go_text(value: Any) -> str:
    """Return a value as Go's %v prints it."""
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(go_text(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ordered(merged: Sequence[Any], order: Sequence[Any], server: Sequence[Any], merge_key: str) -> list[Any]:
    """Items of the patch in the patch's order, the others in the server's, interleaved as the server had them; where
    the server knows no order between two, the patch's item comes first."""

    def ident(item: Any) -> Any:
        return item.get(merge_key) if merge_key != PRIMITIVE and isinstance(item, Mapping) else item

    wanted = [ident(item) for item in order]
    known = [ident(item) for item in server]
    mine = sorted((item for item in merged if ident(item) in wanted), key=lambda item: wanted.index(ident(item)))
    others = [item for item in merged if ident(item) not in wanted]
    result: list[Any] = []
    while mine and others:
        left, right = ident(others[0]), ident(mine[0])
        server_first = left in known and right in known and known.index(left) < known.index(right)
        result.append((others if server_first else mine).pop(0))
    return [*result, *mine, *others]
