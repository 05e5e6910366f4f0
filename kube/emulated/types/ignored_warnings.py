"""What an object asks for that is stored and ignored: one line for each reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from mews.kube.emulated.types.gotypes import Field, struct
from mews.kube.emulated.types.ignored_fields import ACTING, CONTAINERS_ONLY, IGNORED, IGNORED_KINDS, POD, PROCESSES_ONLY

_TOKEN_VOLUME = "kube-api-access-"
_CONTAINERS_ONLY = "acts in containers of the Docker engine alone (unknownImages: container)"
_PROCESSES_ONLY = "acts in processes alone"
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Pod": (),
    "CronJob": ("jobTemplate", "spec", "template"),
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), ("template",)
    ),
}
"""Kind -> the way from its spec to its pods' template."""


def ignored_warnings(obj: Mapping[str, Any], *, containers: bool = False) -> list[str]:
    """Return one line for each reason why something of an object is ignored here, with the fields it concerns.

    ``obj`` has apiVersion and kind. ``containers``: images run in containers of the Docker engine.
    """
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    kind = str(obj.get("kind", ""))
    why = IGNORED_KINDS.get((group, kind))
    if why is not None:
        return [f"{kind} is stored and ignored here: {why}"]
    if kind not in _TEMPLATES or group not in ("", "apps", "batch"):
        return []
    found: dict[str, list[str]] = {}
    for place, reason in _of_template(obj, _TEMPLATES[kind], containers):
        found.setdefault(reason, []).append(place)
    return [f"{', '.join(places)}: ignored here: {reason}" for reason, places in found.items()]


def _of_template(obj: Mapping[str, Any], way: tuple[str, ...], containers: bool) -> Iterator[tuple[str, str]]:
    part, path = obj.get("spec"), "spec"
    for word in (*way, *(("spec",) if way else ())):
        part, path = (part.get(word) if isinstance(part, Mapping) else None), f"{path}.{word}"
    yield from _ignored(POD, part, path, containers)


def _ignored(ref: str, value: Any, path: str, containers: bool) -> Iterator[tuple[str, str]]:
    """(place, reason) of each field that is ignored; bodies that are no objects are the API server's to refuse."""
    if not isinstance(value, Mapping) or str(value.get("name", "")).startswith(_TOKEN_VOLUME):
        return
    reasons, fields = reasons_of(ref), struct(ref).fields
    for name, given in value.items():
        field = fields.get(name)
        if field is None or not _is_given(field, given):
            continue
        reason = reasons.get(name)
        if reason == (_CONTAINERS_ONLY if containers else _PROCESSES_ONLY):
            reason = None
        if reason is not None:
            yield f"{path}.{name}", reason
        else:
            yield from _below(field, given, f"{path}.{name}", containers)


def _is_given(field: Field, given: Any) -> bool:
    """Return whether a field has another value than where it is left out."""
    if field.name == "volumeMounts" and isinstance(given, list):
        return any(not str(mount.get("name", "")).startswith(_TOKEN_VOLUME) for mount in given)
    if field.name == "enableServiceLinks":
        return False  # what it adds by default is missing; without it nothing is
    if field.name == "hostUsers":
        return given is False
    return bool(given) and given != field.default


def _below(field: Field, given: Any, path: str, containers: bool) -> Iterator[tuple[str, str]]:
    ref = field.type.removeprefix("[]")
    if not _is_struct(ref):
        return
    if ref == field.type:
        yield from _ignored(ref, given, path, containers)
    elif isinstance(given, list):
        for index, each in enumerate(given):
            yield from _ignored(ref, each, f"{path}[{index}]", containers)


def _is_struct(ref: str) -> bool:
    return ref.startswith("core/")


@cache
def reasons_of(ref: str) -> Mapping[str, str]:
    """Return the fields of a struct that are ignored, or that act in containers or processes alone -> why."""
    found = {name: row.why for row in IGNORED if row.struct == ref for name in row.fields.split()}
    found |= dict.fromkeys(CONTAINERS_ONLY.get(ref, "").split(), _CONTAINERS_ONLY)
    return found | dict.fromkeys(PROCESSES_ONLY.get(ref, "").split(), _PROCESSES_ONLY)


@cache
def reached() -> tuple[str, ...]:
    """Return every struct of a pod's spec that is reached by fields that act."""
    found, left = {POD: None}, [POD]
    while left:
        ref = left.pop()
        acting = ACTING.get(ref)
        for name, field in struct(ref).fields.items():
            below = field.type.removeprefix("[]").removeprefix("{}")
            is_followed = acting is None or name in acting.split()
            if is_followed and _is_struct(below) and below not in found:
                found[below] = None
                left.append(below)
    return tuple(found)
