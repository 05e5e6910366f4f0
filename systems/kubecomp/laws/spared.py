"""The laws of which device Reconfig-Mgr asks for, and of when a node lets go of it (contract kubecomp.md section 2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, POD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

KNOWN_S = 0.5
"""What the API has said for this long Reconfig-Mgr knows, which looks just before it asks."""
CALM_S = 2.0
"""A node on which nothing has happened for so long has been looked at since."""
NEAR_S = 0.001
_MOVES = ("attached", "detached", "edited", "removed", "inserted")
_COMPONENT = frozenset({("component", event) for event in ("started", "killed", "crashed")})


class AwaitedAreSpared(Invariant[RunState]):
    """Per node, as many of the free devices stay as its pods still need. These pods are bound there, or wait for it to
    be composed. Reconfig-Mgr asks only for the others. A device that nobody shares is asked for before one of the same
    node that pods share."""

    number = 1050
    name = "a node is asked for no device that its own pods await, and for the least shared first"
    ours_alone = True
    events = BOARD_EVENTS | POD_EVENTS | {("chassis", event) for event in ("table", *_MOVES)} | {("host", "xid")}

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._judges = not config.faults
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._at: dict[str, str] = {}
        """Device -> the host that has it."""
        self._uuids: dict[str, str] = {}
        self._changed: dict[str, float] = {}
        """Host -> when a device came or went last."""
        self._spoilt: set[str] = set()
        """Devices that were refused, or that are broken: these are not asked for at once."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Follow the chassis; judge what is asked for."""
        self._board.take(line)
        if line.layer == "chassis":
            self._table(line)
        elif line.layer == "host":
            self._spoilt.add(str(line.fields.get("gpuid")))
        elif line.event in ("refused", "asked-back"):
            self._spoilt.add(line.fields["gpuid"])
        elif line.event == "asked" and self._judges and not state.bound_s(LAG) and not self._board.by_hand:
            node = line.fields["node"]
            yield from self._least_shared(line, node, state) if node in self._lent else self._kept(line, node, state)

    def _table(self, line: Line) -> None:
        rows = line.fields["devices"].values() if line.event == "table" else (line.fields,)
        for row in rows:
            gpuid, host = str(row["gpuid"]), str(row.get("host") or "")
            for each in {self._at.get(gpuid, ""), host} - {""}:
                self._changed[each] = line.t
            self._at[gpuid] = host
            self._uuids[gpuid] = str(row.get("uuid") or gpuid)

    def _kept(self, line: Line, node: str, state: RunState) -> Iterator[Breach]:
        if line.t and line.t - self._changed.get(node, -math.inf) <= KNOWN_S:
            return
        holdings = [each for each in state.live_holdings() if each.resource == self._resource and each.host == node]
        held = {device for each in holdings for device in each.devices}
        free = {gpuid for gpuid, host in self._at.items() if host == node} - held
        holds = Counter({each.uid: len(each.devices) for each in holdings})
        needed, last = 0, None
        for pod in self._board.pods.values():
            since = pod.bound if pod.node == node else pod.wanted if pod.target == node else None
            lacks = int(pod.requests.get(self._resource, 0)) - holds[pod.uid]
            if since is not None and pod.ended is None and lacks > 0 and line.t - since.t > KNOWN_S:
                needed, last = needed + lacks, pod.noted or since
        asked = {each.gpuid for each in self._board.all_standing() if each.node == node} & free
        if last is not None and len(free) - len(asked) < needed:
            gpuid, there = line.fields["gpuid"], f"its pods need {needed} of its {len(free)} free devices"
            what = f"{node} is asked for {gpuid}, and {there}"
            yield Breach((gpuid, str(line.number)), what, line, gpuid, after=last)

    def _least_shared(self, line: Line, node: str, state: RunState) -> Iterator[Breach]:
        gpuid = line.fields["gpuid"]
        used = Counter(part for each in state.live_holdings() for part in {*each.parts_of, *each.devices})
        asked = {each.gpuid for each in self._board.all_standing()}
        users = used[gpuid] + used[self._uuids.get(gpuid, "")]
        for other, host in sorted(self._at.items()):
            if host != node or other in asked | self._spoilt:
                continue
            if users and not used[other] and not used[self._uuids[other]]:
                what = f"{node} is asked for {gpuid}, which {users} pod(s) share, before {other}, which nobody does"
                yield Breach((gpuid, str(line.number)), what, line, gpuid)
                return


class OffItsListAtOnce(Invariant[RunState]):
    """A node with spare devices takes a requested one off its plugin's list immediately. Nobody is given it while its
    host lets it go. The law judges nodes on which only this happened for a moment."""

    number = 1051
    name = "a device that a node gives up leaves its list immediately"
    of_time = True
    ours_alone = True

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._resource = config.resource
        self._judges = not config.faults
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._lists: dict[str, Line] = {}
        self._stirred_s: dict[str, float] = {}
        self._owed: dict[str, tuple[str, Line]] = {}
        """Device -> the node that is asked for it, and the line by which it is."""

    events = (
        BOARD_EVENTS | POD_EVENTS | _COMPONENT | {("host", "nvml-visible"), ("host", "nvml-hidden"), ("host", "xid")}
    )

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Follow each node's list; judge the one without a device that was asked for."""
        self._board.take(line)
        if line.layer == "component":
            self._owed.clear()
            self._stirred_s.clear()
            self._stirred_s[""] = line.t
            return
        node = line.fields.get("node") or line.actor.partition("/")[2]
        if line.layer == "kubelet" and line.event == "devices":
            if line.fields["resource"] == self._resource:
                yield from self._listed(line, node, state)
        elif line.event == "asked":
            self._asked(line, node)
        elif line.event in ("refused", "asked-back", "consented"):
            self._owed.pop(line.fields["gpuid"], None)
        elif line.layer != "step":
            self._owed = {gpuid: owed for gpuid, owed in self._owed.items() if owed[0] != node}
        if line.layer != "step":
            self._stirred_s[node] = line.t

    def _asked(self, line: Line, node: str) -> None:
        gpuid, there = line.fields["gpuid"], self._lists.get(node)
        stirred_s = max(self._stirred_s.get(node, 0.0), self._stirred_s.get("", 0.0))
        others = any(each.node == node and each.gpuid != gpuid for each in self._board.all_standing())
        pods = any(pod.ended is None and node in (pod.node, pod.target) for pod in self._board.pods.values())
        if not self._judges or node in self._lent or there is None or others or pods:
            return
        if gpuid in there.fields["healthy"] and line.t - stirred_s > CALM_S:
            self._owed[gpuid] = node, line

    def _listed(self, line: Line, node: str, state: RunState) -> Iterator[Breach]:
        self._lists[node] = line
        for gpuid, (where, asked) in list(self._owed.items()):
            if where != node or gpuid in line.fields["healthy"]:
                continue
            del self._owed[gpuid]
            late_s = line.t - asked.t
            if late_s > NEAR_S and not state.bound_s(LAG) and state.clock_from(self.number, asked.t) <= asked.t:
                what = f"{node} takes {gpuid} off its list {late_s:.2f} s after it was asked for it"
                yield Breach((gpuid, str(asked.number)), what, line, gpuid, after=asked)


class RescansForCause(Invariant[RunState]):
    """A device manager has its host scan its bus again when a device comes to one of its ports or leaves it. It also
    does so for a device that the node gave up and gets back, and after a start. It repeats a scan that did not work. A
    node to whose devices nothing has happened yet is left alone."""

    number = 1052
    name = "a host's bus is scanned again only where something happened to its devices"
    ours_alone = True
    events = (
        BOARD_EVENTS
        | _COMPONENT
        | {("chassis", event) for event in ("attach-begun", "detach-begun", "device-changed", *_MOVES)}
        | {
            ("host", event)
            for event in ("rescanned", "nvml-hidden", "function-removed", "link-down", "lost", "link-up")
        }
        | {("host", event) for event in ("driver-unbound", "powered-on", "powered-off", "xid")}
        | {("fault", "fired"), ("fault", "added")}
    )

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._judges = not config.faults
        self._on: set[str] = set()
        """Hosts to whose devices something has happened."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note causes; judge a scan."""
        self._board.take(line)
        host = line.actor.partition("/")[2]
        if line.layer in ("component", "fault") or self._board.by_hand:
            self._judges = False
        elif line.layer == "chassis":
            self._on |= {str(each) for each in (line.fields.get("host"), line.fields.get("old_host"))}
        elif line.layer == "api":
            self._on |= {str(each) for each in (line.fields.get("node"), line.fields.get("target_node"))}
        elif line.event != "rescanned":
            self._on.add(host)
        elif self._judges and host not in self._on and not state.bound_s(LAG):
            self._on.add(host)
            yield Breach((host, str(line.number)), f"{host} scans its bus again, and no device came or went", line)
