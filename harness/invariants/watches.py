"""Invariant 7: resourceVersions grow, watches have no gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.harness.watch_feed import LISTED, Sight
from mews.kube.api.objects import Object, uid_of, version_of
from mews.kube.system.invariant import Breach


class Watches:
    """Judged from one feed per resource: within a watch versions only grow, an object's version grows with every
    change, nothing is added twice or changes before it was added, and a last list shows nothing that was not told."""

    number = 7
    name = "resourceVersions grow, watches have no gap"

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], int] = {}

    def see(self, sight: Sight) -> Iterator[Breach]:
        """Judge one event of a list or watch."""
        if sight.type == LISTED:
            yield from self._object_grows(sight)
            return
        yield from self._stream_grows(sight)
        if sight.type == "BOOKMARK":
            return
        yield from self._object_grows(sight)
        known = sight.old is not None
        if sight.type == "ADDED" and known and uid_of(sight.old or {}) == uid_of(sight.new or {}):
            yield _breach(sight, "was added though it was there: its deletion was not told")
        elif sight.type in ("MODIFIED", "DELETED") and not known:
            yield _breach(sight, f"came as {sight.type} though it was never added: a gap")

    def _stream_grows(self, sight: Sight) -> Iterator[Breach]:
        stream = (sight.resource.plural, sight.stream)
        last = self._last.get(stream, 0)
        self._last[stream] = max(last, sight.version)
        stale = sight.version < last if sight.type == "BOOKMARK" else sight.version <= last
        if stale:
            yield _breach(sight, f"came with version {sight.version} after {last} on one watch")

    def _object_grows(self, sight: Sight) -> Iterator[Breach]:
        if sight.old is not None and sight.new is not None and version_of(sight.new) <= version_of(sight.old):
            yield _breach(sight, f"went from version {version_of(sight.old)} to {version_of(sight.new)}")


def missing(plural: str, listed: Mapping[str, Object], seen: Mapping[str, Object]) -> Iterator[Breach]:
    """What a list shows and a watch that had time to follow does not, or the other way round."""
    for key in sorted({*listed, *seen}):
        there, told = version_of(listed.get(key, {})), version_of(seen.get(key, {}))
        if there > told or key not in listed:
            what = f"{plural} {key}: the list has version {there or 'none'}, the watch told {told or 'none'}"
            yield Breach((plural, key, "gap"), what, None)


def _breach(sight: Sight, what: str) -> Breach:
    return Breach((sight.resource.plural, sight.key, what), f"{sight.resource.plural} {sight.key} {what}", None)
