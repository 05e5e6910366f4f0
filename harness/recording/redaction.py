"""Other names for namespaces, pods, hosts and what makes pods: the same name everywhere, in words of events as well.

``default`` keeps its name: every cluster has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import convert, to_builtins

from mews.harness.recording.histories import natural
from mews.harness.recording.observations import ClusterObservations

_KEPT = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease"})


def redacted(seen: ClusterObservations, kept: Iterable[str] = ()) -> ClusterObservations:
    """Return the same with ns-1, pod-1, host-1, workload-1, image-1 and so on. ``kept``: namespaces of the systems."""
    names = _names(seen, {*_KEPT, *kept})
    if not names:
        return seen
    # Longest first, so that web does not change web-1; part of a longer word, such as kubelet-host-7.log, they count.
    words = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    pattern = re.compile(f"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])")

    def renamed(text: str) -> str:
        return pattern.sub(lambda found: names[found[0]], text)

    return convert(_mapped(to_builtins(seen), renamed), ClusterObservations)


_FIXED = frozenset(
    {
        *("kind", "apiVersion", "phase", "status", "type", "operator", "effect", "answer", "uid", "device", "uuid"),
        *("chassis", "port", "schedulerName", "restartPolicy", "key", "topologyKey", "address", "reason"),
        *("resources", "limits", "requests", "allocatable", "capacity", "overhead"),
    }
)
"""Keys whose values are words of Kubernetes or of the chassis, or amounts, never names of the user's."""


def _mapped(value: Any, renamed: Callable[[str], str]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: each
            if key in _FIXED and not isinstance(each, list | tuple) and _is_plain(each)
            else _mapped(each, renamed)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_mapped(each, renamed) for each in value]
    return renamed(value) if isinstance(value, str) else value


def _is_plain(value: Any) -> bool:
    """Return a text, or amounts by resource; not the status of an object, which has messages."""
    if isinstance(value, Mapping):
        return all(isinstance(each, str | int | float) or _is_plain(each) for each in value.values())
    return isinstance(value, str | int | float)


def _names(seen: ClusterObservations, kept: set[str]) -> dict[str, str]:
    by_kind: dict[str, dict[str, None]] = {"ns": {}, "host": {}, "pod": {}, "workload": {}, "image": {}}
    for each in seen.objects:
        kind, namespace, name, _ = each.key
        by_kind["ns"].setdefault(namespace)
        if kind != "Event":
            by_kind[{"Node": "host", "Pod": "pod"}.get(kind, "workload")].setdefault(name)
        for owner in each.obj["metadata"].get("ownerReferences") or ():
            by_kind["workload"].setdefault(str(owner.get("name", "")))
        for image in _images(each.obj):
            by_kind["image"].setdefault(image)
    for trouble in seen.troubles:
        by_kind["host"].setdefault(trouble.host)
    found: dict[str, str] = {}
    for prefix, known in by_kind.items():
        fresh = sorted((name for name in known if name not in kept and name not in found), key=natural)
        found |= {name: f"{prefix}-{number + 1}" for number, name in enumerate(fresh)}
    return found


def _images(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key == "image" and isinstance(each, str):
                yield each
            else:
                yield from _images(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _images(each)
