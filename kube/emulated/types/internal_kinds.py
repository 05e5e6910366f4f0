"""Objects as Kubernetes' internal structs, which some of its messages print (``internal_kinds.json``).

Internal structs have no names for JSON, so that Go prints the names of their fields, all of them, in their order: a
message about a volume attachment reads ``{"Attacher":"a","Source":{"PersistentVolumeName":"p",…``. The table is made by
``ci/internal_types.py``; what is not in it (types of apimachinery) is printed as clients see it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

_ZEROS: Mapping[str, Any] = {"string": "", "bool": False, "resource.Quantity": "0", "intstr.IntOrString": 0}
_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")
_SELECTOR = ("matchLabels", "matchExpressions")
_REQUIREMENT = ("key", "operator", "values")
_OF_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Of a pod's spec; internally they are in its security context."""


def internal(value: Any, type_: str) -> Any:
    """``value`` as the internal type (``core.PodSpec``, ``[]core.Volume``) prints it."""
    if value is None:
        return _zero(type_)
    if type_.startswith("[]") and isinstance(value, list):
        return [internal(item, type_[2:]) for item in value]
    if type_.startswith("map[") and isinstance(value, Mapping):
        return {key: internal(value[key], type_.partition("]")[2]) for key in sorted(value)}
    if type_ == "core.PodSpec":
        value = _with_host_fields(value)
    name = type_.removeprefix("*")
    line = _table().get(name, "")
    if line.startswith("="):
        return internal(value, line[1:])
    if line and isinstance(value, Mapping):
        return _struct(value, line)
    return _ordered(value, _SELECTOR if name == "metav1.LabelSelector" else ())


def difference(before: Any, after: Any, type_: str) -> str:
    """Return the two as upstream's diff shows them (apimachinery's util/diff): lines of JSON, three around each
    change."""
    found = [*difflib.unified_diff(_lines(before, type_), _lines(after, type_), n=3)]
    return "".join(found[2:])  # without the names of two files


def _lines(value: Any, type_: str) -> list[str]:
    return f"{_text(internal(value, type_))}\n".splitlines(keepends=True)


def _struct(value: Mapping[str, Any], line: str) -> dict[str, Any]:
    given = {name.lower(): item for name, item in value.items()}
    found: dict[str, Any] = {}
    for field in line.split():
        name, _, type_ = field.partition(":")
        if name:
            found[name] = internal(given.get(name.lower()), type_)
        elif type_ == "metav1.ObjectMeta":
            found.update(_ordered(_metadata(value), _METADATA))
        elif type_ != "metav1.TypeMeta":
            found.update(internal(value, type_))
    return found


def _metadata(value: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value.get("metadata") or {}
    return found


def _with_host_fields(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    context = spec.get("securityContext")
    moved = {name: spec[name] for name in _OF_HOST if name in spec}
    return {**spec, "securityContext": {**moved, **(context or {})}}


def _zero(type_: str) -> Any:
    if type_.startswith(("*", "[]", "map[")) or type_ == "metav1.Time":
        return None
    if type_.startswith("int") and type_ not in _ZEROS:
        return 0
    line = _table().get(type_)
    if line is None:
        return _ZEROS.get(type_, "" if type_ in ("types.UID",) else None)
    return _zero(line[1:]) if line.startswith("=") else _struct({}, line)


def _ordered(value: Any, first: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_ordered(item, _REQUIREMENT) for item in value]
    if isinstance(value, Mapping):
        names = [name for name in first if name in value] + sorted(name for name in value if name not in first)
        return {name: _ordered(value[name], ()) for name in names if value[name] not in (None, {}, [], "")}
    return value


def _text(value: Any) -> str:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


@cache
def _table() -> Mapping[str, str]:
    file = resources.files(__package__).joinpath("internal_kinds.json")
    found: Mapping[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found
