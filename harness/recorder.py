"""Feeds the journal: API lines from watches, hardware and kubelet lines from their event feeds.

The pure functions below say what of an object's change is news; heartbeats, leases, timestamps, counts and repeated
events are not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from mews.harness.journal import Journal, Line
from mews.harness.watch_feed import Feed, WatchRecord
from mews.kube.api.objects import (
    Object,
    annotations_of,
    containers_of,
    init_containers_of,
    is_deleting,
    key_of,
    name_of,
    namespace_of,
    node_name_of,
    phase_of,
    requests_of,
    uid_of,
)
from mews.kube.api.pod_requests import request_of
from mews.kube.api.resources import EVENTS, NODES, PODS, Resource
from mews.kube.client.informer import without_managers
from mews.kube.client.port import KubeApi
from mews.kube.system.journal import condition_changes
from mews.kube.system.system import KindLine, Watched

Write = Callable[..., Line | None]
"""``write(event, **fields)``: one line of a fixed layer and actor."""


def pod_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a pod that was added (old None), changed, or is gone (new None)."""
    if old is not None and new is not None and uid_of(old) != uid_of(new):
        yield from pod_news(old, None)
        old = None
    pod = new if new is not None else old
    if pod is None:
        return
    actor, uid = f"pod/{namespace_of(pod)}/{name_of(pod)}", uid_of(pod)
    if new is None:
        yield actor, "deleted", {"uid": uid}
        return
    if old is None:
        yield actor, "created", {"uid": uid, **_birth(new)}
    for event, fields in _pod_changes(old or {}, new):
        yield actor, event, {"uid": uid, **fields}


def _birth(pod: Object) -> dict[str, Any]:
    scheduler = pod.get("spec", {}).get("schedulerName") or "default-scheduler"
    birth = {"scheduler": scheduler, "node": node_name_of(pod), "phase": phase_of(pod), "requests": extended_of(pod)}
    return birth | ({"annotated": sorted(annotations_of(pod))} if annotations_of(pod) else {})


def extended_of(pod: Mapping[str, Any]) -> dict[str, int]:
    """Return what a pod asks of each extended resource (a name with a slash), sorted by name."""
    names = {n for c in (*containers_of(pod), *init_containers_of(pod)) for n in requests_of(c) if "/" in n}
    return {name: request_of(pod, name) for name in sorted(names)}


def _pod_changes(old: Object, new: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    if node_name_of(new) and node_name_of(old) != node_name_of(new):
        yield "bound", {"node": node_name_of(new)}
    before, after = annotations_of(old), annotations_of(new)
    changed = {name: after.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
    if changed:
        yield "annotations", {"annotations": changed}
    yield from condition_changes(old, new)
    if old and phase_of(old) != phase_of(new):
        yield "phase", {"phase": phase_of(new), "reason": (new.get("status") or {}).get("reason", "")}
    if is_deleting(new):
        yield from _deletion(old, new)


def _deletion(old: Object, new: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    finalizers = list(new["metadata"].get("finalizers") or ())
    if not is_deleting(old):
        yield "deleting", {"grace_s": new["metadata"].get("deletionGracePeriodSeconds", 0), "finalizers": finalizers}
    elif finalizers != list(old["metadata"].get("finalizers") or ()):
        yield "finalizers", {"finalizers": finalizers}


def node_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a node."""
    node = new if new is not None else old
    if node is None:
        return
    actor = f"node/{name_of(node)}"
    if new is None:
        yield actor, "deleted", {}
        return
    if old is None:
        yield actor, "created", {"allocatable": _allocatable(new)}
    for event, fields in _node_changes(old or {}, new, born=old is None):
        yield actor, event, fields


def _allocatable(node: Object) -> dict[str, str]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return {name: str(allocatable[name]) for name in sorted(allocatable)}


def _node_changes(old: Object, new: Object, *, born: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    before, after = _allocatable(old), _allocatable(new)
    for name in () if born else sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield "allocatable", {"resource": name, "old": before.get(name), "new": after.get(name)}
    yield from condition_changes(old, new)
    if _taints(old) != _taints(new):
        yield "taints", {"taints": _taints(new)}
    closed = bool(new.get("spec", {}).get("unschedulable"))
    if closed != bool(old.get("spec", {}).get("unschedulable")):
        yield "unschedulable", {"unschedulable": closed}


def _taints(node: Object) -> list[str]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return sorted(f"{taint.get('key')}:{taint.get('effect')}" for taint in taints)


class _EventLines:
    """Core events, each kind once: what is said again about the same object is no news."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._first_by: dict[str, tuple[str, ...]] = {}

    def __call__(self, old: Object | None, new: Object | None) -> Iterator[KindLine]:
        if new is None:
            # Nobody counts on with one that is gone: in a cluster that stays up they would be remembered for ever.
            seen = None if old is None else self._first_by.pop(key_of(old), None)
            if seen is not None:
                self._seen.discard(seen)
            return
        about = new.get("involvedObject") or {}
        name = "/".join(filter(None, (about.get("namespace"), about.get("name"))))
        thing = f"{str(about.get('kind', '')).lower()}/{name}"
        reason, message = str(new.get("reason", "")), str(new.get("message", ""))
        event_key = (thing, str(about.get("uid", "")), reason, message)
        if event_key in self._seen:
            return
        self._seen.add(event_key)
        self._first_by[key_of(new)] = event_key
        source = new.get("reportingComponent") or (new.get("source") or {}).get("component") or "unknown"
        host = (new.get("source") or {}).get("host")
        actor = f"{source}/{host}" if host else str(source)
        yield actor, "event", {"type": new.get("type", ""), "reason": reason, "object": thing, "message": message}


def _kept_of(resource: Resource) -> Callable[[Object], Object]:
    """Return what is remembered of its objects: nobody asks what an event was before."""
    return _metadata if resource is EVENTS else without_managers


def _metadata(event: Object) -> Object:
    return {"metadata": {name: event["metadata"].get(name) for name in ("namespace", "name", "uid", "resourceVersion")}}


class Recorder:
    """Keeps the journal: run ``run()`` as a task and ``await synced()`` before the first step. ``watched`` are further
    kinds, those of the systems that run; what happens in the namespaces ``ignored`` is no news."""

    def __init__(
        self, kube: KubeApi, journal: Journal, *, watched: Iterable[Watched] = (), ignored: Collection[str] = ()
    ) -> None:
        self._journal = journal
        self._ignored = frozenset(ignored)
        kinds = (Watched(NODES, node_news), Watched(PODS, pod_news), Watched(EVENTS, _EventLines()), *watched)
        self._feeds = [
            Feed(kube, kind.resource, self._writing(kind.news), keep=_kept_of(kind.resource)) for kind in kinds
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for feed in self._feeds:
                group.create_task(feed.run())

    async def synced(self) -> None:
        """Wait until what was there at the start is written."""
        for feed in self._feeds:
            await feed.synced()

    def _writing(
        self, news: Callable[[Object | None, Object | None], Iterator[KindLine]]
    ) -> Callable[[WatchRecord], None]:
        def write(sight: WatchRecord) -> None:
            if (sight.new or sight.old or {}).get("metadata", {}).get("namespace") in self._ignored:
                return
            for actor, event, fields in news(sight.old, sight.new):
                self._journal.write("api", actor, event, **fields)

        return write

    def kubelet(self, host: str) -> Write:
        """Return what that host's kubelet calls with its events (see the journal's table)."""
        return writer(self._journal, "kubelet", f"kubelet/{host}")

    def chassis(self, name: str) -> Write:
        """Return what that chassis' event feed calls (see the journal's table)."""
        return writer(self._journal, "chassis", f"chassis/{name}")


def writer(journal: Journal, layer: str, actor: str) -> Write:
    """Writes lines of one layer and actor. A checkpoint is written only when it differs from the last one."""
    last: list[Any] = [None]

    def write(event: str, /, **fields: Any) -> Line | None:
        if event == "checkpoint":
            if last[0] == fields:
                return None
            last[0] = fields
        return journal.write(layer, actor, event, **fields)

    return write


class Records(logging.Handler):
    """Collects what components log, beside the journal: structured records by their event, warnings as ``log``.

    The actor is the logger's name below ``prefix``; the layer is ``scheduler`` for schedulers, else ``component``.
    ``failed`` is told of the exceptions that components log.
    Between ``begin`` and ``end`` it gets them from INFO on; to the loggers above goes what those want by their own
    level, so that nobody who collects logs (pytest does) gets hundreds of lines that nobody asked for.
    """

    def __init__(
        self,
        elapsed: Callable[[], float],
        prefix: str = "mews.run.",
        failed: Callable[[str, BaseException], None] = lambda actor, error: None,
    ) -> None:
        super().__init__(logging.INFO)
        self.journal = Journal(elapsed)
        self._prefix = prefix
        self._failed = failed
        self._logger = logging.getLogger(prefix.removesuffix("."))

    def begin(self) -> None:
        """Collect from now on."""
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False

    def end(self) -> None:
        """Collect no more."""
        self._logger.removeHandler(self)
        if not any(isinstance(each, Records) for each in self._logger.handlers):
            self._logger.propagate = True

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        actor = record.name.removeprefix(self._prefix)
        layer = "scheduler" if actor.endswith("scheduler") else "component"
        event = getattr(record, "event", None)
        if event is not None:
            self.journal.write(layer, actor, str(event), **getattr(record, "fields", {}))
        elif record.levelno >= logging.WARNING:
            self.journal.write(layer, actor, "log", level=record.levelname.lower(), message=record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._failed(actor, error)
        self._pass_on(record)

    def _pass_on(self, record: logging.LogRecord) -> None:
        above = self._logger.parent
        first = next((each for each in self._logger.handlers if isinstance(each, Records)), None)
        if first is self and above is not None and above.isEnabledFor(record.levelno):
            above.callHandlers(record)


def merged(*journals: Journal) -> list[Line]:
    """Return all lines of several journals by time; the first journal's before the others' of the same instant."""
    lines = [line for journal in journals for line in journal.lines()]
    return sorted(lines, key=lambda line: line.t)
