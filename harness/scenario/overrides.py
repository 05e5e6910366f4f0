"""``--set KEY=VALUE``: change one value of a scenario by its dotted path before it is checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.yamlfile import Place, dotted, read_yaml


class Override(Struct, frozen=True):
    """One ``--set``: where, what, and how it was written."""

    place: Place
    value: Any
    text: str


def parse_override(text: str) -> Override:
    """``workload.trace=other.csv``; list items by index, a dot within a key as ``\\.``, the value read as YAML.

    Raises ScenarioError.
    """
    key, equals, raw = text.partition("=")
    if not equals or not key.strip():
        raise ScenarioError(f"--set {text}: must be KEY=VALUE with a dotted path, for example workload.trace=other.csv")
    parts = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", key.strip())]
    if not all(parts):
        raise ScenarioError(f"--set {text}: {key!r} has an empty part between its dots")
    return Override(tuple(parts), read_yaml(raw, f"--set {text}").value if raw.strip() else "", text)


def overrides_of(given: Sequence[str] | Mapping[str, Any]) -> tuple[Override, ...]:
    """Overrides as texts (``a.b=c``) or as a mapping of dotted path (``a.b`` or ``a__b``) to value."""
    if not isinstance(given, Mapping):
        return tuple(parse_override(text) for text in given)
    result = []
    for key, value in given.items():
        path = key if "." in key else key.replace("__", ".")
        result.append(Override(parse_override(f"{path}=0").place, value, f"{path}={value}"))
    return tuple(result)


def apply_overrides(value: Any, overrides: Sequence[Override]) -> Any:
    """Return a copy of the raw scenario with the overrides in it; keys that the model does not know it refuses later.

    Raises ScenarioError where the path leads through something that is not there.
    """
    changed = copy.deepcopy(value)
    for override in overrides:
        _set(changed, override)
    return changed


def _set(root: Any, override: Override) -> None:
    current = root
    *way, last = override.place
    for depth, part in enumerate(way):
        current = _enter(current, part, override, override.place[:depth])
    key = _key(current, last, override, override.place[:-1])
    current[key] = override.value


def _enter(current: Any, part: str | int, override: Override, place: Place) -> Any:
    key = _key(current, part, override, place)
    if isinstance(current, dict) and current.get(key) is None:
        current[key] = {}
    return current[key]


def _key(current: Any, part: str | int, override: Override, place: Place) -> str | int:
    if isinstance(current, list):
        if str(part).isdigit() and int(part) < len(current):
            return int(part)
        allowed = f"an index from 0 to {len(current) - 1}" if current else "nothing: the list is empty"
        raise ScenarioError(f"--set {override.text}: {dotted(place)} is a list: {part!r} must be {allowed}")
    if isinstance(current, dict):
        return str(part)
    raise ScenarioError(
        f"--set {override.text}: unknown path: {dotted(place)} is {current!r}, there is nothing named {part!r} in it"
    )
