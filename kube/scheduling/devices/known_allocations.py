"""What a search found on a node is found again for claims that ask for the same, until the node's devices change.

Thousands of claims of a template differ in name only, and between two pods the devices of one node have changed: to
search five hundred nodes anew was most of what a decision cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec

from mews.kube.api.objects import Object, version_of
from mews.kube.scheduling.devices.inventory import NodePlace, Pool, PoolId
from mews.kube.scheduling.devices.requests import requested_classes

_KINDS = 8
"""Kinds of claims remembered at a time; of more, the one that has not come for longest is forgotten."""

Allocations = list[dict[str, Any]] | None
ChangesOf = Callable[[PoolId], int]


class KnownOnNodes:
    """Node -> what was found there for claims of one kind, while its pools and what is taken of them stay the same."""

    __slots__ = ("_changes_of", "_found")

    def __init__(self, changes_of: ChangesOf) -> None:
        self._changes_of = changes_of
        self._found: dict[str, tuple[Sequence[Pool], int, Allocations]] = {}

    def get(self, place: NodePlace, pools: Sequence[Pool]) -> tuple[bool, Allocations]:
        """Return whether it is known, and what was found."""
        known = self._found.get(place.name)
        if known is None or known[0] is not pools or known[1] != self._changes(pools):
            return False, None
        return True, known[2]

    def put(self, place: NodePlace, pools: Sequence[Pool], found: Allocations) -> None:
        """Keep it, unless shares are in it: each has an id of its own."""
        if found is None or not any("shareID" in each for one in found for each in one["devices"].get("results", ())):
            self._found[place.name] = (pools, self._changes(pools), found)

    def _changes(self, pools: Sequence[Pool]) -> int:
        return sum(self._changes_of(pool.id) for pool in pools)


class KnownAllocations:
    """``KnownOnNodes`` by what claims ask for. ``changes_of``: how often what is taken of a pool has changed."""

    def __init__(self, changes_of: ChangesOf, class_of: Callable[[str], Object | None]) -> None:
        self._changes_of = changes_of
        self._class_of = class_of
        self._kinds: dict[Hashable, KnownOnNodes] = {}

    def of(self, claims: Sequence[Object]) -> KnownOnNodes:
        """Return what is known for claims like these."""
        asked = b"\n".join(msgspec.json.encode(claim["spec"]) for claim in claims)
        classes = [self._class_of(name) for claim in claims for _, name in requested_classes(claim)]
        kind = (asked, tuple(version_of(each) if each is not None else None for each in classes))
        found = self._kinds.pop(kind, None)
        if found is None:
            found = KnownOnNodes(self._changes_of)
            if len(self._kinds) >= _KINDS:
                del self._kinds[next(iter(self._kinds))]
        self._kinds[kind] = found
        return found
