"""Devices are moved for a pod that waits and lacks them, and for nobody else (contract kubecomp.md section 2)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board, LawPod
from mews.systems.kubecomp.laws.consent import BY_DESIGN
from mews.systems.kubecomp.laws.own_detach import LAG, ORDERLY, OwnOperation, OwnOperations
from mews.systems.kubecomp.records import EVENT_REASON

STALE = "the published implementation moves what annotations say, however old (contract kubecomp.md 3, point 3)"
GRACE_S = 2.0
"""What the API has said for this long everybody knows."""
KNOWN_S = 0.5
"""What it has said for this long Reconfig-Mgr knows, which looks just before it asks, and before it moves."""


class OnlyForShortage(Invariant[RunState]):
    """A device is requested only while a pod is annotated for a node and not bound. The Reconfig event is about such a
    pod. A device is detached for a pod that exists, is not bound and is annotated for the node to which the device
    goes. That node must lack devices for the pod: its plugin announces less than this pod and the other pods there ask
    for. The device goes back first if its pod was gone when the device was detached."""

    number = 36
    name = "a reconfiguration is for a pod that waits and lacks devices"
    events = (
        BOARD_EVENTS
        | POD_EVENTS
        | {
            ("api", "event"),
            ("fault", "fired"),
            *(("chassis", event) for event in ("detach-begun", "attach-begun")),
            *(("chassis", event) for event in ("attached", "detached", "edited", "removed")),
        }
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._scheduler = config.scheduler_name
        self._known = STALE if config.has(KubeCompFault.STALE_DEMAND) else ""
        self._own = OwnOperations(config, board)
        self._events: list[Line] = []
        self._moving: dict[str, str] = {}
        self._struck: set[str] = set()
        self._came: dict[str, tuple[str, Line]] = {}
        self._edited: dict[str, tuple[str | None, str | None]] = {}
        """Devices that somebody else put elsewhere, until they are attached: the host that may still announce it, and
        the one that has it before Reconfig-Mgr reads so."""
        self._sums: dict[int, tuple[str, Line]] = {}
        """Of a detach, why it is not needed, by what was known as it began."""
        self._asks: list[Line] = []
        self._off: dict[str, Line] = {}
        """The last detach of each device, until it is attached, or an attach to where it was has begun."""
        self._onward: dict[int, Line] = {}
        """Of an attach, the detach that it follows."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is told and what is detached."""
        self._board.take(line)
        if line.layer == "chassis":
            self._chassis(line)
        elif line.layer == "fault":
            self._struck.add(str(line.fields.get("gpuid")))  # It may be there and of no use.
            self._came.pop(str(line.fields.get("gpuid")), None)
        elif line.event == "move-begun":
            self._moving[line.fields["gpuid"]] = line.fields["target_node"]
        elif line.event == "move-ended":
            self._moving.pop(line.fields["gpuid"], None)
        elif line.event == "asked":
            self._asks.append(line)
        elif line.event == "event" and line.fields.get("reason") == EVENT_REASON:
            self._events.append(line)
        return iter(())

    def _chassis(self, line: Line) -> None:
        gpuid = line.fields["gpuid"]
        if line.event == "detach-begun":
            if line.fields.get("old_port") is not None:
                self._own.on_line(line)
                if (found := self._sum(line)) is not None:
                    self._sums[line.number] = found
        elif line.event == "attach-begun":
            self._attach(line, gpuid)
        elif line.event == "detached":
            self._off[gpuid] = line
            self._came.pop(gpuid, None)
        elif line.event == "attached" and self._moving.get(gpuid) == line.fields["host"] and gpuid not in self._struck:
            self._came[gpuid] = (line.fields["host"], line)
        else:
            self._came.pop(gpuid, None)
        if line.event in ("edited", "removed"):
            self._edited[gpuid] = line.fields.get("old_host"), line.fields.get("host")
        elif line.event == "attached":
            self._edited.pop(gpuid, None)

    def _attach(self, line: Line, gpuid: str) -> None:
        move, off = self._board.move(gpuid, line.t, 0.0), self._off.get(gpuid)
        if move is None or off is None or off.number < move.number:
            return
        if line.fields.get("port") == move.fields["target"]:
            self._onward[line.number] = off
            self._own.on_line(line)
        else:
            del self._off[gpuid]

    def _sum(self, line: Line) -> tuple[str, Line] | None:
        move = self._board.move(line.fields["gpuid"], line.t, 0.0)
        pod = None if move is None else self._board.pods.get(f"pod/{move.fields['pod']}")
        if move is None or pod is None or pod.uid != move.fields["uid"]:
            return None
        return self._sated(pod, move.fields["target_node"], line.t)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge it."""
        lag_s, known_s = (grace_s + (state.bound_s(LAG) or 0.0) for grace_s in (GRACE_S, KNOWN_S))
        for own in self._own.due(t, state):
            sated, off = self._sums.pop(own.line.number, None), self._onward.pop(own.line.number, None)
            if own.move is not None and off is None:
                yield from self._moved(own, own.move, sated, known_s)
            elif own.move is not None and off is not None and not state.excused(ORDERLY, off.t):
                yield from self._moved_on(own, own.move, off, known_s)
        if self._own.is_idle:
            self._sums.clear()  # What is left is an operator's doing.
            self._onward.clear()
        if self._asks:
            asks, self._asks = self._asks, [line for line in self._asks if t - line.t <= known_s]
            for line in asks:
                if t - line.t > known_s:
                    yield from self._asked(line, known_s)
        if self._events:
            due = [line for line in self._events if t - line.t > lag_s]
            self._events = [line for line in self._events if t - line.t <= lag_s]
            for line in due:
                yield from self._event(line, lag_s)

    def _asked(self, line: Line, known_s: float) -> Iterator[Breach]:
        """A device is asked for while nobody waits."""
        pods = self._board.pods.values()
        if any(pod.wanted is not None and not self._idle(pod, line.t, known_s) for pod in pods):
            return
        last = max((why[1] for pod in pods if (why := self._idle(pod, line.t, known_s))), key=_number, default=None)
        if last is not None:
            what = f"{line.fields['node']} is asked for {line.fields['gpuid']}, and no pod waits for a device"
            yield self._breach(what, line, last, line.fields["gpuid"])

    def _moved_on(self, own: OwnOperation, move: Line, off: Line, known_s: float) -> Iterator[Breach]:
        """Yield a device that came off when its pod was gone is brought to the pod's node first."""
        pod = self._board.pods.get(f"pod/{move.fields['pod']}")
        why = self._idle(pod, off.t, known_s) if pod is not None and pod.uid == move.fields["uid"] else None
        if why:
            what = f"device {own.gpuid} is attached for pod/{move.fields['pod']}, which {why[0]}"
            yield self._breach(what, own.line, why[1], own.gpuid)

    def _event(self, line: Line, lag_s: float) -> Iterator[Breach]:
        pod = self._board.pods.get(str(line.fields["object"]))
        if pod is None or pod.created.number > line.number:
            return  # The name has gone to another pod since; an event's line has no UID.
        why = self._idle(pod, line.t, lag_s)
        if not why and (pod.wanted is None or pod.wanted.t > line.t + lag_s):
            why = "lacks nothing by its annotations", pod.created
        if why:
            yield self._breach(f"{line.fields['object']} needs reconfiguration and {why[0]}", line, why[1], "event")

    def _idle(self, pod: LawPod, t: float, lag_s: float) -> tuple[str, Line] | None:
        """Return why nothing needs to be moved for it, known for long enough."""
        if pod.ended is not None and pod.ended.t < t - lag_s:
            return "is gone", pod.ended
        if pod.bound is not None and pod.bound.t < t - lag_s:
            return f"is bound to {pod.node}", pod.bound
        if pod.cleared is not None and pod.cleared.t < t - lag_s:
            return "waits for no node", pod.cleared
        return None

    def _moved(self, own: OwnOperation, move: Line, sated: tuple[str, Line] | None, lag_s: float) -> Iterator[Breach]:
        actor = f"pod/{move.fields['pod']}"
        pod = self._board.pods.get(actor)
        if pod is None:
            return
        if pod.uid != move.fields["uid"]:
            why: tuple[str, Line] | None = ("is another one by now", pod.created)
            if pod.created.t >= own.line.t - lag_s:
                return
        else:
            why = self._idle(pod, own.line.t, lag_s) or sated
        if why:
            yield self._breach(
                f"device {own.gpuid} is detached for {actor}, which {why[0]}", own.line, why[1], own.gpuid
            )

    def _sated(self, pod: LawPod, node: str, t: float) -> tuple[str, Line] | None:
        """Return whether the node has had enough for long enough: what its plugin announces and nobody asks back, and
        what Reconfig-Mgr itself has brought there."""
        eased = self._board.eased.get(node)
        if eased is None or eased.t >= t - GRACE_S:
            return None
        asked = {each.gpuid for each in self._board.all_standing() if each.node == node}
        came = {gpuid: line for gpuid, (host, line) in self._came.items() if host == node}
        edited = {gpuid for gpuid, hosts in self._edited.items() if node in hosts}
        there = {*self._board.announced.get(node, {}).get(self._resource, ()), *came} - asked - edited
        live = (each for each in self._board.pods.values() if each.ended is None)
        theirs = [each for each in live if each is pod or node in (each.node, each.target)]
        needed = sum(int(each.requests.get(self._resource, 0)) for each in theirs)
        last = max((eased, *came.values()), key=lambda line: line.number)
        return (f"has enough on {node}", last) if len(there) >= needed else None

    def _breach(self, what: str, line: Line, after: Line, of: str) -> Breach:
        key = BY_DESIGN if self._known else (of, str(line.number))
        return Breach(key, what, line, line.fields.get("gpuid"), after=after, known=self._known)


def _number(line: Line) -> int:
    return line.number
