"""The line of jobs: who is tried next, and again when. A line holds at most so many jobs; the rest stay in the file."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from typing import Protocol, cast

from mews.harness.simulation.placers import FixedPlacer
from mews.kube.api.resources import PODS
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.framework import SUCCESS, Action, Handle, Wake
from mews.kube.scheduling.plugins.queueing import PrioritySort
from mews.kube.scheduling.podinfo import PodInfo, pod_info
from mews.kube.scheduling.queue import Entry, Queue
from mews.kube.system.simulation import JobPlacer, JobSpot, SimulatedJob

Start = Callable[[SimulatedJob, JobSpot, float], None]
"""A job has its room."""

Ends = Callable[[], Iterable[tuple[float, SimulatedJob, JobSpot]]]
"""When running jobs will have freed their room, in any order."""

ORDERS = ("fcfs", "backfill", "any")
RETRIES = ("immediate", "kube")
WINDOW = 1000
"""Jobs that are looked at beyond the first (Slurm: bf_max_job_test)."""


class JobLine(Protocol):
    """What the engine asks of a line."""

    @property
    def full(self) -> bool:
        """Whether no further job may come yet."""
        ...

    def __len__(self) -> int: ...

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """A job is there."""
        ...

    def decide(self, now_s: float) -> bool:
        """Try whose turn it is; whether any job got its room."""
        ...

    def changed(self, now_s: float) -> None:
        """Room has become free."""
        ...

    def begun(self, job: SimulatedJob) -> None:
        """A job that had waited for devices on their way has begun."""
        ...

    def given_up(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """One that had is not to have them: it waits again. Of a placer that ``gives_up`` alone."""
        ...

    def next_s(self) -> float | None:
        """Return when somebody is tried again though nothing changes."""
        ...


class FcfsLine:
    """Strictly first come, first served: no job starts before an earlier one."""

    def __init__(self, placer: JobPlacer, start: Start) -> None:
        self._place = placer.place
        self._start = start
        self._head: SimulatedJob | None = None
        self._refused = False
        self.full = False

    def __len__(self) -> int:
        return 1 if self._head is not None else 0

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """It is the first: others stay in the file until it has begun."""
        self._head, self._refused, self.full = job, False, True

    def decide(self, now_s: float) -> bool:
        """Try the first."""
        head = self._head
        if head is None or self._refused:
            return False
        spot = self._place(head, now_s)
        if spot is None:
            self._refused = True
            return False
        self._head = None
        self.full = not spot.ready
        self._start(head, spot, now_s)
        return True

    def changed(self, now_s: float) -> None:
        """It may fit now."""
        self._refused = False

    def begun(self, job: SimulatedJob) -> None:
        """The next may come."""
        self.full = False

    def given_up(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """It is the first again."""
        self._head, self._refused = job, True

    def next_s(self) -> float | None:
        """It waits for room alone."""
        return None


def _shape(job: SimulatedJob) -> tuple[int, int, int]:
    return job.share, job.cpu_milli, job.memory_mib


class _WindowedLine:
    """Jobs in the order in which they came, as many as a window has."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._waiting: list[SimulatedJob] = []

    @property
    def full(self) -> bool:
        """Whether the window is."""
        return len(self._waiting) > self._window

    def __len__(self) -> int:
        return len(self._waiting)

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """At the end of the line."""
        self._waiting.append(job)

    def given_up(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """At its end again."""
        self._waiting.append(job)


class AnyLine(_WindowedLine):
    """Whoever fits: later jobs pass one that does not."""

    def __init__(self, placer: JobPlacer, start: Start, window: int = WINDOW) -> None:
        super().__init__(window)
        self._placer = placer
        self._start = start
        self._tried = 0
        self._in_vain: set[tuple[int, int, int]] = set()

    def decide(self, now_s: float) -> bool:
        """Try all that were not tried since room became free."""
        waiting, placed = self._waiting, False
        left = waiting[: self._tried]
        for job in waiting[self._tried :]:
            shape = _shape(job)
            spot = None if shape in self._in_vain else self._placer.place(job, now_s)
            if spot is None:
                self._in_vain.add(shape)
                left.append(job)
            else:
                placed = True
                self._start(job, spot, now_s)
        self._waiting = left
        self._tried = len(left)
        return placed

    def changed(self, now_s: float) -> None:
        """All may be tried again."""
        self._tried = 0
        self._in_vain.clear()

    def begun(self, job: SimulatedJob) -> None:
        """Nobody waited for that."""

    def next_s(self) -> float | None:
        """They wait for room alone."""
        return None


class BackfillLine(_WindowedLine):
    """The first has a reservation; others go ahead of it where that does not put it off (EASY backfilling: Lifka, The
    ANL/IBM SP scheduling system, 1995). Durations are known, as in the trace."""

    def __init__(self, placer: FixedPlacer, start: Start, ends: Ends, window: int = WINDOW) -> None:
        super().__init__(window)
        self._placer = placer
        self._start = start
        self._ends = ends
        self._tried = 0
        self._reserved: tuple[float, str] | None = None

    def decide(self, now_s: float) -> bool:
        """Return the first as long as it fits, then whoever may go ahead of the one that does not."""
        placed = self._heads(now_s) if not self._tried else False
        if not self._waiting:
            self._tried = 0
            return placed
        if self._reserved is None:
            self._reserved = self._reservation(self._waiting[0])
        at_s, node = self._reserved
        first = max(1, self._tried)
        left, in_vain = self._waiting[:first], set[tuple[int, int, int, bool]]()
        for job in self._waiting[first:]:
            short = now_s + job.duration_s <= at_s
            shape = (*_shape(job), short)
            spot = None
            if shape not in in_vain:
                spot = self._placer.place(job, now_s, besides=() if short else (node,))
            if spot is None:
                in_vain.add(shape)
                left.append(job)
            else:
                placed = True
                self._start(job, spot, now_s)
        self._waiting, self._tried = left, len(left)
        return placed

    def _heads(self, now_s: float) -> bool:
        done = 0
        for job in self._waiting:
            spot = self._placer.place(job, now_s)
            if spot is None:
                break
            done += 1
            self._reserved = None
            self._start(job, spot, now_s)
        del self._waiting[:done]
        return done > 0

    def _reservation(self, job: SimulatedJob) -> tuple[float, str]:
        """Return when and where the job will fit at the latest, by the ends of those that run. It stays: whoever goes
        ahead does not touch it."""
        freed: dict[str, list[SimulatedJob]] = {}
        for at_s, ended, spot in sorted(self._ends(), key=lambda end: (end[0], end[2].node)):
            there = freed.setdefault(spot.node, [])
            there.append(ended)
            if self._placer.fits_after(job, spot.node, there):
                return at_s, spot.node
        raise AssertionError(f"{job.name} fits no empty node, and was let in")

    def changed(self, now_s: float) -> None:
        """All may be tried again."""
        self._tried = 0

    def begun(self, job: SimulatedJob) -> None:
        """Nobody waited for that."""

    def next_s(self) -> float | None:
        """They wait for room alone."""
        return None


class _Alarm:
    """A call of the line's own agenda."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


_NAME, _ROOM, _ORDER = "simulated", "room", "order"
_PROFILE = SchedulerProfile(_NAME, ())


class KubeLine:
    """kube-scheduler's own queue: who was refused waits for a change that may help, and for its back-off. ``strict``:
    refused as well while an earlier job waits, as KubeComp's plugin does it."""

    def __init__(self, placer: JobPlacer, start: Start, *, strict: bool, window: int = WINDOW) -> None:
        self._placer = placer
        self._start = start
        self._strict = strict
        self._window = window
        self._now_s = 0.0
        self._jobs: dict[str, SimulatedJob] = {}
        self._numbers = count()
        self._agenda: list[tuple[float, int, _Alarm]] = []
        self._alarms = count()
        self._moving: dict[int, Entry] = {}
        self._queue = Queue(
            SchedulerConfig(profiles=(_PROFILE,)),
            now=lambda: self._now_s,
            sort_key=PrioritySort(cast(Handle, None)).sort_key,
            may_queue=lambda pod: SUCCESS,
            wakes={
                (_NAME, _ROOM): (Wake(PODS, Action.DELETE),),
                (_NAME, _ORDER): (Wake(PODS, Action.ADD),),
            },
            call_later=self._later,
        )

    @property
    def full(self) -> bool:
        """Whether the window is."""
        return len(self._jobs) > self._window

    def __len__(self) -> int:
        return len(self._jobs) - len(self._moving)

    def submit(self, job: SimulatedJob, now_s: float) -> None:
        """A pod is pending."""
        self._now_s = now_s
        uid = str(next(self._numbers))
        self._jobs[uid] = job
        self._queue.add(_pod(uid))

    def decide(self, now_s: float) -> bool:
        """Try all whose turn it is."""
        self._now_s, placed = now_s, False
        while self._agenda and self._agenda[0][0] <= now_s:
            call = heapq.heappop(self._agenda)[2].call
            if call is not None:
                call()
        while not self._placer.holds_cycle and (entry := self._queue.pop_now()) is not None:
            uid = entry.pod.uid
            job = self._jobs[uid]
            if self._strict and next(iter(self._jobs)) != uid:
                self._queue.refuse(entry, (_ORDER,))
                continue
            spot = self._placer.place(job, now_s)
            if spot is None:
                self._queue.refuse(entry, (_ROOM,))
                continue
            placed = True
            if spot.ready:
                self._bound(uid)
            else:
                self._moving[id(job)] = entry
            self._start(job, spot, now_s)
        return placed

    def _bound(self, uid: str) -> None:
        self._queue.remove(uid)
        del self._jobs[uid]
        self._queue.change(PODS, None, {})

    def changed(self, now_s: float) -> None:
        """A pod is gone from its node."""
        self._now_s = now_s
        self._queue.change(PODS, {}, None)

    def begun(self, job: SimulatedJob) -> None:
        """It is bound at last."""
        self._bound(self._moving.pop(id(job)).pod.uid)

    def given_up(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its attempt has failed, and others may have the room; it is refused, and tried again as such are."""
        self._now_s = now_s
        entry = self._moving.pop(id(job))
        self._queue.refuse(entry, (_ROOM,))
        self._queue.change(PODS, {}, None, besides=entry.pod.uid)
        if spot.retry_s is not None:
            self._later(spot.retry_s, lambda: self._queue.activate([entry.pod.uid]))

    def next_s(self) -> float | None:
        """Return when a back-off ends, or what was refused is looked at again whatever happens."""
        while self._agenda and self._agenda[0][2].call is None:
            heapq.heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else None

    def _later(self, delay_s: float, call: Callable[[], None]) -> _Alarm:
        alarm = _Alarm(call)
        heapq.heappush(self._agenda, (self._now_s + delay_s, next(self._alarms), alarm))
        return alarm


def _pod(uid: str) -> PodInfo:
    return pod_info({"metadata": {"name": uid, "uid": uid}, "spec": {"schedulerName": _NAME}})
