"""A move is written down before its first change, and goes where it was written to (contract kubecomp.md section 3)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.laws.consent import BY_DESIGN
from mews.systems.kubecomp.laws.own_detach import OwnOperation, OwnOperations

UNWRITTEN = "the published implementation writes no move down (contract kubecomp.md 3, point 4)"


class WrittenFirst(Invariant[RunState]):
    """Each device that Reconfig-Mgr moves is one that its plan named, written down before its first change; it is
    attached where it was to go or, turned back, where it was."""

    number = 37
    name = "moved devices are those that the plan named"
    events = BOARD_EVENTS | {("chassis", "detach-begun"), ("chassis", "attach-begun")}

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._known = UNWRITTEN if config.has(KubeCompFault.NO_JOURNAL) else ""
        self._own = OwnOperations(config, board)

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is moved."""
        self._board.take(line)
        if line.layer == "chassis":
            self._own.on_line(line)
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge it."""
        for own in self._own.due(t, state):
            found = self._wrong(own)
            if found is not None:
                what, after = found
                key = BY_DESIGN if self._known else (own.gpuid, str(own.line.number))
                yield Breach(key, f"device {own.gpuid} {what}", own.line, own.gpuid, after=after, known=self._known)

    def _wrong(self, own: OwnOperation) -> tuple[str, Line | None] | None:
        did = "was attached" if own.line.event == "attach-begun" else "was detached"
        if own.move is None:
            return f"{did} and no move was written down", own.withdrawal.asked if own.withdrawal else None
        port, move = own.line.fields.get("port"), own.move.fields
        if own.line.event == "attach-begun" and port not in (move["target"], move["origin"]):
            return f"{did} to port {port}, and was to go to {move['target']}", own.move
        return None
