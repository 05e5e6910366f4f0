"""Which of a chassis' operations are Reconfig-Mgr's: those of moves that it wrote down, or of devices that it asked
for. Published, it writes and asks nothing: then all but an operator's."""

from __future__ import annotations

from msgspec import Struct

from mews.kube.system.invariant import RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import Board, Withdrawal

LAG = "lag_s"
ORDERLY = 10
"""A fault that excuses it for all devices lets the hardware's lines come late: nobody can say then what came first."""


class OwnOperation(Struct, frozen=True):
    """An operation on a device of the pool: the move that it belongs to, and the request for the device."""

    line: Line
    move: Line | None
    withdrawal: Withdrawal | None
    is_unannounced: bool = False
    """By the published code, which neither asks nor writes."""

    @property
    def gpuid(self) -> str:
        """The device."""
        return str(self.line.fields["gpuid"])


class OwnOperations:
    """Collects operations and gives them out ``lag_s`` later: what came before them may be told after them."""

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._is_silent = config.has(KubeCompFault.UNASKED_MOVE) and config.has(KubeCompFault.NO_JOURNAL)
        self._doubts: list[tuple[Line, bool]] = []

    def on_line(self, line: Line) -> None:
        """One that begins."""
        self._doubts.append((line, self._board.by_hand))

    @property
    def is_idle(self) -> bool:
        """Whether none is left to be judged."""
        return not self._doubts

    def due(self, t: float, state: RunState) -> list[OwnOperation]:
        """Return those that can be judged by now."""
        if not self._doubts:
            return []
        lag_s = state.bound_s(LAG) or 0.0
        due = [each for each in self._doubts if t - each[0].t > lag_s]
        if due:
            self._doubts = [each for each in self._doubts if t - each[0].t <= lag_s]
        due = [each for each in due if not state.excused(ORDERLY, each[0].t)]
        return [own for line, by_hand in due if (own := self._own(line, by_hand, lag_s)) is not None]

    def _own(self, line: Line, by_hand: bool, lag_s: float) -> OwnOperation | None:
        gpuid = line.fields["gpuid"]
        move = self._board.move(gpuid, line.t, lag_s)
        if move is not None:
            return OwnOperation(line, move, self._board.withdrawal(gpuid, move.fields["request"]))
        found = self._board.standing(gpuid, line.t, lag_s)
        if by_hand or (found is None and not self._is_silent):
            return None
        return OwnOperation(line, None, found, is_unannounced=found is None)
