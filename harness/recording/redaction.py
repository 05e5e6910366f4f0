"""Other names for namespaces, pods, hosts and what makes pods: the same name everywhere, in words of events as well.

``default`` keeps its name: every cluster has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import convert, to_builtins

from mews.harness.recording.histories import natural
from mews.harness.recording.observations import Observations

_KEPT = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease"})
_NAMED = "A-Za-z0-9_.-"


def redacted(seen: Observations, kept: Iterable[str] = ()) -> Observations:
    """The same with ns-1, pod-1, host-1, workload-1, image-1 and so on. ``kept``: namespaces of the systems."""
    names = _names(seen, {*_KEPT, *kept})
    if not names:
        return seen
    # Between characters of names, and longest first, so that web does not change web-1.
    words = "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
    pattern = re.compile(f"(?<![{_NAMED}])(?:{words})(?![A-Za-z0-9_-]|\\.[A-Za-z0-9])")

    def renamed(text: str) -> str:
        return pattern.sub(lambda found: names[found[0]], text)

    return convert(_mapped(to_builtins(seen), renamed), Observations)


_FIXED = frozenset(
    {"kind", "apiVersion", "phase", "status", "type", "operator", "effect", "answer", "uid", "device", "uuid"}
)
"""Keys whose values are words of Kubernetes or of the chassis, never names of the user's."""


def _mapped(value: Any, renamed: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            renamed(key) if key not in _FIXED and "/" not in key else key: each
            if key in _FIXED and isinstance(each, str)
            else _mapped(each, renamed)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_mapped(each, renamed) for each in value]
    return renamed(value) if isinstance(value, str) else value


def _names(seen: Observations, kept: set[str]) -> dict[str, str]:
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
