"""Permit holds a pod for as long as is configured, and no longer (contract kubecomp.md section 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import POD_EVENTS, Board, LawPod
from mews.systems.kubecomp.laws.consent import BY_DESIGN
from mews.systems.kubecomp.laws.own_detach import LAG

NEVER_CLEARED = "the published implementation never clears a pod's annotations (contract kubecomp.md 3, point 3)"
SCHEDULER = "scheduler"
"""The component's name."""
SETTLE_S = 5.0
"""Giving up is a few writes to the API."""

BASE_S, PER_DEVICE_S, LIMIT_S = 60.0, 60.0, 900.0
PUBLISHED_BOUNDS_S = {"10+30n": (10.0, 30.0), "15+5n": (15.0, 5.0)}
"""Reckoned here once more, and not by ``policy`` or ``published``, so that a mistake there is found."""

_TIMEOUT = re.compile(r"rejected due to timeout after waiting (\S+) at plugin FalconResources")
_PARTS = re.compile(r"([0-9.]+)(h|ms|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class _Hold(Struct, frozen=True):
    """A pod at Permit: the line that says so, and what it lacks."""

    line: Line
    demand: int


class PermitEnds(Invariant[RunState]):
    """A pod that is annotated for a node is bound, or released with its annotations cleared, within Permit's bound. The
    bound grows with the number of devices that the pod lacks. A pod that is released because of the bound was held for
    exactly that long. A pod is bound as soon as its node shows enough devices for all pods there."""

    number = 35
    name = "Permit's bound grows as configured, and ends"
    of_time = True
    events = POD_EVENTS | {
        ("api", "event"),
        ("api", "allocatable"),
        *(("component", event) for event in ("started", "killed", "crashed")),
    }

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._scheduler = config.scheduler_name
        short = config.has(KubeCompFault.SHORT_PERMIT)
        self._published = PUBLISHED_BOUNDS_S[config.permit_bound] if short else None
        self._known = NEVER_CLEARED if config.has(KubeCompFault.STALE_DEMAND) else ""
        self._up_s: float | None = 0.0
        """Since when the scheduler runs; None while it does not."""
        self._resource = config.resource
        self._shown: dict[str, Line] = {}
        """Node -> the last line of how many devices it shows."""
        self._enough: dict[str, Line] = {}
        """Pods whose node shows enough, and the line since when."""
        self._holds: dict[str, _Hold] = {}
        self._last: dict[str, _Hold] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Start and stop the clocks; a timeout says how long it was."""
        self._board.take(line)
        if line.layer == "component":
            self._component(line)
        elif line.layer == "api" and line.event in ("annotations", "bound", "deleted", "phase"):
            self._note(line)
        elif line.event == "allocatable":
            if line.fields["resource"] == self._resource:
                self._shown[line.actor.partition("/")[2]] = line
                self._look(line)
        elif line.event == "event" and line.fields.get("reason") == "FailedScheduling":
            yield from self._timeout(line, state)

    def _component(self, line: Line) -> None:
        if line.actor.endswith(SCHEDULER):
            self._up_s = line.t if line.event == "started" else None

    def _claim(self, node: str, line: Line) -> None:
        """Another pod that is bound there, or is to be, may take what the others would have had."""
        if line.event in ("bound", "annotations"):
            for actor in [actor for actor in self._enough if self._board.pods[actor].target == node]:
                del self._enough[actor]

    def _look(self, line: Line) -> None:
        node = line.actor.partition("/")[2]
        there = [(actor, pod) for actor, pod in self._board.pods.items() if node in (pod.node, pod.target)]
        asked = sum(int(pod.requests.get(self._resource, 0)) for _, pod in there if pod.ended is None)
        is_enough = int(line.fields["new"] or 0) >= asked
        for actor, _ in there:
            if actor in self._holds and is_enough:
                self._enough.setdefault(actor, line)
            else:
                self._enough.pop(actor, None)

    def _bound_s(self, demand: int) -> float:
        if self._published is not None:
            base_s, per_device_s = self._published
            return base_s + per_device_s * demand
        return min(BASE_S + PER_DEVICE_S * demand, LIMIT_S)

    def _note(self, line: Line) -> None:
        pod = self._board.pods.get(line.actor)
        if pod is not None:
            self._claim(pod.node or pod.target, line)
        if pod is None or not self._is_held(pod):
            ended = self._holds.pop(line.actor, None)
            self._enough.pop(line.actor, None)
            if line.event == "deleted":
                self._last.pop(line.actor, None)
            elif ended is not None:
                self._last[line.actor] = ended
        elif pod.noted is line:
            self._holds[line.actor] = self._last[line.actor] = _Hold(line, pod.demand)

    def _is_held(self, pod: LawPod) -> bool:
        return bool(pod.target) and pod.bound is None and pod.ended is None and pod.demand > 0

    def _timeout(self, line: Line, state: RunState) -> Iterator[Breach]:
        match = _TIMEOUT.search(str(line.fields.get("message", "")))
        hold = self._last.get(str(line.fields.get("object")))
        if match is None or hold is None or line.actor.partition("/")[0] != self._scheduler:
            return
        named_s = sum(float(amount) * _UNITS[unit] for amount, unit in _PARTS.findall(match.group(1)))
        bound_s, held_s = self._bound_s(hold.demand), line.t - hold.line.t
        restarted = self._up_s is None or self._up_s > hold.line.t
        short = held_s < bound_s - 1.0 - (state.bound_s(LAG) or 0.0) and not restarted
        if abs(named_s - bound_s) > 0.5 or short:
            what = f"{line.fields['object']} lacks {hold.demand} and was held for {min(named_s, held_s):g} s"
            yield Breach(
                (line.fields["object"], str(line.number)), f"{what} (bound {bound_s:g} s)", line, after=hold.line
            )

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge the clocks."""
        if self._up_s is None:
            return
        for actor, since in list(self._enough.items()):
            if t - since.t > SETTLE_S + 2 * (state.bound_s(LAG) or 0.0):
                del self._enough[actor]
                if max(state.clock_from(self.number, since.t), self._up_s) <= since.t:
                    what = f"{actor} is held {t - since.t:.1f} s after its node has shown enough for it"
                    yield Breach((actor, "enough", str(since.number)), what, since, due_s=since.t)
        for actor, hold in self._holds.items():
            bound_s = self._bound_s(hold.demand) + SETTLE_S + 2 * (state.bound_s(LAG) or 0.0)
            if t - max(state.clock_from(self.number, hold.line.t), self._up_s) <= bound_s:
                continue
            what = f"{actor} lacks {hold.demand} and is held for {t - hold.line.t:.1f} s (bound {bound_s:g} s)"
            key = BY_DESIGN if self._known else (actor, str(hold.line.number))
            yield Breach(key, what, hold.line, known=self._known)
