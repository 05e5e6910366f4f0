"""Sets of field paths, as ``metadata.managedFields`` keeps them (sigs.k8s.io/structured-merge-diff).

A path is a tuple of steps as FieldsV1 writes them: ``f:data``, ``k:{"name":"c"}``, ``v:"x"``. List items that merge by
a key are members themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.strategic import PRIMITIVE, Keys

Path = tuple[str, ...]

_IDENTITY = frozenset({("f:apiVersion",), ("f:kind",), ("f:metadata",), ("f:metadata", "f:name")})
_NEVER_OWNED = (
    ("f:metadata", "f:namespace"),
    ("f:metadata", "f:resourceVersion"),
    ("f:metadata", "f:uid"),
    ("f:metadata", "f:creationTimestamp"),
    ("f:metadata", "f:managedFields"),
    ("f:metadata", "f:generation"),
)


def fields_of(obj: Mapping[str, Any], keys: Keys) -> frozenset[Path]:
    """The paths of everything that an applied object says."""
    return frozenset(_walk(obj, keys, (), "")) - _IDENTITY - frozenset(_NEVER_OWNED)


def _walk(value: Any, keys: Keys, path: Path, dotted: str) -> Iterator[Path]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _walk(item, keys, (*path, f"f:{key}"), f"{dotted}.{key}" if dotted else key)
    elif isinstance(value, list) and dotted in keys:
        for item in value:
            step = _step(item, keys[dotted])
            yield (*path, step)
            if step.startswith("k:"):
                for key, part in item.items():
                    yield from _walk(part, keys, (*path, step, f"f:{key}"), f"{dotted}.{key}")
    else:
        yield path


def _step(item: Any, merge_key: str) -> str:
    if merge_key == PRIMITIVE:
        return "v:" + _compact(item)
    return "k:" + _compact({merge_key: item.get(merge_key)})


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def to_fields_v1(paths: frozenset[Path]) -> dict[str, Any]:
    """The nested form of managedFields."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return tree


def from_fields_v1(tree: Mapping[str, Any], prefix: Path = ()) -> frozenset[Path]:
    """The paths of the nested form."""
    found: set[Path] = set()
    for step, below in tree.items():
        if step == ".":
            found.add(prefix)
        elif not below:
            found.add((*prefix, step))
        else:
            found |= from_fields_v1(below, (*prefix, step))
    return frozenset(found)


def value_at(obj: Any, path: Path) -> Any:
    """What an object holds at a path, None when nothing."""
    for step in path:
        kind, content = step[:2], step[2:]
        if kind == "f:":
            obj = obj.get(content) if isinstance(obj, dict) else None
        else:
            obj = next((item for item in obj or () if _is_item(item, step)), None)
        if obj is None:
            return None
    return obj


def _is_item(item: Any, step: str) -> bool:
    wanted = json.loads(step[2:])
    if step.startswith("v:"):
        return bool(item == wanted)
    return isinstance(item, dict) and all(item.get(key) == value for key, value in wanted.items())


def remove_at(obj: Object, path: Path) -> None:
    """Take out, in place, what is at a path, and maps that this leaves empty."""
    parent = value_at(obj, path[:-1])
    step = path[-1]
    if isinstance(parent, dict):
        parent.pop(step[2:], None)
        if not parent and len(path) > 1:
            remove_at(obj, path[:-1])
    elif isinstance(parent, list):
        parent[:] = [item for item in parent if not _is_item(item, step)]


def shown(path: Path) -> str:
    """``.spec.containers[name="c"].image``, as in messages about conflicts."""
    text = ""
    for step in path:
        content = step[2:]
        if step.startswith("f:"):
            text += f".{content}"
        elif step.startswith("v:"):
            text += f"[={content}]"
        else:
            text += "[" + ",".join(f"{key}={_compact(value)}" for key, value in json.loads(content).items()) + "]"
    return text
