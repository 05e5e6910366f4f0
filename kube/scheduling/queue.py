"""The scheduling queue: active, backing off, unschedulable (upstream backend/queue, 1.34).

A pod that was refused waits in the unschedulable set until a change comes that, by the hints of the plugins that
refused it, may help; then it is active again, or backs off first when its back-off has not passed. Pods backing off
after a refusal are taken early when nothing else is queued; those backing off after an error are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from typing import Any, Protocol

from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.resources import Resource
from mews.kube.clock import later
from mews.kube.scheduling.config import SchedulerConfig
from mews.kube.scheduling.framework import Action, QueuedPod, Status, Wake
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.points import ANY_CHANGE
from mews.kube.scheduling.wake import EXTENDER


class Cancellable(Protocol):
    """A call that is due later."""

    def cancel(self) -> None:
        """It is not made."""
        ...


CallLater = Callable[[float, Callable[[], None]], Cancellable]
"""Make a call after so many seconds."""


class QueuePlace(Enum):
    """In which part of the queue a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    HELD = "held"
    """Refused by PreEnqueue."""
    AWAY = "away"
    """Popped: being decided, waiting at Permit or being bound."""


@dataclass(slots=True, eq=False)
class Entry:
    """A pod in the queue. ``refusals`` and ``errors`` count towards its back-off; ``since`` is when it was popped, in
    changes seen. While it was away, ``called``: it is to be retried; ``annotated``: its annotations changed.
    ``repeats``: how often it was refused again at the very moment at which it had been refused before."""

    pod: PodInfo
    entered_s: float
    number: int
    place: QueuePlace = QueuePlace.ACTIVE
    refused_by: frozenset[str] = frozenset()
    refusals: int = 0
    errors: int = 0
    attempts: int = 0
    failed_s: float = 0.0
    since: int = 0
    repeats: int = 0
    called: bool = False
    annotated: bool = False
    token: int = 0
    timer: Cancellable | None = field(default=None, repr=False)


_REPEATS = 10


def backoff_s(count: int, config: SchedulerConfig) -> float:
    """1, 2, 4, 8, 10, 10 … seconds for the first, second … failure in a row."""
    if count <= 0:
        return 0.0
    return min(config.first_backoff_s * 2.0 ** min(count - 1, 30), config.last_backoff_s)


class Queue:
    """All pending pods of the scheduler's profiles."""

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        now: Callable[[], float],
        sort_key: Callable[[QueuedPod], tuple[Any, ...]],
        may_queue: Callable[[PodInfo], Status],
        wakes: Mapping[tuple[str, str], Sequence[Wake]],
        call_later: CallLater = later,
    ) -> None:
        """``wakes``: (scheduler name, plugin name) -> what wakes the pods that plugin refused. ``call_later``: the
        event loop's; a simulation has an agenda of its own."""
        self._config = config
        self._now = now
        self._sort_key = sort_key
        self._may_queue = may_queue
        self._wakes = wakes
        self._later = call_later
        self._entries: dict[str, Entry] = {}
        self._parked: dict[str, Entry] = {}
        self._active: list[tuple[tuple[Any, ...], int, int, Entry]] = []
        self._backing_off: list[tuple[float, int, int, Entry]] = []
        self._numbers = 0
        self._changes = 0
        self._last_change: dict[tuple[Resource, Action], int] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Entry | None:
        """Return the entry of the pod with that uid."""
        return self._entries.get(uid)

    # ---------------------------------------------------------------------------------------------- coming and going

    def add(self, pod: PodInfo) -> None:
        """A pending pod is there, or has changed."""
        entry = self._entries.get(pod.uid)
        if entry is not None:
            self._update(entry, pod)
            return
        self._numbers += 1
        entry = self._entries[pod.uid] = Entry(pod, self._now(), self._numbers)
        self._activate(entry)

    def _update(self, entry: Entry, pod: PodInfo) -> None:
        old, entry.pod = entry.pod, pod
        if old.labels == pod.labels and old.pod.get("spec") == pod.pod.get("spec") and _same_claims(old, pod):
            self._annotated(entry, old)
            return
        if entry.place is QueuePlace.AWAY:
            entry.called = True
        elif entry.place is QueuePlace.UNSCHEDULABLE:
            self._wake(entry)
        elif entry.place is not QueuePlace.BACKOFF:
            self._activate(entry)

    def _annotated(self, entry: Entry, old: PodInfo) -> None:
        """Of the pod itself at most annotations have changed: that may help with an extender alone."""
        if annotations_of(old.pod) == annotations_of(entry.pod.pod):
            return
        if entry.place is QueuePlace.AWAY:
            entry.annotated = True
        elif entry.place is QueuePlace.UNSCHEDULABLE and EXTENDER in entry.refused_by:
            self._wake(entry)

    def remove(self, uid: str) -> None:
        """The pod is gone, bound or not ours any more."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._leave(entry)

    def _leave(self, entry: Entry) -> None:
        """Out of whatever set it is in."""
        entry.token += 1
        self._parked.pop(entry.pod.uid, None)
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None

    # ------------------------------------------------------------------------------------------------------- popping

    async def pop(self) -> Entry:
        """Return the next pod to decide; waits for one."""
        while True:
            entry = self.pop_now()
            if entry is not None:
                return entry
            self._filled.clear()
            await self._filled.wait()

    def pop_now(self) -> Entry | None:
        """Return the next pod to decide; None where there is none."""
        entry = self._next()
        return None if entry is None else self._take(entry)

    def _next(self) -> Entry | None:
        while self._active:
            _, _, token, entry = heappop(self._active)
            if entry.token == token:
                return entry
        while self._backing_off:
            _, _, token, entry = heappop(self._backing_off)
            if entry.token == token:
                return entry
        return None

    def _take(self, entry: Entry) -> Entry:
        self._leave(entry)
        entry.place = QueuePlace.AWAY
        entry.since = self._changes
        entry.called = entry.annotated = False
        entry.attempts += 1
        return entry

    # ------------------------------------------------------------------------------------------------------- failing

    def refuse(self, entry: Entry, refused_by: Iterable[str]) -> None:
        """The popped pod fits nowhere now; retried when woken, and after the leftover time at the latest."""
        if entry.pod.uid not in self._entries:
            return
        now = self._now()
        entry.repeats = entry.repeats + 1 if entry.refusals and entry.failed_s == now else 0
        entry.refusals += 1
        entry.errors = 0
        entry.failed_s = entry.entered_s = now
        entry.refused_by = frozenset(refused_by)
        called = entry.called or (entry.annotated and EXTENDER in entry.refused_by)
        if called or self._missed(entry):
            self._back_off(entry, backoff_s(entry.refusals, self._config), early=False)
            return
        self._leave(entry)
        entry.place = QueuePlace.UNSCHEDULABLE
        self._parked[entry.pod.uid] = entry
        entry.timer = self._later(self._config.leftover_s, lambda: self._wake(entry))

    def fail(self, entry: Entry) -> None:
        """Deciding or binding the popped pod went wrong; retried after its back-off."""
        if entry.pod.uid not in self._entries:
            return
        entry.errors += 1
        entry.refused_by = frozenset()
        entry.failed_s = entry.entered_s = self._now()
        self._back_off(entry, backoff_s(entry.errors, self._config), early=False)

    def _missed(self, entry: Entry) -> bool:
        """Return whether a change that may matter came while the pod was away."""
        if entry.since == self._changes:
            return False
        return any(
            self._last_change.get((wake.resource, action), 0) > entry.since
            for plugin in sorted(entry.refused_by)
            for wake in self._wakes.get((entry.pod.scheduler_name, plugin), ANY_CHANGE)
            for action in (Action.ADD, Action.UPDATE, Action.DELETE)
            if action in wake.actions
        )

    # -------------------------------------------------------------------------------------------------------- waking

    def change(self, resource: Resource, old: Object | None, new: Object | None, *, besides: str = "") -> None:
        """Something changed: wake the refused pods that it may help, except the one with the uid ``besides``."""
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        self._changes += 1
        self._last_change[resource, action] = self._changes
        known: dict[tuple[str, frozenset[str]], list[Wake]] = {}  # thousands of pods are refused by the same plugins
        for entry in list(self._parked.values()):
            group = (entry.pod.scheduler_name, entry.refused_by)
            wakes = known.get(group)
            if wakes is None:
                wakes = known[group] = self._wakes_of(entry, resource, action)
            if not wakes or entry.pod.uid == besides:
                continue
            if any(not wake.hint or wake.hint(entry.pod, old, new) for wake in wakes):
                self._wake(entry)

    def _wakes_of(self, entry: Entry, resource: Resource, action: Action) -> list[Wake]:
        """Return what of a change of that kind may help the pod; any change a pod that no plugin refused."""
        if not entry.refused_by:
            return [Wake(resource)]
        return [
            wake
            for plugin in entry.refused_by
            for wake in self._wakes.get((entry.pod.scheduler_name, plugin), ANY_CHANGE)
            if wake.resource == resource and action in wake.actions
        ]

    def activate(self, uids: Iterable[str]) -> None:
        """Retry these pods: at once, or, when they are away, after their back-off should they fail."""
        for uid in uids:
            entry = self._entries.get(uid)
            if entry is None:
                continue
            if entry.place is QueuePlace.AWAY:
                entry.called = True
            elif self._goes_round(entry):
                self._back_off(entry, backoff_s(entry.refusals, self._config), early=False)
            elif entry.place is not QueuePlace.ACTIVE:
                self._activate(entry)

    def _goes_round(self, entry: Entry) -> bool:
        """Return whether pods keep waking each other while no time passes: then they wait for their back-off after all.
        Where calls take time what they do not know yet comes meanwhile."""
        return entry.repeats >= _REPEATS and entry.failed_s == self._now()

    def _wake(self, entry: Entry) -> None:
        remaining_s = entry.failed_s + backoff_s(entry.refusals, self._config) - self._now()
        if self._goes_round(entry):
            if self._admitted(entry):
                self._back_off(entry, remaining_s, early=False)
        elif entry.place is QueuePlace.HELD or remaining_s <= 0:
            self._activate(entry)
        elif self._admitted(entry):
            self._back_off(entry, remaining_s, early=True)

    def _activate(self, entry: Entry) -> None:
        if not self._admitted(entry):
            return
        self._leave(entry)
        entry.place = QueuePlace.ACTIVE
        key = self._sort_key(QueuedPod(entry.pod, entry.entered_s))
        heappush(self._active, (key, entry.number, entry.token, entry))
        self._filled.set()

    def _admitted(self, entry: Entry) -> bool:
        """Return whether PreEnqueue lets it in; where not it is held."""
        status = self._may_queue(entry.pod)
        if status.ok:
            return True
        self._leave(entry)
        entry.place = QueuePlace.HELD
        entry.refused_by = frozenset((status.plugin,))
        self._parked[entry.pod.uid] = entry
        return False

    def _back_off(self, entry: Entry, delay_s: float, *, early: bool) -> None:
        """``early``: may be taken before its time when nothing else is queued."""
        self._leave(entry)
        entry.place = QueuePlace.BACKOFF
        entry.timer = self._later(delay_s, lambda: self._activate(entry))
        if early:
            heappush(self._backing_off, (self._now() + delay_s, entry.number, entry.token, entry))
            self._filled.set()


def _same_claims(old: PodInfo, new: PodInfo) -> bool:
    """Return whether the same resource claims were made for the pod as before."""
    before, after = ((pod.pod.get("status") or {}).get("resourceClaimStatuses") for pod in (old, new))
    return bool(before == after)
