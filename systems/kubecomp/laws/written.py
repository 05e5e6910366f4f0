"""A move is written down before its first change, and goes where it was written to (contract kubecomp.md section 3)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.laws.consent import BY_DESIGN
from mews.systems.kubecomp.laws.own_detach import LAG, ORDERLY, OwnOperation, OwnOperations

UNWRITTEN = "the published implementation writes no move down (contract kubecomp.md 3, point 4)"

UNATTACHED = 5
"""The law that a table breaks which shows a device where it is not any more."""
ELSEWHERE = ("attached", "edited", "inserted", "removed", "link-down", "link-up")
"""After which a device is not on no port by the move's own doing."""
MANAGER = "reconfig-manager"
"""The component's name."""


class WrittenFirst(Invariant[RunState]):
    """Each device that Reconfig-Mgr moves is named by its plan, which was written down before its first change. The
    device is attached at its target. If that was tried in vain or nobody wants it there, the device is attached where
    it was. The move has ended once the device is on a port again."""

    number = 37
    name = "moved devices are those that the plan named"
    events = (
        BOARD_EVENTS
        | POD_EVENTS
        | {("chassis", event) for event in ("detach-begun", "attach-begun", "detached", *ELSEWHERE)}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._known = UNWRITTEN if config.has(KubeCompFault.NO_JOURNAL) else ""
        self._own = OwnOperations(config, board)
        self._poll_s = config.timing.pool_poll_s
        self._tried: dict[str, int] = {}
        """Of a device's last move (the number of its line), the target was tried."""
        self._broken_off = -1
        """The last line by which a Reconfig-Mgr ended or began: it resumes what another left."""
        self._off: dict[str, Line] = {}
        """Devices on no port by an operation, and by nothing else since."""
        self._dead: set[str] = set()
        """Those whose link is down: no table shows them any more."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is moved."""
        self._board.take(line)
        if line.layer == "component":
            if line.actor.endswith(MANAGER):
                self._broken_off = line.number
        elif line.layer == "chassis":
            self._chassis(line)
        elif line.event == "move-ended":
            yield from self._ended(line, state)

    def _chassis(self, line: Line) -> None:
        gpuid = line.fields.get("gpuid", "")
        if line.event == "edited" and line.fields.get("host"):
            self._board.eased[line.fields["host"]] = line  # somebody else gives that node one
        if line.event in ("detach-begun", "attach-begun"):
            self._own.on_line(line)
        elif line.event == "detached" and gpuid not in self._dead:
            self._off[gpuid] = line
        elif line.event != "detached":
            self._dead.add(gpuid) if line.event == "link-down" else self._dead.discard(gpuid)
            self._off.pop(gpuid, None)

    def _ended(self, line: Line, state: RunState) -> Iterator[Breach]:
        """A move is over once the device is somewhere again: until then its record stays, for whoever comes next."""
        off = self._off.get(line.fields["gpuid"])
        if off is None or (state.bound_s(LAG) or 0.0) > 0:
            return
        if any(state.excused(law, line.t) for law in (ORDERLY, UNATTACHED)):
            return  # by the table, which a fault has made an old one, the device may still be where it was
        gpuid = line.fields["gpuid"]
        begun = self._board.last_move(gpuid)
        if begun is not None and begun.number < off.number:
            what = f"the move of device {gpuid} is over, and the device is on no port"
            yield Breach((gpuid, str(line.number)), what, line, gpuid, after=off)

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
        return self._astray(own, own.move) if own.line.event == "attach-begun" else None

    def _astray(self, own: OwnOperation, move: Line) -> tuple[str, Line] | None:
        """Return whether it is attached elsewhere than it was to go, or is turned back before that was tried and while
        its pod waits for it."""
        port, fields = own.line.fields.get("port"), move.fields
        if port == fields["target"]:
            self._tried[own.gpuid] = move.number
        elif port != fields["origin"]:
            return f"was attached to port {port}, and was to go to {fields['target']}", move
        elif self._tried.get(own.gpuid) != move.number and self._is_wanted(move):
            return f"was turned back to port {port} before port {fields['target']} was tried", move
        return None

    def _is_wanted(self, move: Line) -> bool:
        """Return whether its pod waited for the target's node all the time, and nothing happened there that it may have
        enough by."""
        pod = self._board.pods.get(f"pod/{move.fields['pod']}")
        if pod is None or pod.uid != move.fields["uid"] or pod.bound is not None or pod.ended is not None:
            return False
        eased = self._board.eased.get(move.fields["target_node"])
        # By somebody else's edit it has more once the chassis is read again.
        since_s = move.t - self._poll_s if eased is not None and eased.event == "edited" else move.t
        is_eased = eased is not None and (eased.number > move.number or since_s <= eased.t < move.t)
        return pod.target == move.fields["target_node"] and not is_eased and self._broken_off < move.number
