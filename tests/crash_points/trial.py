"""One trial: a scenario's steps, incidents on the way, and what became of GPUs and pods in the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mews.harness.clusters import open_cluster
from mews.harness.engine import in_own_loop
from mews.harness.invariants import Oracle
from mews.harness.journal import Line
from mews.harness.ports.cluster import Cluster
from mews.harness.scenario.actions import Step
from mews.harness.scenario.errors import StepFailedError
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.runner import bounds_for
from mews.harness.scenario.step_context import StepContext
from mews.harness.scenario.steps import apply_objects, do
from mews.kube.api.objects import Object, condition_of, is_deleting, is_terminal, name_of, phase_of, uid_of
from mews.kube.api.resources import EVENTS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from tests.crash_points.point import FAULTS, CrashPoint, Incident
from tests.oracle.play import disturbed, down

REST_S = 1800.0
"""How long pods and devices may take to come to rest: a Permit of fifteen minutes, tried again."""
LOOK_S = 5.0
GRACE_S = 30.0
"""The longest that a pod of these scenarios gives its containers."""
TERMINATING_S = 30.0
"""Within this a kubelet that is back has finished a pod whose grace is over."""
WITHOUT = ("assert", "exec", "hold", "sleep", "kill", "restart", "start")
"""Steps that a trial does not do: what a scenario expects where nothing crashes need not come off in it."""


Branch = Callable[[int], CrashPoint | None]
"""Asked at each line by its number; a point that it returns befalls the world from that line on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a trial: ``problems`` is empty where all is well; ``ran`` and ``excused`` are the pods that ran
    or ended, and those that say why they do not; ``reached`` counts the incidents that happened."""

    problems: tuple[str, ...]
    ran: tuple[str, ...]
    excused: tuple[str, ...]
    reached: int
    lines: tuple[Line, ...]
    first: int
    last: int
    """The lines of the steps proper: from the first step on, until all had come to rest."""
    components: tuple[str, ...]
    idle: int = 0
    """Faults that met no operation."""


def try_point(
    scenario: Scenario,
    point: CrashPoint,
    *,
    pending: Sequence[str] = (),
    seed: int = 1,
    rest_s: float | None = None,
    branch: Branch | None = None,
) -> Outcome:
    """Play it in virtual time. ``pending``: pods that do not run even where nothing crashes."""
    at_most_s = REST_S if rest_s is None else rest_s
    return in_own_loop(lambda: _trial(scenario, point, frozenset(pending), seed, at_most_s, branch), virtual=True)


async def _trial(
    scenario: Scenario,
    point: CrashPoint,
    pending: frozenset[str],
    seed: int,
    rest_s: float,
    branch: Branch | None,
) -> Outcome:
    cluster = await open_cluster(scenario, seed=seed)
    try:
        return await _Trial(scenario, cluster, point, pending, rest_s, branch).run()
    finally:
        await cluster.close()


@dataclass(slots=True)
class _Incidents:
    """Strikes while the lines are written, as a crash does."""

    cluster: Cluster
    given: tuple[Incident, ...]
    branch: Branch | None = None
    waiting: deque[Incident] = field(init=False)
    reached: int = 0
    _since: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.waiting = deque(self.given)

    def on_line(self, line: Line) -> None:
        point = self.branch(line.number) if self.branch is not None else None
        if point is not None:
            self.branch = None
            self.given = point.incidents
            self.waiting.extend(point.incidents)
        while self.waiting and line.number >= self._since + self.waiting[0].line:
            self._since = line.number
            self._next()

    def overdue(self, *, ends: bool) -> bool:
        """Everything rests, and the line of the next incident does not come: it happens now; whether there was one. The
        first one's line may yet come unless the world ends."""
        if not self.waiting or not (ends or self.reached):
            return False
        self._since = len(self.cluster.journal)
        self._next()
        return True

    def _next(self) -> None:
        incident = self.waiting.popleft()
        self.reached += 1
        if incident.after_s is not None:
            self.cluster.cut(incident.what)
        task = asyncio.create_task(self._strike(incident))
        self._tasks.add(task)

    async def _strike(self, incident: Incident) -> None:
        if incident.after_s is None:
            dead = down(self.cluster)  # a chassis that is down takes no fault
            for chassis in sorted(await self.cluster.hardware.table()):
                if f"chassis/{chassis}" in dead:
                    continue
                await self.cluster.hardware.fault(chassis, FAULTS[incident.what])
            return
        await self.cluster.kill(incident.what)
        await asyncio.sleep(incident.after_s)
        await self.cluster.start(incident.what)

    def pending(self) -> bool:
        return any(not task.done() for task in self._tasks)

    def errors(self) -> list[str]:
        found = [task.exception() for task in self._tasks if task.done()]
        return [f"an incident failed: {type(error).__name__}: {error}" for error in found if error is not None]


class _Trial:
    def __init__(
        self,
        scenario: Scenario,
        cluster: Cluster,
        point: CrashPoint,
        pending: frozenset[str],
        rest_s: float,
        branch: Branch | None,
    ) -> None:
        self._rest_s = rest_s
        self._scenario = scenario
        self._cluster = cluster
        self._incidents = _Incidents(cluster, point.incidents, branch)
        self._pending = pending
        self._by_claims = "pooldra" in scenario.stack.systems
        deadline_s = asyncio.get_running_loop().time() + scenario.timeout
        self._stage = StepContext(scenario, cluster, deadline_s, first_line=len(cluster.journal))

    async def run(self) -> Outcome:
        cluster = self._cluster
        free = await self._free()
        devices = await self._devices()
        components = tuple(cluster.components())
        bounds = bounds_for(disturbed(self._scenario), cluster)
        oracle = Oracle(cluster, bounds=bounds, named=self._scenario.invariants)
        await oracle.start()
        first = len(cluster.journal)
        stop = cluster.journal.listen(self._incidents.on_line)
        await apply_objects(self._stage, self._scenario.objects)
        for step in self._scenario.steps:
            await self._do(step)
        await self._rest(self._unsettled)
        problems = [f"pod {name} neither runs nor ended nor says why" for name in await self._silent()]
        ran, excused = await self._pods()
        for step in self._scenario.finally_:
            await self._do(step)
        await self._rest(self._unattached(free), ends=True)
        if self._by_claims:
            await self._rest(self._kept(free), ends=True)
        stop()
        last = len(cluster.journal)
        problems += [f"GPU {gpuid} is lost: it is on no port" for gpuid in sorted(await self._free() - free)]
        problems += [f"GPU {gpuid} is gone" for gpuid in sorted(devices - await self._devices())]
        problems += await self._stranded(free) if self._by_claims else ()
        problems += [f"pod {name} is Terminating for ever" for name in await self._terminating()]
        problems += lingering(cluster.journal.lines(), sum(each.after_s or 0.0 for each in self._incidents.given))
        problems += [f"{crash} crashed by itself" for crash in cluster.crashes()]
        problems += self._incidents.errors()
        for violation in await oracle.finish():
            problems.append(f"invariant {violation.invariant}: {violation.what}")
        reached, lines = self._incidents.reached, tuple(cluster.journal.lines())
        return Outcome(tuple(problems), ran, excused, reached, lines, first, last, components)

    async def _do(self, step: Step) -> None:
        if step.action in WITHOUT:
            return
        with contextlib.suppress(
            StepFailedError
        ):  # a pod may run elsewhere, or later; what counts is judged in the end
            await do(self._stage, step)

    async def _rest(self, look: Callable[[], Any], *, ends: bool = False) -> None:
        loop = asyncio.get_running_loop()
        incidents, deadline = self._incidents, loop.time() + self._rest_s
        while incidents.pending() or await look() or incidents.overdue(ends=ends):
            if loop.time() >= deadline:
                return
            await asyncio.sleep(LOOK_S)

    async def _unsettled(self) -> bool:
        pods = (await self._cluster.kube.list(PODS)).items
        return any(not _went(pod) and name_of(pod) not in self._pending for pod in pods)

    def _unattached(self, before: frozenset[str]) -> Callable[[], Any]:
        async def look() -> bool:
            pods = (await self._cluster.kube.list(PODS)).items
            return bool(await self._free() - before) or any(pod["metadata"].get("deletionTimestamp") for pod in pods)

        return look

    def _kept(self, before: frozenset[str]) -> Callable[[], Any]:
        async def look() -> bool:
            return bool(await self._stranded(before))

        return look

    async def _stranded(self, before: frozenset[str]) -> list[str]:
        """GPUs that claims brought to a host and that stay there once the claims are gone, claims that stay without
        their pods, and GPUs that are free and that the pool does not offer."""
        claims = [name_of(claim) for claim in (await self._cluster.kube.list(RESOURCE_CLAIMS)).items]
        free = await self._free()
        slices = (await self._cluster.kube.list(RESOURCE_SLICES)).items
        offered = [device["name"] for each in slices for device in each["spec"].get("devices") or ()]
        found = [f"claim {name} is left" for name in sorted(claims)]
        found += [f"GPU {gpuid} is stranded on a host" for gpuid in sorted(before - free)]
        if sorted(set(offered)) != sorted(offered) or len(offered) != len(before):
            found.append(f"{len(before)} GPUs are free, offered: {', '.join(sorted(offered)) or 'none'}")
        return found

    async def _free(self) -> frozenset[str]:
        table = await self._table()
        return frozenset(device for device, row in table.items() if row["port"] is None)

    async def _devices(self) -> frozenset[str]:
        return frozenset(await self._table())

    async def _table(self) -> Mapping[str, Mapping[str, Any]]:
        tables = await self._cluster.hardware.table()
        return {f"{chassis}/{device}": row for chassis, rows in tables.items() for device, row in rows.items()}

    async def _silent(self) -> list[str]:
        events = (await self._cluster.kube.list(EVENTS)).items
        warned = {event["involvedObject"].get("name") for event in events if event.get("type") == "Warning"}
        pods = (await self._cluster.kube.list(PODS)).items
        return [name_of(pod) for pod in pods if not _went(pod) and not _reason(pod) and name_of(pod) not in warned]

    async def _terminating(self) -> list[str]:
        """Those that nothing but their kubelet keeps, and that were deleted so long ago that they should be gone."""
        found = await self._leaving()
        if found:
            await asyncio.sleep(GRACE_S + TERMINATING_S)
            still = await self._leaving()
            found = {uid: name for uid, name in found.items() if uid in still}
        return sorted(found.values())

    async def _leaving(self) -> dict[str, str]:
        pods = (await self._cluster.kube.list(PODS)).items
        kept = [pod for pod in pods if is_deleting(pod) and not pod["metadata"].get("finalizers")]
        return {uid_of(pod): name_of(pod) for pod in kept}

    async def _pods(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        pods = (await self._cluster.kube.list(PODS)).items
        went = [name_of(pod) for pod in pods if _went(pod)]
        return tuple(sorted(went)), tuple(sorted(name_of(pod) for pod in pods if not _went(pod)))


def lingering(lines: Iterable[Line], away_s: float) -> list[str]:
    """Pods that were Terminating for longer than a grace, the time components were ``away_s``, and a bound."""
    since: dict[tuple[str, object], float] = {}
    found = []
    for line in lines:
        key = (line.actor, line.fields.get("uid"))
        if line.event == "deleting":
            since.setdefault(key, line.t)
        elif line.event == "deleted" and key in since:
            took_s = line.t - since.pop(key)
            if took_s > GRACE_S + away_s + TERMINATING_S:
                found.append(f"{line.actor} was Terminating for {took_s:.0f} s")
    return found


def _went(pod: Object) -> bool:
    """Whether it runs or has ended."""
    return is_terminal(pod) or phase_of(pod) == "Running"


def _reason(pod: Object) -> str:
    """Why it does not run, as it says itself."""
    scheduled = condition_of(pod, "PodScheduled") or {}
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or "")
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = [(status.get("state") or {}).get("waiting") or {} for status in statuses]
    return next((str(state["reason"]) for state in waiting if state.get("reason")), "")
