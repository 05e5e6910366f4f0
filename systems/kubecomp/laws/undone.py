"""A device that cannot be attached where it is wanted goes back to where it was (contract kubecomp.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

_TABLE = ("attached", "detached", "edited", "removed", "inserted")


class _Free(Struct):
    """A device that no port has: the ports that it was to be attached to since, and the last of these lines."""

    ports: set[str] = field(default_factory=set)
    last: Line | None = None


class GoesBack(Invariant[RunState]):
    """Reconfig-Mgr tries each attach as often as configured. It then tries the port from which it took the device, and
    asks its node back only after that. The law judges devices of which an attach has begun, and after which no fault
    has kept it from the next one."""

    number = 1053
    name = "a device that its target does not get goes back to where it was"
    ours_alone = True
    events = (
        BOARD_EVENTS
        | {("chassis", event) for event in ("attach-begun", "down", *_TABLE)}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("fault", event) for event in ("fired", "added")}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._judges = not config.faults
        self._free: dict[str, _Free] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Follow devices that are free; judge the end of a move."""
        self._board.take(line)
        if line.layer in ("component", "fault") or line.event == "down":
            for each in self._free.values():
                each.last = None
        elif line.layer == "chassis":
            self._table(line, line.fields["gpuid"])
        elif line.event in ("asked-back", "move-ended") and self._judges and not state.bound_s(LAG):
            yield from self._judge(line, line.fields["gpuid"])

    def _table(self, line: Line, gpuid: str) -> None:
        if line.event == "detached":
            self._free[gpuid] = _Free()
        elif line.event != "attach-begun":
            self._free.pop(gpuid, None)
        elif gpuid in self._free:
            self._free[gpuid].ports.add(str(line.fields["port"]))
            self._free[gpuid].last = line

    def _judge(self, line: Line, gpuid: str) -> Iterator[Breach]:
        free, move = self._free.get(gpuid), self._board.last_move(gpuid)
        if free is None or free.last is None or move is None or move.fields["origin"] is None:
            return
        if move.fields["request"] == line.fields["request"] and str(move.fields["origin"]) not in free.ports:
            what = (
                f"{gpuid} is free, and nobody has tried to bring it back to {move.fields['origin_node'] or 'its port'}"
            )
            yield Breach((gpuid, line.fields["request"]), what, line, gpuid, after=free.last)
