"""Invariant 7: resourceVersions grow, watches have no gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.harness.watch_feed import LISTED, WatchRecord
from mews.kube.api.objects import Object, uid_of, version_of
from mews.kube.system.invariant import Breach


class Watches:
    """The law judges one watch feed per resource. Within a watch, versions only grow, and an object's version grows
    with every change. No object is added twice, or changes before it was added. A last list shows only what the watch
    reported."""

    number = 7
    name = "resourceVersions grow, watches have no gap"
    of_time = False

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], int] = {}

    def on_watch(self, seen: WatchRecord) -> Iterator[Breach]:
        """Judge one event of a list or watch."""
        if seen.type == LISTED:
            yield from self._object_grows(seen)
            return
        yield from self._stream_grows(seen)
        if seen.type == "BOOKMARK":
            return
        yield from self._object_grows(seen)
        known = seen.old is not None
        if seen.type == "ADDED" and known and uid_of(seen.old or {}) == uid_of(seen.new or {}):
            yield _breach(seen, "was added though it was there: its deletion was not told")
        elif seen.type in ("MODIFIED", "DELETED") and not known:
            yield _breach(seen, f"came as {seen.type} though it was never added: a gap")

    def _stream_grows(self, seen: WatchRecord) -> Iterator[Breach]:
        stream = (seen.resource.plural, seen.stream)
        last = self._last.get(stream, 0)
        self._last[stream] = max(last, seen.version)
        stale = seen.version < last if seen.type == "BOOKMARK" else seen.version <= last
        if stale:
            yield _breach(seen, f"came with version {seen.version} after {last} on one watch")

    def _object_grows(self, seen: WatchRecord) -> Iterator[Breach]:
        if seen.old is not None and seen.new is not None and version_of(seen.new) <= version_of(seen.old):
            yield _breach(seen, f"went from version {version_of(seen.old)} to {version_of(seen.new)}")


def missing(plural: str, listed: Mapping[str, Object], seen: Mapping[str, Object]) -> Iterator[Breach]:
    """Yield what a list shows and a watch that had time to follow does not, or the other way round."""
    for key in sorted({*listed, *seen}):
        there, watched = version_of(listed.get(key, {})), version_of(seen.get(key, {}))
        if there > watched or key not in listed:
            what = f"{plural} {key}: the list has version {there or 'none'}, the watch told {watched or 'none'}"
            yield Breach((plural, key, "gap"), what, None)


def _breach(seen: WatchRecord, what: str) -> Breach:
    return Breach((seen.resource.plural, seen.key, what), f"{seen.resource.plural} {seen.key} {what}", None)
