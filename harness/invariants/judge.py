"""Puts lines before every invariant, asks the excuses, and keeps what is left: no I/O, so that a test can feed it."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mews.harness.invariants.agreement import Agreement
from mews.harness.invariants.allocations import Allocations
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.condition_news import ConditionNews
from mews.harness.invariants.controller_reports import ControllerReports
from mews.harness.invariants.controller_states import ControllerStates
from mews.harness.invariants.departures import Departures
from mews.harness.invariants.drained import Drained
from mews.harness.invariants.fault_counts import FaultCounts
from mews.harness.invariants.fault_effects import FaultEffects
from mews.harness.invariants.fault_strikes import FaultStrikes
from mews.harness.invariants.fault_windows import LATE, FaultWindows
from mews.harness.invariants.host_layers import HostLayers
from mews.harness.invariants.host_sights import HostSights
from mews.harness.invariants.in_use import InUse
from mews.harness.invariants.invariant import JudgedSystems, ObservedState
from mews.harness.invariants.kubelet_pace import KubeletPace
from mews.harness.invariants.kubelet_reports import KubeletReports
from mews.harness.invariants.kubelet_spans import KubeletSpans
from mews.harness.invariants.layer_strikes import LayerStrikes
from mews.harness.invariants.layer_times import LayerTimes
from mews.harness.invariants.node_taints import NodeTaints
from mews.harness.invariants.observed_hardware import ObservedHardware
from mews.harness.invariants.offered import Offered
from mews.harness.invariants.operation_times import OperationTimes
from mews.harness.invariants.orderly import Orderly
from mews.harness.invariants.own_failures import OwnFailures
from mews.harness.invariants.placements import Placements
from mews.harness.invariants.pod_conditions import PodConditions
from mews.harness.invariants.pod_lives import PodLives
from mews.harness.invariants.preemptions import Preemptions
from mews.harness.invariants.prepared_claims import PreparedClaims
from mews.harness.invariants.prompted import Prompted
from mews.harness.invariants.queued import Queued
from mews.harness.invariants.reported import Reports
from mews.harness.invariants.reservations import ReservationsEnd
from mews.harness.invariants.scheduled import Scheduled
from mews.harness.invariants.scheduler_reports import SchedulerReports
from mews.harness.invariants.silent_nodes import SilentNodes
from mews.harness.invariants.single_claim import SingleClaim
from mews.harness.invariants.single_holder import SingleHolder
from mews.harness.invariants.single_port import SinglePort
from mews.harness.invariants.spec_placements import SpecPlacements
from mews.harness.invariants.stranded import Stranded
from mews.harness.invariants.terminations import Terminations
from mews.harness.invariants.unattached import Unattached
from mews.harness.invariants.verdict import Violation
from mews.harness.invariants.visible import Visible
from mews.harness.invariants.vocabulary import Vocabulary
from mews.harness.invariants.watches import Watches
from mews.harness.journal import Line
from mews.harness.watch_feed import WatchRecord
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant

LAWS: dict[int, Callable[[], Invariant[ObservedState]]] = {
    1: SinglePort,
    2: InUse,
    3: SingleHolder,
    4: Visible,
    5: Unattached,
    6: Agreement,
    10: Orderly,
    13: PodLives,
    14: Terminations,
    15: Allocations,
    16: Offered,
    17: Queued,
    18: KubeletReports,
    20: PodConditions,
    21: SchedulerReports,
    22: ControllerReports,
    23: SilentNodes,
    24: FaultEffects,
    25: Placements,
    26: KubeletSpans,
    27: OwnFailures,
    28: NodeTaints,
    29: SingleClaim,
    49: ReservationsEnd,
    70: HostLayers,
    71: Departures,
    72: FaultCounts,
    73: FaultStrikes,
    74: LayerStrikes,
    76: Reports,
    89: Prompted,
    96: HostSights,
    1001: OperationTimes,
    1002: LayerTimes,
    1003: KubeletPace,
    1004: PreparedClaims,
    1005: SpecPlacements,
    1006: ControllerStates,
    1007: ConditionNews,
    1008: Preemptions,
    1009: Drained,
}
"""The harness's own invariants that every line is put before. 7 looks at watches, 8 and 19 at objects; 75 is the
oracle's, as a judge alone may be fed lines with no more fields than its laws look at. A system's have other numbers."""
OWN = frozenset({*LAWS, Watches.number, Scheduled.number, Stranded.number, Vocabulary.number})

RECENT = 2_000
"""Of so many lines the judge finds the first one after a moment."""
AT_ONCE_S = 1e-6
"""Times are sums of seconds: what differs less is one moment."""


class InvariantJudge:
    """Takes journal lines in their order (``on_line``) and watch events (``on_sight``); ``violations`` grow as they are
    found, each finding once, and ``known`` likewise with what a published system breaks by design. ``report`` is called
    with each of both. ``ours``: whether laws that are ``ours_alone`` are judged; ``beside``: more of the
    harness's own."""

    def __init__(
        self,
        bounds: Bounds,
        systems: JudgedSystems | None = None,
        *,
        ours: bool = True,
        beside: Sequence[Invariant[ObservedState]] = (),
        report: Callable[[Violation], None] = lambda _: None,
    ) -> None:
        systems = systems or JudgedSystems()
        world = ObservedHardware(part_of=systems.part_of)
        windows = FaultWindows(bounds.allocatable_s + bounds.lag_s, world)
        self.state = ObservedState(bounds, systems, world, windows)
        self.violations: list[Violation] = []
        self.known: list[Violation] = []
        self._watches = Watches()
        self._agreement = Agreement()
        own = [self._agreement if make is Agreement else make() for make in LAWS.values()]
        waiting = Scheduled(self.state.systems.schedulers), Stranded(self.state.systems.schedulers)
        every = (*own, *beside, *waiting, *_distinct(self.state.systems.invariants))
        laws = [law for law in every if ours or not law.ours_alone]
        # Each law by what it looks at, which is one thing or two: lines are written by the hundred in a small world.
        of_lines = [law for law in laws if type(law).on_line is not Invariant.on_line]
        self._of_lines = [law for law in of_lines if law.events is None]
        self._of_events: dict[tuple[str, str], list[Invariant[Any]]] = {}
        for law in of_lines:
            for event in law.events or ():
                self._of_events.setdefault(event, []).append(law)
        self._of_time = [law for law in laws if type(law).on_time is not Invariant.on_time]
        self._of_objects = [law for law in laws if type(law).on_objects is not Invariant.on_objects]
        self._recent: deque[Line] = deque(maxlen=RECENT)
        self._report = report
        self._found: set[tuple[int, tuple[str, ...]]] = set()

    def on_line(self, line: Line) -> None:
        """Judge one journal line."""
        if line.layer == "invariant":
            return
        self._recent.append(line)
        self.state.windows.take(line)
        self.state.world.take(line)
        for law in (*self._of_lines, *self._of_events.get((line.layer, line.event), ())):
            try:
                for breach in law.on_line(line, self.state):
                    self._find(law, breach, line.t)
            except Exception as error:  # noqa: BLE001 - whatever it is, the world goes on
                self._give_up(law, error, line.t, line)
        self.pass_time(line.t)

    def pass_time(self, t: float) -> None:
        """Judge what should have happened by now."""
        for law in self._of_time:
            try:
                for breach in law.on_time(t, self.state):
                    self._find(law, breach, t)
            except Exception as error:  # noqa: BLE001 - whatever it is, the world goes on
                self._give_up(law, error, t)

    def on_sight(self, seen: WatchRecord, t: float) -> None:
        """Judge one event of a watch."""
        self._take(self._watches, self._watches.on_watch(seen), t)

    def compare(self, breaches: Iterable[Breach], t: float) -> None:
        """Take what comparing a last list with a watch found."""
        self._take(self._watches, breaches, t)

    def on_objects(self, t: float, objects: ClusterObjects) -> None:
        """Judge nodes and pods as they are now."""
        for law in self._of_objects:
            try:
                self._take(law, law.on_objects(t, objects, self.state), t)
            except Exception as error:  # noqa: BLE001 - whatever it is, the world goes on
                self._give_up(law, error, t)

    def conclude(self, breaches: Iterable[Breach], t: float) -> None:
        """Take what the last look at pod resources and the chassis found."""
        self._take(self._agreement, breaches, t)

    def _give_up(self, law: Invariant[Any], error: Exception, t: float, line: Line | None = None) -> None:
        """A law that fails judges no more, and nothing passes without it; whoever wrote the line goes on."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"the law itself fails: {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        self._of_lines, self._of_time, self._of_objects = (
            [each for each in laws if each is not law] for laws in (self._of_lines, self._of_time, self._of_objects)
        )
        self._of_events = {key: [each for each in laws if each is not law] for key, laws in self._of_events.items()}
        violation = Violation(law.number, law.name, what, t, line, has_failed=True)
        self.violations.append(violation)
        self._report(violation)

    def _take(self, law: Invariant[Any] | Watches, breaches: Iterable[Breach], t: float) -> None:
        for breach in breaches:
            self._find(law, breach, t)

    def _find(self, law: Invariant[Any] | Watches, breach: Breach, t: float) -> None:
        finding = (law.number, breach.key)
        if finding in self._found or (law.of_time and self.state.windows.excused(LATE, t)):
            return  # what is late then, and still is not done when its time has come again, is found then
        self._found.add(finding)
        if not self.state.windows.excused(law.number, t, breach.device):
            overdue = None if breach.due_s is None else self._first_after(breach.due_s)
            overdue = overdue if breach.due_after is None else self._next_to(breach.due_after)
            violation = Violation(
                law.number, law.name, breach.what, t, breach.first, breach.after, breach.known, overdue=overdue
            )
            (self.known if breach.known else self.violations).append(violation)
            self._report(violation)

    def _next_to(self, line: Line) -> Line | None:
        """Return the line that came directly after that one, where it is remembered."""
        return next((each for each in self._recent if each.number > line.number), None)

    def _first_after(self, t: float) -> Line | None:
        """Return the first line after that moment, where the lines back to then are remembered."""
        later = [line for line in self._recent if line.t > t + AT_ONCE_S]
        return later[0] if later and (len(later) < len(self._recent) or later[0].number == 0) else None


def _distinct(theirs: Iterable[Invariant[Any]]) -> list[Invariant[Any]]:
    """Return the systems' laws.

    Raises ValueError for two of one number.
    """
    known: dict[int, str] = dict.fromkeys(OWN, "one of the harness's own")
    laws = []
    for law in theirs:
        if law.number in known:
            raise ValueError(f"invariant {law.number} ({law.name}): that number is taken: {known[law.number]}")
        known[law.number] = law.name
        laws.append(law)
    return laws
