"""A node that is there answers each request for its devices (contract kubecomp.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

EARLY_S = 0.5
"""Who waited so much less than its patience waited for all of it."""
NOTICED = 4
"""Its windows say that a node cannot know its hardware, or that somebody is down."""


class AnswersEachRequest(Invariant[RunState]):
    """A node consents to a request for a device, or refuses it, before Reconfig-Mgr has waited for its
    whole patience (``withdrawal_timeout_s``). This holds for a device that the node announced as healthy when it was
    requested. It does not hold if a fault was triggered on the device, or a component was down, during this time. The
    law judges a request when the device is asked back. What a node has consented to it does not refuse afterwards, nor
    does it take the consent back in order to refuse."""

    number = 38
    name = "a node answers each request for a device"
    of_time = True
    events = BOARD_EVENTS | POD_EVENTS

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._patience_s = config.timing.withdrawal_timeout_s
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._announced: dict[tuple[str, str], bool] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what was announced, and judge what is asked back."""
        self._board.take(line)
        if line.event == "asked":
            node, gpuid = line.fields["node"], line.fields["gpuid"]
            there = self._board.announced.get(node, {}).get(self._resource, ())
            self._announced[gpuid, line.fields["request"]] = gpuid in there
        elif line.event == "refused":
            yield from self._refused(line)
        elif line.event == "asked-back":
            announced = self._announced.pop((line.fields["gpuid"], line.fields["request"]), False)
            if announced and line.fields["node"] not in self._lent:  # Their users may take long to go.
                yield from self._asked_back(line, state)

    def _refused(self, line: Line) -> Iterator[Breach]:
        gpuid, request = line.fields["gpuid"], line.fields["request"]
        found = self._board.withdrawal(gpuid, request)
        if found is not None and found.consents and (found.consent_ended is None or found.consent_ended.t == line.t):
            what = f"{found.node} refuses to give up {gpuid} after it has consented"
            yield Breach((gpuid, request, "both"), what, line, gpuid, after=found.consents[-1])

    def _asked_back(self, line: Line, state: RunState) -> Iterator[Breach]:
        gpuid = line.fields["gpuid"]
        found = self._board.withdrawal(gpuid, line.fields["request"])
        if found is None or found.consents or found.refused is not None:
            return
        waited_s = line.t - found.asked.t
        is_struck = any(state.clock_from(NOTICED, found.asked.t, each) > found.asked.t for each in (None, gpuid))
        if waited_s + EARLY_S + (state.bound_s(LAG) or 0.0) < self._patience_s or is_struck:
            return
        what = f"{found.node} was asked for {gpuid} and gave no answer for {waited_s:.1f} s"
        yield Breach((gpuid, found.request), what, line, gpuid, after=found.asked, due_after=found.asked)
