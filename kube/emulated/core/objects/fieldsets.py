"""Sets of field paths, as ``metadata.managedFields`` keeps them (sigs.k8s.io/structured-merge-diff).

A path is a tuple of steps as FieldsV1 writes them: ``f:data``, ``k:{"name":"c"}``, ``v:"x"``. List items that merge by
a key are members themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.emulated.core.objects.typed import ANY, SchemaShape, shape_at, shown_step

Path = tuple[str, ...]
Paths = frozenset[Path]
_SETS_KNOWN = 1024

_NEVER_OWNED = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            (
                "name",
                "namespace",
                "resourceVersion",
                "uid",
                "creationTimestamp",
                "managedFields",
                "generation",
                "selfLink",
            )
        )
    }
)


def owned(paths: frozenset[Path] | set[Path], *, subresource: str = "", status: bool = False) -> Paths:
    """Return those that a manager may own: not the server's metadata, and of kinds with a status subresource either the
    status or the rest."""
    kept = frozenset(paths) - _NEVER_OWNED
    if subresource == "status":
        return frozenset(path for path in kept if path[0] in ("f:status", "f:metadata"))
    return frozenset(path for path in kept if path[0] != "f:status") if status else kept


def applied_fields(value: Any, shape: SchemaShape, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of everything that an applied object says."""
    shape = shape_at(shape, value)
    if shape.form == "map" and not shape.whole and isinstance(value, Mapping) and value:
        for name, below in value.items():
            if shape.open:
                yield (*path, f"f:{name}")
            yield from applied_fields(below, shape.member(name) or ANY, (*path, f"f:{name}"))
    elif shape.form in ("list", "set") and not shape.whole and isinstance(value, list):
        assert shape.item is not None
        for item in value:
            place = (*path, shape.key_of(item))
            yield place
            if shape.form == "list" and isinstance(item, Mapping) and item:
                yield from applied_fields(item, shape.item(), place)
    else:
        yield path


class FieldChanges(Struct):
    """What became of the fields of an object."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


_ABSENT = object()


def difference(old: Any, new: Any, shape: SchemaShape) -> FieldChanges:
    """Return the fields that were added, modified and removed between two objects."""
    found = FieldChanges()
    _compare(old, new, shape, (), found)
    return found


def _compare(old: Any, new: Any, shape: SchemaShape, path: Path, found: FieldChanges) -> None:
    if old is new or (old is not _ABSENT and old == new):
        return
    if old is _ABSENT and new is not None:
        _add_all(new, shape, path, found.added)
        return
    shape = shape_at(shape, old if new is _ABSENT or new is None else new)
    before, after = _members(old, shape), _members(new, shape)
    if before is None or after is None:
        _compare_whole(old, new, path, found)
        return
    if old is _ABSENT:
        found.added.add(path)
    elif new is _ABSENT:
        found.removed.add(path)
    for step in {**before, **after}:
        inner = _member_shape(shape, step)
        _compare(before.get(step, _ABSENT), after.get(step, _ABSENT), inner, (*path, step), found)


def _add_all(new: Any, shape: SchemaShape, path: Path, added: set[Path]) -> None:
    """All paths of a value where there was none: most of what a creation compares."""
    added.add(path)
    shape = shape_at(shape, new)
    if shape.whole:
        return
    if shape.form == "map" and isinstance(new, Mapping):
        for name, below in new.items():
            inner, place = shape.member(name) or ANY, (*path, f"f:{name}")
            if below is None:
                _compare(_ABSENT, None, inner, place, FieldChanges(added))
            elif inner.form == "scalar" or inner.whole:
                added.add(place)
            else:
                _add_all(below, inner, place, added)
    elif shape.form in ("list", "set") and isinstance(new, list):
        for step, item in {shape.key_of(item): item for item in new}.items():
            _compare(_ABSENT, item, _member_shape(shape, step), (*path, step), FieldChanges(added))


def _compare_whole(old: Any, new: Any, path: Path, found: FieldChanges) -> None:
    if old is _ABSENT or (old is None and new is not _ABSENT):
        if new is not None:
            found.added.add(path)
    elif new is _ABSENT or new is None:
        if old is not None:
            found.removed.add(path)
    elif old != new:
        found.modified.add(path)


def _members(value: Any, shape: SchemaShape) -> dict[str, Any] | None:
    """Return the members of a value by their steps; None for a value that is compared as a whole."""
    if shape.whole:
        return None
    if value is _ABSENT or value is None:
        return {}
    if shape.form == "map" and isinstance(value, Mapping):
        return {f"f:{name}": below for name, below in value.items()}
    if shape.form in ("list", "set") and isinstance(value, list):
        return {shape.key_of(item): item for item in value}
    return None


def _member_shape(shape: SchemaShape, step: str) -> SchemaShape:
    if step.startswith("f:"):
        return shape.member(step[2:]) or ANY
    if step.startswith("v:"):
        return SchemaShape("scalar")
    assert shape.item is not None
    return shape.item()


@lru_cache(maxsize=_SETS_KNOWN)
def to_fields_v1(paths: Paths) -> dict[str, Any]:
    """Return the nested form of managedFields. Objects that are alike share it, as thousands of pods and events do:
    like all that is stored it is never changed."""
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


def from_fields_v1(tree: Mapping[str, Any], prefix: Path = ()) -> Paths:
    """Return the paths of the nested form."""
    found: set[Path] = set()
    for step, below in tree.items():
        if step == ".":
            found.add(prefix)
        elif not below:
            found.add((*prefix, step))
        else:
            found |= from_fields_v1(below, (*prefix, step))
    return frozenset(found)


def merged(live: Any, config: Any, shape: SchemaShape) -> Any:
    """Return the live value with all that an applied one says."""
    shape = shape_at(shape, config)
    if shape.whole or live is None or config is None:
        return config
    if shape.form == "map" and isinstance(live, Mapping) and isinstance(config, Mapping):
        merged_fields = {
            name: merged(live.get(name), below, shape.member(name) or ANY) for name, below in config.items()
        }
        return {**live, **merged_fields}
    if shape.form in ("list", "set") and isinstance(live, list) and isinstance(config, list):
        return _merged_list(live, config, shape)
    return config


def _merged_list(live: list[Any], config: list[Any], shape: SchemaShape) -> list[Any]:
    """Applied items in their order, the others where they were among them."""
    assert shape.item is not None
    wanted = {shape.key_of(item): item for item in config}
    known = {shape.key_of(item): item for item in live}
    inner = shape.item()
    result: list[Any] = []
    rest = list(wanted)
    for step, item in known.items():
        if step not in wanted:
            result.append(item)
        else:
            while rest and (first := rest.pop(0)):
                result.append(merged(known.get(first), wanted[first], inner) if first in known else wanted[first])
                if first == step:
                    break
    result += [merged(known.get(step), wanted[step], inner) for step in rest]
    return result


def with_named_fields(paths: Paths, shape: SchemaShape) -> Paths:
    """Return it with the declared fields on the way to each path; members of open maps and items of lists are no
    declared fields (fieldpath.Set.EnsureNamedFieldsAreMembers)."""
    found = set(paths)
    for path in paths:
        at = shape
        for place, step in enumerate(path[:-1]):
            if at.form == "map" and not at.open and step.startswith("f:"):
                found.add(path[: place + 1])
            if at.form not in ("map", "list"):
                break
            at = _member_shape(at, step)
    return frozenset(found)


def left_out(last: Paths, managed: Paths, shape: SchemaShape) -> list[Path]:
    """Return what an applier takes back: of the paths that it ``last`` had those that nobody has ``managed`` since, and
    those below one that goes (structured-merge-diff, Updater.prune). The shorter ones first."""
    last, managed = with_named_fields(last, shape), with_named_fields(managed, shape)
    found = []
    for path in sorted(last, key=len):
        first = next(size for size in range(1, len(path) + 1) if path[:size] in last)
        if any(path[:size] not in managed for size in range(first, len(path) + 1)):
            found.append(path)
    return found


def remove_at(obj: Object, path: Path, shape: SchemaShape) -> None:
    """Take out, in place, what is at a path."""
    steps: list[tuple[Any, str, SchemaShape]] = []
    value: Any = obj
    for step in path:
        shape = shape_at(shape, value)
        steps.append((value, step, shape))
        members = _members(value, shape)
        if members is None or step not in members:
            return
        value, shape = members[step], _member_shape(shape, step)
    parent, step, shape = steps[-1]
    if isinstance(parent, dict):
        parent.pop(step[2:], None)
    elif isinstance(parent, list):
        parent[:] = [item for item in parent if shape.key_of(item) != step]


def shown(path: Path) -> str:
    """``.spec.containers[name="c"].image``, as in messages about conflicts."""
    return "".join(shown_step(step) for step in path)


def set_order(path: Path) -> list[tuple[Any, ...]]:
    """Return the order in which upstream walks a set of paths (fieldpath.Set): at each level first what ends there,
    then what goes deeper; fields by name before items by their keys' values before values."""
    last = len(path) - 1
    return [(place < last, *_step_order(step)) for place, step in enumerate(path)]


def _step_order(step: str) -> tuple[Any, ...]:
    """Within one level (fieldpath.PathElement.Less)."""
    text = step[2:]
    if step.startswith("f:"):
        return (0, text)
    value = json.loads(text)
    if step.startswith("k:"):
        return (1, [(name, _value_order(value[name])) for name in sorted(value)])
    return (2, _value_order(value))


def _value_order(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, json.dumps(value, sort_keys=True))
