"""Fields that are dropped while their feature gate is off (dropDisabledFields of pkg/api and pkg/registry).

Which they are is data of the release (``fields.json``: the featureGate marks of the published types). No stored object
can hold such a field already, since the gates of a cluster stay what they were when it began.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct as Value

from mews.kube.emulated.types.gotypes import Struct, plain_ref, struct
from mews.kube.releases.feature_gates import FeatureGates
from mews.kube.releases.release_data import merged

Drop = Callable[[Any, FeatureGates], None]
"""What is dropped of a struct beside the fields themselves."""


class _Part(Value, frozen=True):
    """What to do with a struct: fields to drop, fields to look into (with their wraps), what else is dropped."""

    names: tuple[str, ...]
    below: list[tuple[str, str, str]]
    more: Drop | None


def dropper(root: Struct, gates: FeatureGates, others: Mapping[str, Drop]) -> Callable[[Any], None] | None:
    """Return what drops the fields of an object whose gates are off, None where none can have any.

    ``others`` are by struct (``core/v1.PodSpec``) what is dropped beside its fields, before them.
    """
    parts = _plan(root, _disabled(gates), others)
    if root.ref not in parts:
        return None

    def drop(value: Any, ref: str = root.ref) -> None:
        if not isinstance(value, dict):
            return
        part = parts[ref]
        if part.more is not None:
            part.more(value, gates)
        for name in part.names:
            value.pop(name, None)
        for name, wraps, inner in part.below:
            if (item := value.get(name)) is not None:
                for found in _unwrapped(item, wraps):
                    drop(found, inner)

    return drop


def _disabled(gates: FeatureGates) -> dict[str, set[str]]:
    """Struct -> its fields that are dropped."""
    found: dict[str, set[str]] = {}
    for gate, refs in merged(gates.release, "fields.json").items():
        if not gates.on(gate):
            for ref in refs.split():
                holder, _, name = ref.rpartition(".")
                found.setdefault(holder, set()).add(name)
    return found


def _plan(root: Struct, disabled: Mapping[str, set[str]], others: Mapping[str, Drop]) -> dict[str, _Part]:
    """Return the structs below a root, itself included, that hold anything to drop or lead to such."""
    known, waiting = {root.ref: root}, [root]
    leads: dict[str, list[tuple[str, str, str]]] = {}
    while waiting:
        shape = waiting.pop()
        leads[shape.ref] = []
        for field in shape.fields.values():
            inner, wraps = field.type, ""
            while inner[:2] in ("[]", "{}"):
                inner, wraps = inner[2:], wraps + inner[0]
            if "/" in inner:
                leads[shape.ref].append((field.name, wraps, inner))
                if inner not in known:
                    known[inner] = struct(inner)
                    waiting.append(known[inner])
    meant = {ref for ref in known if plain_ref(ref) in disabled or plain_ref(ref) in others}
    while grown := {ref for ref, below in leads.items() if ref not in meant and any(to in meant for *_, to in below)}:
        meant |= grown
    return {
        ref: _Part(
            tuple(sorted(disabled.get(plain_ref(ref), ()))),
            [lead for lead in leads[ref] if lead[2] in meant],
            others.get(plain_ref(ref)),
        )
        for ref in meant
    }


def _unwrapped(value: Any, wraps: str) -> list[Any]:
    """Return the structs that a field holds: itself, or the members of its lists and maps."""
    found = [value]
    for wrap in wraps:
        if wrap == "[":
            found = [each for one in found if isinstance(one, list) for each in one]
        else:
            found = [each for one in found if isinstance(one, dict) for each in one.values()]
    return found
