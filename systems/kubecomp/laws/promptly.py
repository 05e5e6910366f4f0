"""Who is asked waits for the answer, and who has cause acts (contract kubecomp.md section 2, Reconfig-Mgr)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.laws.answering import EARLY_S, NOTICED
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board, LawPod, Withdrawal
from mews.systems.kubecomp.laws.consent import READING_S
from mews.systems.kubecomp.laws.own_detach import LAG
from mews.systems.kubecomp.laws.tried import TIMED_OUT
from mews.systems.kubecomp.records import USE_FALCON

IDLE_S = READING_S + 1.0
"""Reconfig-Mgr reads a chassis before it asks for a device; what comes later may have had no cause for so long."""
_NO_NEWS = frozenset({"condition", "event", "allocatable", "phase"})
"""The lines of which there are most, and which no request and no answer is among."""
MANAGER = "reconfig-manager"
SEEN_S = 1.0
"""A device manager looks once in so long at the devices of its node."""
LETS_GO_S = 10.0
"""A host that has just let one device go takes the next one out only once its hot-plug is done."""
NEAR_S = 0.001
RETRIED_S = 15.0
"""So long a scheduler tries to take its annotations off once nothing keeps it from that (``annotations.clear``)."""
CHECKS = 2
"""A node looks at what it gives up once in ``withdrawal_check_s``: so many of them, and what is due has happened."""
_OF_A_NODE = ("device-manager/", "kubelet/")
"""Without them devices of other nodes can be asked for."""
_OF_A_HOST = frozenset(
    {("host", event) for event in ("persistence", "draining", "nvml-hidden", "driver-unbound", "function-removed")}
)


class WaitsItsPatience(Invariant[RunState]):
    """A request that its node has neither granted nor refused stands for the whole patience of Reconfig-Mgr
    (``withdrawal_timeout_s``). This holds even where nobody is there to answer. There are three exceptions: the device
    has gone, the node's report shows without an answer that it is held, or Reconfig-Mgr restarted in this time. The law
    judges a request when the device is asked back."""

    number = 87
    name = "a request for a device stands until it is answered, or patience ends"
    ours_alone = True
    events = (
        BOARD_EVENTS
        | POD_EVENTS
        | {("chassis", event) for event in ("detached", "edited", "removed", "device-changed")}
        | {("component", event) for event in ("started", "killed", "crashed")}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._patience_s = config.timing.withdrawal_timeout_s
        self._moved: dict[str, Line] = {}
        self._began: Line | None = None

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge what is asked back."""
        self._board.take(line)
        if line.layer == "component":
            self._began = line if line.actor == MANAGER else self._began
        elif line.layer == "chassis":
            self._moved[line.fields["gpuid"]] = line
        elif line.event == "asked-back":
            yield from self._asked_back(line, state)

    def _asked_back(self, line: Line, state: RunState) -> Iterator[Breach]:
        gpuid = line.fields["gpuid"]
        found = self._board.withdrawal(gpuid, line.fields["request"])
        if found is None or found.consents or found.refused is not None or state.bound_s(LAG):
            return
        waited_s, since_s = line.t - found.asked.t, found.asked.t
        moved = self._moved.get(gpuid)
        if waited_s + EARLY_S >= self._patience_s or (moved is not None and moved.t >= since_s):
            return
        if self._is_held(gpuid, state) or (self._began is not None and self._began.t >= since_s):
            return
        what = f"{gpuid} is asked back from {found.node} after {waited_s:.1f} s without an answer"
        yield Breach(
            (gpuid, found.request, "patience"), f"{what} (patience {self._patience_s:g} s)", line, gpuid, found.asked
        )

    def _is_held(self, gpuid: str, state: RunState) -> bool:
        return any(gpuid in each.devices or gpuid in each.parts_of for each in state.live_holdings())


class ActsAtOnce(Invariant[RunState]):
    """Reconfig-Mgr asks for a device when something causes it: a pod that waits, a report or an answer. What it asks
    for long after any event, at its regular look (``pool_poll_s``), it could have asked for before. A node that is
    asked for a device begins to give it up, or answers, at its next look (``withdrawal_check_s``). This holds if the
    node is asked for no other device. Other times apply to what was refused or asked back before. A node consents in
    the moment in which it has taken the device off its host. A move that is written down begins before the consent to
    it is renewed, and goes on to its end. After a restart, Reconfig-Mgr attaches the free device of
    a move that it has written down."""

    number = 88
    name = "who has cause to act for a pod that waits does so at once"
    ours_alone = True
    of_time = True

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._check_s = config.timing.withdrawal_check_s
        self._settle_s = config.timing.empty_settle_s
        self._kubelets_s: dict[str, float] = {}
        """Node -> when its kubelet began last: what it lists as empty then is not believed at first."""
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._is_published = bool(config.faults) or config.has(KubeCompFault.UNASKED_MOVE)
        self._last: Line | None = None
        self._tried: set[str] = set()
        self._open: dict[str, tuple[Withdrawal, Line]] = {}
        """Device -> its request, and the last line that may have kept its node from giving it up."""
        self._poll_s = config.timing.pool_poll_s
        self._started_s = 0.0
        self._edit_seen_s = self._poll_s + config.timing.read_back_bound_s
        self._back_s = -1.0
        """When somebody was killed or started last who belongs to no node."""
        self._off: dict[str, Line] = {}
        """Device -> how its host let go of it, until somebody acts on that."""
        self._begun: dict[str, Line] = {}
        """Device -> the last operation of a chassis on it."""
        self._free: dict[str, Line] = {}
        """Devices that no port has, and since when."""
        self._down: set[str] = set()
        self._is_struck = False
        self._left_s: dict[str, float] = {}
        """Host -> when it let a device go last."""
        self._came_s: dict[str, float] = {}
        """Device -> when a host showed it last."""
        self._edited_s = -math.inf
        """When somebody else changed a table last."""

    # Complex: one branch for each kind of line, and it runs for every line.
    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:  # noqa: C901
        """Judge requests and their answers."""
        before, self._last = self._last, line
        layer = line.layer
        if layer == "api" and line.event in _NO_NEWS and not self._open:
            return
        if layer in ("api", "kubelet", "step"):
            self._board.take(line)
        elif layer in ("component", "fault"):
            self._note_trouble(line)
        if self._is_published or state.bound_s(LAG):
            return
        if line.layer == "host" and line.event in ("function-removed", "link-down"):
            self._left_s[line.actor.partition("/")[2]] = line.t
            self._off[line.fields["gpuid"]] = line
        elif line.layer == "host" and line.event == "nvml-visible":
            self._came_s[line.fields["gpuid"]] = line.t
        elif line.layer == "chassis":
            self._note_table(line)
        if self._open:
            yield from self._given_up(line, state)
        if line.event == "asked" and line.actor.startswith("withdrawal/"):
            yield from self._asked(line, before, state)
        elif line.event in ("attach-begun", "detach-begun"):
            self._begun[line.fields["gpuid"]] = line
        elif line.event == "consented":
            yield from self._consented(line)
            yield from self._renewed(line)

    def _consented(self, line: Line) -> Iterator[Breach]:
        """The first consent to a request comes as the device has left its host."""
        gpuid, node = line.fields["gpuid"], line.fields["node"]
        off, withdrawal = self._off.pop(gpuid, None), self._board.withdrawal(gpuid, line.fields["request"])
        if off is None or withdrawal is None or off.actor != f"host/{node}" or node in self._lent:
            return
        is_first = all(each is line for each in withdrawal.consents)
        if is_first and withdrawal.asked.number < off.number and line.t - off.t > NEAR_S:
            what = f"{node} consents to give up {gpuid} {line.t - off.t:.1f} s after its host has let it go"
            yield Breach((gpuid, withdrawal.request, "consent"), what, line, gpuid, after=off)

    def _renewed(self, line: Line) -> Iterator[Breach]:
        """A consent is renewed while a move that was written down has not begun."""
        gpuid = line.fields["gpuid"]
        move, begun = self._board.move(gpuid, line.t, 0.0), self._begun.get(gpuid)
        if move is None or self._down or self._is_struck or line.t - move.t <= 2 * READING_S:
            return
        free = self._free.get(gpuid)
        if self._back_s >= move.t and free is not None and begun is not None and free.t <= self._back_s:
            if begun.t < self._back_s < line.t - 2 * READING_S:
                what = f"{gpuid} is free and its move was written down, and nothing is done since all are back"
                yield Breach((gpuid, str(move.number), "taken up"), what, line, gpuid, after=free)
            return
        if self._back_s >= move.t:
            return  # Somebody was away, and is tried again after a back-off.
        if begun is not None and free is not None and begun.number > move.number and free.number > begun.number:
            if line.t - free.t > 2 * READING_S:
                what = f"{gpuid} was detached {line.t - free.t:.1f} s ago for a move, and is not attached"
                yield Breach((gpuid, str(move.number), "halfway"), what, line, gpuid, after=free)
        elif begun is None or begun.number < move.number:
            what = f"the move of {gpuid} was written down {line.t - move.t:.1f} s ago, and nothing is done"
            yield Breach((gpuid, str(move.number), "idle"), what, line, gpuid, after=move)

    def _note_table(self, line: Line) -> None:
        if line.event == "edited":
            self._edited_s = line.t
        if line.event in ("detached", "attached", "edited", "inserted"):
            if line.fields["port"] is None:
                self._free[line.fields["gpuid"]] = line
            else:
                self._free.pop(line.fields["gpuid"], None)

    def _note_trouble(self, line: Line) -> None:
        """Who is not there cannot act, and a chassis with a fault may take its time to be read."""
        self._off.clear()
        if line.layer == "component" and not line.actor.startswith(_OF_A_NODE):
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
            self._started_s = line.t if line.actor == MANAGER else self._started_s
            self._back_s = line.t
        elif line.layer == "component" and line.actor.startswith("kubelet/"):
            self._kubelets_s[line.actor.partition("/")[2]] = line.t
        elif line.layer == "fault" and line.actor.startswith("chassis/"):
            self._is_struck = True

    def _asked(self, line: Line, before: Line | None, state: RunState) -> Iterator[Breach]:
        gpuid, node = line.fields["gpuid"], line.fields["node"]
        withdrawal = self._board.withdrawal(gpuid, line.fields["request"])
        if withdrawal is not None and node not in self._lent:
            self._open[gpuid] = withdrawal, line
        is_first = gpuid not in self._tried
        self._tried.add(gpuid)
        if before is None or not is_first or line.t - before.t <= (IDLE_S if self._is_poll(line.t) else self._poll_s):
            return
        if line.t - self._edited_s <= self._edit_seen_s:
            return  # What somebody else does to a chassis is seen when it is read next, and may be taken for old.
        if not self._down and not self._is_struck:
            what = f"{gpuid} is asked for {line.t - before.t:.1f} s after the last thing happened"
            yield Breach((gpuid, withdrawal.request if withdrawal else ""), what, line, gpuid, after=before)

    def _is_poll(self, t: float) -> bool:
        """Return whether Reconfig-Mgr looks then whatever happens: by that it was found, and might have been before. A
        reading of a slow chassis ends at other times; one of a busy chassis takes long."""
        return abs((t - self._started_s + self._poll_s / 2) % self._poll_s - self._poll_s / 2) < NEAR_S

    def _given_up(self, line: Line, state: RunState) -> Iterator[Breach]:
        for gpuid, (withdrawal, since) in list(self._open.items()):
            node = withdrawal.node
            if line.fields.get("gpuid") == gpuid:
                is_begun = (line.layer, line.event) in _OF_A_HOST
                if is_begun or line.event in ("consented", "refused", "asked-back"):
                    del self._open[gpuid]
                if is_begun and line.t - since.t > CHECKS * self._check_s:
                    yield from self._late(line, gpuid, withdrawal, since, state)
            elif line.actor.partition("/")[2] == node or line.fields.get("node") == node:
                self._open[gpuid] = withdrawal, line

    def _late(self, line: Line, gpuid: str, withdrawal: Withdrawal, since: Line, state: RunState) -> Iterator[Breach]:
        asked_s, node = withdrawal.asked.t, withdrawal.node
        waited_s, lists_s = line.t - since.t, since.t - self._kubelets_s.get(node, -math.inf)
        # A list of no pods is believed once it has been so for a while: after the kubelet's start, or its last pod.
        is_empty = all(pod.node != node or pod.ended is not None for pod in self._board.pods.values())
        is_empty = is_empty and since.event == "pod-ended"
        if (lists_s <= self._settle_s or is_empty) and waited_s <= CHECKS * self._check_s + self._settle_s:
            return
        others = (each for each in self._board.all_standing() if each.node == node and each is not withdrawal)
        if any(others) or since.t - self._left_s.get(node, -LETS_GO_S) < LETS_GO_S:
            return  # A host takes its devices out one after the other.
        if asked_s - self._came_s.get(gpuid, -SEEN_S) < SEEN_S:
            return  # Its device manager has not seen yet that it is there.
        if any(state.clock_from(NOTICED, asked_s, each) > asked_s for each in (None, gpuid)):
            return
        what = f"{node} begins to give up {gpuid} {line.t - since.t:.1f} s after nothing kept it any more"
        yield Breach((gpuid, withdrawal.request, "late"), what, line, gpuid, after=since)


class ClearsWhatItWrote(Invariant[RunState]):
    """A bound pod wants no device any more: its annotations are cleared in the moment in which its scheduler reports
    its node. A pod that Permit has held for as long as it may loses them before that is reported. After a fault that
    keeps the scheduler from it, they are cleared soon. The published system, as which ``stale-demand`` lets it run,
    never clears them. A pod is marked as a user of pooled devices together with what it waits for. All pods are marked
    only where ``marksAll`` is set."""

    number = 79
    name = "a bound pod wants nothing, and only who is asked to marks pods"
    ours_alone = True
    events = BOARD_EVENTS | POD_EVENTS | {("api", "event"), ("component", "killed"), ("component", "crashed")}

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._scheduler = config.scheduler_name
        self._marks = config.marks_all
        self._leaves = bool(config.faults) or config.has(KubeCompFault.STALE_DEMAND)
        self._is_stale = config.has(KubeCompFault.STALE_DEMAND)
        self._noted: dict[str, Line] = {}
        """Pods that wait for devices, and the line that says so: where nobody clears them."""
        self._owed: dict[str, tuple[LawPod, Line]] = {}
        """Pods whose annotations are still to be cleared, and the line that says where each went."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge marks, and what is left of them."""
        self._board.take(line)
        if self._is_stale and line.event == "annotations":
            yield from self._judge_stale(line)
        if state.bound_s(LAG) or self._leaves:
            return
        if line.layer == "component":
            self._owed.clear()  # One that has died clears nothing.
        elif line.event == "event":
            self._note_report(line)
            if TIMED_OUT in str(line.fields["message"]):
                yield from self._timed_out(line, state)
        elif line.event == "annotations" and not self._marks:
            pod, noted = self._board.pods.get(line.actor), line.fields["annotations"]
            if pod is not None and noted.get(USE_FALCON) and not pod.target and len(noted) == 1:
                what = f"{line.actor} is marked, waits for nothing, and not all pods are to be marked"
                yield Breach((pod.uid, "marked"), what, line, after=pod.created)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what is left."""
        for actor, (pod, report) in list(self._owed.items()):
            since_s = state.clock_from(self.number, report.t)
            if not pod.target:
                del self._owed[actor]
            elif t - since_s > (NEAR_S if since_s == report.t else RETRIED_S):
                del self._owed[actor]
                what = f"{actor} is bound to {pod.node}, and {pod.target} is still to be composed for it"
                yield Breach((pod.uid, "left"), what, report, after=pod.bound, due_s=since_s)

    def _judge_stale(self, line: Line) -> Iterator[Breach]:
        pod, noted = self._board.pods.get(line.actor), self._noted.pop(line.actor, None)
        if pod is not None and pod.target:
            self._noted[line.actor] = line
        elif pod is not None and noted is not None and noted.fields["uid"] == pod.uid:
            what = f"{line.actor} wants nothing any more, and {KubeCompFault.STALE_DEMAND} leaves what is wanted"
            yield Breach((pod.uid, "cleared"), what, line, after=noted)

    def _note_report(self, line: Line) -> None:
        if line.fields["reason"] == "Scheduled" and line.actor == self._scheduler:
            pod = self._board.pods.get(str(line.fields["object"]))
            if pod is not None and pod.bound is not None and pod.target:
                self._owed[str(line.fields["object"])] = pod, line

    def _timed_out(self, line: Line, state: RunState) -> Iterator[Breach]:
        pod = self._board.pods.get(str(line.fields["object"]))
        if pod is None or not pod.target or line.actor != self._scheduler or pod.noted is None:
            return
        if state.clock_from(self.number, pod.noted.t) == pod.noted.t:
            what = f"{line.fields['object']} was held for as long as it may, and {pod.target} is still to be composed"
            yield Breach((pod.uid, "given up"), what, line, after=pod.noted)
