"""Who waits for devices is served, or learns why not (contract kubecomp.md section 2, Reconfig-Mgr)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.laws.consent import READING_S
from mews.systems.kubecomp.laws.own_detach import LAG

TIMED_OUT = "timeout after waiting"
"""In the words of the scheduling framework of a pod that Permit held for as long as it may (waiting_pods_map.go)."""
_TRIES = frozenset({("chassis", "detach-begun"), ("chassis", "attach-begun")})
_WORDS = frozenset({"asked", "asked-back", "refused", "move-begun", "move-ended"})
_REFUSED = "ReconfigRefused"
_SCHEDULED = 8
"""The law whose windows say that nobody can serve anybody."""


class WaitIsServed(Invariant[RunState]):
    """PreFilter lets a pod wait only where its pool has as many free devices as it asks for. While Permit holds the
    pod, Reconfig-Mgr asks for a device, moves one, or reports that it was refused. It begins after the next reading of
    its chassis. The law judges a wait early if no request stands and no move is under way. It judges other waits when
    they time out, because refusals delay them. It does not judge a wait in which a component or a chassis was down, or
    a fault kept a component from knowing."""

    number = 86
    name = "while a pod waits for devices, one is asked for or moved"
    of_time = True
    ours_alone = True
    events = (
        BOARD_EVENTS
        | POD_EVENTS
        | _TRIES
        | {("api", "event"), *(("component", event) for event in ("started", "killed", "crashed"))}
        | {("chassis", "down"), ("chassis", "up")}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._scheduler = config.scheduler_name
        self._reported: dict[str, Line] = {}
        self._last: Line | None = None
        """The last line by which somebody did something, or could not."""
        self._young: dict[str, Line] = {}
        """Waits since which nobody has done anything."""
        self._is_published = bool(config.faults) or config.has(KubeCompFault.UNASKED_MOVE)
        self._begins_s = config.timing.pool_poll_s + READING_S

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is done, and judge waits as they time out."""
        self._board.take(line)
        is_try = (line.layer, line.event) in _TRIES or line.event in _WORDS
        if is_try or line.layer == "component" or line.event in ("down", "up"):
            self._note(line)
        elif line.event == "annotations":
            pod = self._board.pods.get(line.actor)
            if pod is not None and pod.noted is line and pod.target and pod.demand > 0:
                self._reported[line.actor] = line
                if self._is_calm() and pod.bound is None and pod.ended is None:
                    self._young[line.actor] = line
            else:
                self._young.pop(line.actor, None)
        elif line.event in ("bound", "deleted"):
            self._young.pop(line.actor, None)
        elif line.event == "event" and line.fields["reason"] == _REFUSED:
            self._note(line)
        elif line.event == "event" and TIMED_OUT in str(line.fields["message"]):
            yield from self._timed_out(line, state)

    def _note(self, line: Line) -> None:
        self._last = line
        self._young.clear()

    def _is_calm(self) -> bool:
        return not self._is_published and not self._board.is_moving() and not any(self._board.all_standing())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge waits that nobody serves."""
        for actor, reported in list(self._young.items()):
            since_s = state.clock_from(_SCHEDULED, reported.t)
            if t - reported.t <= self._begins_s:
                continue
            del self._young[actor]
            if since_s > reported.t or state.bound_s(LAG):
                continue
            what = f"{actor} waits {t - reported.t:.1f} s for devices, and nobody has begun to serve it"
            yield Breach((reported.fields["uid"], "begin"), what, reported, due_s=reported.t)

    def _timed_out(self, line: Line, state: RunState) -> Iterator[Breach]:
        reported = self._reported.pop(str(line.fields["object"]), None)
        if reported is None or line.actor.partition("/")[0] != self._scheduler or state.bound_s(LAG):
            return
        if self._last is not None and self._last.number > reported.number:
            return
        if state.clock_from(_SCHEDULED, reported.t) > reported.t:
            return
        what = (
            f"{line.fields['object']} waited {line.t - reported.t:.0f} s for devices, and none was asked for or moved"
        )
        yield Breach((reported.fields["uid"], str(reported.number)), what, line, after=reported)
