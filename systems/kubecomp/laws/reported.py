"""What a pod waits for is reported (contract kubecomp.md section 2, the scheduler)."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from msgspec import Struct

from mews.kube.system.invariant import Breach, RunState
from mews.kube.system.journal import Line
from mews.kube.system.reported_acts import ReportedActs
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.records import DST_NODE, EVENT_REASON, REFUSAL_REASON, USE_FALCON


def _wanted(line: Line) -> tuple[str, ...]:
    noted = line.fields["annotations"]
    return (EVENT_REASON,) if noted.get(DST_NODE) and noted.get(USE_FALCON) == "true" else ()


class _Refusal(Struct):
    """What an event is to say; ``back``: the line by which the device was asked back, ``follower`` the next one."""

    words: str
    back: Line
    follower: Line | None = None


class WaitIsReported(ReportedActs):
    """The scheduler writes onto a pod which node is to be composed for it, and reports this by an event. Reconfig-Mgr
    reports a refusal for which the host names a reason, in the moment in which it asks the device back. The same words
    about the same pod are no news."""

    number = 98
    name = "a pod that waits for devices has an event that says so, and one for each refusal"
    of_time = True
    events = frozenset(
        {("api", event) for event in ("event", "annotations", "bound", "condition", "deleting", "deleted")}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | BOARD_EVENTS
    )
    acts = MappingProxyType({("api", "annotations"): _wanted})

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        super().__init__()
        self._board = board
        self._refusals: list[_Refusal] = []
        self._reported_words: set[str] = set()
        """The words of refusals that events have told, or should have."""

    def on_line(self, line: Line, state: RunState) -> Iterable[Breach]:
        """Take in what is done, refused and reported."""
        self._board.take(line)
        found = list(super().on_line(line, state))
        if self._refusals and self._refusals[-1].follower is None:
            self._refusals[-1].follower = line
        if line.event == "asked-back":
            self._asked_back(line)
        elif line.event == "event" and line.fields["reason"] == REFUSAL_REASON:
            self._reported_words.add(str(line.fields["message"]))
            self._refusals = [each for each in self._refusals if each.words != line.fields["message"]]
        elif line.layer == "component":
            self._refusals.clear()
        return found

    def _asked_back(self, line: Line) -> None:
        asked = self._board.withdrawal(line.fields["gpuid"], line.fields["request"])
        if asked is None or asked.refused is None or asked.consents or self._down:
            return
        if not asked.refused.fields["reason"]:
            return  # its host would give it, and a pod has it
        words = f"{asked.gpuid} cannot be taken from {asked.node}: {asked.refused.fields['reason']}"
        if words not in self._reported_words:
            self._refusals.append(_Refusal(words, line))

    def on_time(self, t: float, state: RunState) -> Iterable[Breach]:
        """Judge what nobody has reported in its moment."""
        found = list(super().on_time(t, state))
        for each in [each for each in self._refusals if t > each.back.t + (state.bound_s("lag_s") or 0.0)]:
            self._refusals.remove(each)
            self._reported_words.add(each.words)
            if state.clock_from(self.number, each.back.t) > each.back.t or state.bound_s("lag_s"):
                continue
            what = f"no event {REFUSAL_REASON} says {each.words!r}"
            found.append(Breach((each.words,), what, each.follower or each.back, after=each.back, due_s=each.back.t))
        return found
