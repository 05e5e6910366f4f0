"""The scale subresource of workloads and of custom kinds that declare it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import selector_text
from mews.kube.emulated.types.custom.go_text import number

_MAX_REPLICAS = 2**31 - 1
_GO = {
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def scale_of(kind: Kind, obj: Object) -> Object:
    """Return the autoscaling/v1 Scale that stands for an object."""
    metadata = obj["metadata"]
    shown = {
        key: metadata[key]
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if key in metadata
    }
    wanted, found, selector = kind.scale_paths
    body: dict[str, Any] = {"replicas": _at(obj, found) or 0}
    text = _selector(obj, selector) if kind.custom else _workload_selector(obj)
    if text:
        body["selector"] = text
    replicas = _at(obj, wanted)
    spec = {} if not replicas and (kind.custom or replicas == 0) else {"replicas": 1 if replicas is None else replicas}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": shown, "spec": spec, "status": body}


def change_of(kind: Kind, replicas: int) -> Object:
    """Return the merge patch of the object that gives it so many replicas."""
    patch: Any = replicas
    for name in reversed(kind.scale_paths[0].split(".")):
        patch = {name: patch}
    changed: Object = patch
    return changed


def scale_errors(obj: Object, paths: tuple[str, str, str]) -> list[FieldError]:
    """Return what is wrong with the scale of a custom object: the numbers wanted and there, and the selector; "" is not
    looked at."""
    found = [error for path in paths[:2] if path for error in _replica_errors(obj, path)]
    value, text = _nested(obj, paths[2]) if paths[2] else ("", "")
    if not text and value is not None and not isinstance(value, str):
        text = f".{paths[2]} accessor error: {go_value(value)} is of the type {_go(value)}, expected string"
    return [*found, refusals.bad(f".{paths[2]}", "", text)] if text else found


def _nested(obj: Object, path: str) -> tuple[Any, str]:
    """Return the value at a path, and why there can be none."""
    value: Any = obj
    walked = ""
    for name in path.split("."):
        walked = f"{walked}.{name}"
        if not isinstance(value, Mapping):
            kind = "map[string]interface{}"
            return None, f"{walked} accessor error: {go_value(value)} is of the type {_go(value)}, expected {kind}"
        value = value.get(name)
        if value is None:
            return None, ""
    return value, ""


def _replica_errors(obj: Object, path: str) -> list[FieldError]:
    value, text = _nested(obj, path)
    if text:
        return [refusals.bad(f".{path}", 0, text)]
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        text = f".{path} accessor error: {go_value(value)} is of the type {_go(value)}, expected int64"
        return [refusals.bad(f".{path}", 0, text)]
    if value > _MAX_REPLICAS:
        return [refusals.bad(f".{path}", value, f"should be less than or equal to {_MAX_REPLICAS}")]
    return [refusals.bad(f".{path}", value, "should be a non-negative integer")] if value < 0 else []


def go_value(value: Any) -> str:
    """Return a value as Go's ``%v`` prints it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(item) for item in value)}]"
    return "<nil>" if value is None else number(value) if isinstance(value, (int, float)) else str(value)


def _go(value: Any) -> str:
    return _GO.get(type(value), type(value).__name__)


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _selector(obj: Object, path: str) -> str:
    return str(_at(obj, path) or "") if path else ""


def _workload_selector(obj: Object) -> str:
    """Return that of a replication controller a map of labels, else a LabelSelector."""
    selector = (obj.get("spec") or {}).get("selector") or {}
    if not ("matchLabels" in selector or "matchExpressions" in selector):
        selector = {"matchLabels": selector}
    text = selector_text(selector)
    return "" if text == "<none>" else text
