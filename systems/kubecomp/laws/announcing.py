"""What is asked back is announced again."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

NOTICED = 4
BOUND = "allocatable_s"
"""A device asked back is announced within the time in which nodes follow their hardware."""
UNATTACHED_BOUND = "unattached_s"
"""A request without an answer, or without a move, is given up within the time of a turn of Reconfig-Mgr."""

MOVES = ("attached", "detached", "edited", "inserted", "removed", "table")
HEALTH = (
    *("link-up", "function-added", "driver-bound", "nvml-visible", "nvml-hidden", "driver-unbound"),
    *("function-removed", "link-down", "xid", "lost", "nvml-recovered", "stuck", "draining", "persistence"),
)


class _Due(Struct):
    """A device that its node owes its kubelet; ``since_s``: the clock's start."""

    node: str
    line: Line
    since_s: float


class AnnouncedAgain(Invariant[RunState]):
    """A device that is asked back is in the plugin's list again within ``allocatable_s``, if it was healthy and is
    still on the node's port. The clock starts again with each change of the device. The law does not judge a device on
    which a fault is triggered. No request stands forever: one that leads to no move is asked back within
    ``unattached_s`` of the last line about it."""

    number = 34
    name = "a device that is asked back is announced again"
    of_time = True
    events = BOARD_EVENTS | {
        ("kubelet", "devices"),
        ("kubelet", "registered"),
        ("host", "table"),
        ("fault", "fired"),
        *(("chassis", event) for event in MOVES),
        *(("host", event) for event in HEALTH),
    }

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._config = config
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._place: dict[str, str | None] = {}
        self._healthy: dict[tuple[str, str], bool] = {}
        self._announced: dict[str, set[str]] = {}
        self._sound: set[str] = set()
        """Healthy as they were asked for, and struck by no fault since."""
        self._due: dict[str, _Due] = {}
        self._standing: dict[str, Line] = {}
        self._word_s = 0.0

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Start and stop the clocks."""
        self._board.take(line)
        if line.layer == "api":
            self._request(line)
        elif line.layer == "fault" or line.event in ("xid", "lost"):
            self._sound.discard(line.fields.get("gpuid", ""))
            self._due.pop(line.fields.get("gpuid", ""), None)
        elif line.layer == "chassis":
            self._chassis(line)
        elif line.layer == "host":
            self._host(line)
        elif line.layer == "kubelet":
            self._kubelet(line)
        return iter(())

    def _request(self, line: Line) -> None:
        gpuid, node = line.fields["gpuid"], line.fields.get("node", "")
        if line.event not in ("consented", "consent-ended"):  # Which is renewed for as long as it is asked for.
            self._word_s = line.t
        if line.event == "asked":
            owed = self._due.pop(gpuid, None)
            self._standing[gpuid] = line
            if self._healthy.get((node, gpuid), True):
                self._sound.add(gpuid)
            elif owed is None:
                self._sound.discard(gpuid)
        elif line.event == "asked-back":
            self._standing.pop(gpuid, None)
            if node not in self._lent and gpuid in self._sound and self._place.get(gpuid) == node:
                self._due[gpuid] = _Due(node, line, line.t)

    def _chassis(self, line: Line) -> None:
        self._word_s = line.t
        if line.event == "table":
            for row in line.fields["devices"].values():
                self._put(row["gpuid"], row.get("host"))
        elif "gpuid" in line.fields:
            self._put(line.fields["gpuid"], None if line.event == "removed" else line.fields.get("host"))

    def _put(self, gpuid: str, host: str | None) -> None:
        self._place[gpuid] = host
        due = self._due.get(gpuid)
        if due is not None and due.node != host:
            del self._due[gpuid]

    def _host(self, line: Line) -> None:
        host, fields = line.actor.partition("/")[2], line.fields
        if line.event == "table":
            self._healthy.update({(host, gpuid): bool(row["healthy"]) for gpuid, row in fields["devices"].items()})
        elif "gpuid" in fields:
            self._healthy[host, fields["gpuid"]] = bool(fields["healthy"])
            self._anew(fields["gpuid"], line.t)

    def _kubelet(self, line: Line) -> None:
        node, fields = line.actor.partition("/")[2], line.fields
        if fields.get("resource") != self._config.resource:
            return
        if line.event == "registered":
            self._announced[node] = set()
            for gpuid in [gpuid for gpuid, due in self._due.items() if due.node == node]:
                self._anew(gpuid, line.t)
            return
        self._announced[node] = set(fields["healthy"])
        for gpuid in [gpuid for gpuid in fields["healthy"] if gpuid in self._due]:
            if self._due[gpuid].node == node:
                del self._due[gpuid]

    def _anew(self, gpuid: str, t: float) -> None:
        if gpuid in self._due:
            self._due[gpuid].since_s = t

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge the clocks."""
        if self._due:
            yield from self._late(t, state)
        if self._standing and not self._board.is_moving():
            yield from self._forgotten(t, state)

    def _late(self, t: float, state: RunState) -> Iterator[Breach]:
        bound_s = state.bound_s(BOUND)
        if bound_s is None:
            return
        for gpuid, due in self._due.items():
            if gpuid in self._announced.get(due.node, ()):
                continue
            since_s = max(state.clock_from(NOTICED, due.since_s, each) for each in (None, gpuid))
            if t - since_s > bound_s + (state.bound_s(LAG) or 0.0):
                what = f"{due.node} does not announce {gpuid} for {t - due.line.t:.1f} s after it was asked back"
                yield Breach((gpuid, str(due.line.number)), what, due.line, gpuid, due_s=since_s + bound_s)

    def _forgotten(self, t: float, state: RunState) -> Iterator[Breach]:
        bound_s = state.bound_s(UNATTACHED_BOUND)
        if bound_s is None:
            return
        for gpuid, line in self._standing.items():
            since_s = max(state.clock_from(NOTICED, max(self._word_s, line.t), each) for each in (None, gpuid))
            if t - since_s > bound_s:
                what = f"{line.fields['node']} is asked for {gpuid} for {t - line.t:.1f} s, and nothing comes of it"
                yield Breach((gpuid, line.fields["request"]), what, line, gpuid, due_s=since_s + bound_s)
