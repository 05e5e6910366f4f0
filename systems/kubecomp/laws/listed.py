"""A plugin's list has what its node has."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.announcing import HEALTH, MOVES, NOTICED
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.laws.own_detach import LAG

SEEN_S = 60.0
"""Within which a Device Manager has got over what became of a device, a fault, or an end: looks at chassis and host,
what it remembers of a withdrawal, the listings that it wants before it believes that a device is gone."""


class ListsWhatIsThere(Invariant[RunState]):
    """A node lists as healthy the devices on its port that its host shows as healthy, except devices that are asked
    back. The law computes this again for each list, for devices that have not changed lately and have one UUID."""

    number = 39
    name = "a node announces the healthy devices on its port that nobody asks of it"
    of_time = True
    ours_alone = True
    events = BOARD_EVENTS | {
        ("kubelet", "devices"),
        ("host", "table"),
        *(("fault", event) for event in ("fired", "cleared")),
        *(("component", event) for event in ("started", "killed", "crashed")),
        *(("chassis", event) for event in (*MOVES, "attach-begun", "detach-begun", "operation-finished", "down", "up")),
        ("chassis", "device-changed"),
        *(("host", event) for event in HEALTH),
    }

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._config = config
        self._lent = {node.name for node in config.nodes if node.lent_to}
        self._place: dict[str, str | None] = {}
        self._healthy: dict[tuple[str, str], bool] = {}
        self._uuids: dict[tuple[str, str], str] = {}
        """By host, "" for the chassis, and device: what it calls the device."""
        self._changed: dict[str, Line] = {}
        self._disturbed_s = -math.inf

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what there is; judge a list."""
        self._board.take(line)
        fields = line.fields
        if line.layer == "kubelet":
            node = line.actor.partition("/")[2]
            if fields["resource"] == self._config.resource and node not in self._lent:
                yield from self._judge(node, line, state)
        elif line.event == "table":
            self._table(line)
        elif line.layer in ("fault", "component") or "gpuid" not in fields:
            self._disturbed_s = line.t
        else:
            self._note(line)

    def _table(self, line: Line) -> None:
        if line.t > 0.0:
            self._disturbed_s = line.t
        for gpuid, row in line.fields["devices"].items():
            self._uuids[_host(line), row["gpuid"]] = row.get("uuid", "")
            if line.layer == "chassis":
                self._place[row["gpuid"]] = row.get("host")
            else:
                self._healthy[line.actor.partition("/")[2], gpuid] = bool(row["healthy"])

    def _note(self, line: Line) -> None:
        gpuid = line.fields["gpuid"]
        self._changed[gpuid] = line
        if "uuid" in line.fields:
            self._uuids[_host(line), gpuid] = line.fields["uuid"]
        if line.layer == "chassis" and line.event in MOVES:
            self._place[gpuid] = None if line.event == "removed" else line.fields.get("host")
        elif line.layer == "host":
            self._healthy[line.actor.partition("/")[2], gpuid] = bool(line.fields["healthy"])

    def _judge(self, node: str, line: Line, state: RunState) -> Iterator[Breach]:
        seen_s = SEEN_S + 2 * (state.bound_s(LAG) or 0.0)
        if line.t - self._disturbed_s < seen_s:
            return
        listed, unclear = set(line.fields["healthy"]), set(line.fields["unhealthy"])
        unclear |= {each.gpuid for each in self._board.all_standing()}
        settled = [gpuid for gpuid in self._place if gpuid not in unclear and self._is_settled(gpuid, line.t - seen_s)]
        settled = [gpuid for gpuid in settled if self._has_one_name(gpuid, node)]
        due = {gpuid for gpuid in settled if self._place[gpuid] == node and self._healthy.get((node, gpuid))}
        wrong = (
            ("does not announce", due - listed),
            ("announces without having it", listed.intersection(settled) - due),
        )
        for how, found in wrong:
            devices = sorted(gpuid for gpuid in found if not state.excused(NOTICED, line.t, gpuid))
            if devices:
                last = max(
                    (self._changed[each] for each in devices if each in self._changed), default=None, key=_number
                )
                yield Breach(
                    (node, str(line.number)), f"{node} {how}: {', '.join(devices)}", line, devices[0], after=last
                )

    def _has_one_name(self, gpuid: str, node: str) -> bool:
        at_chassis, on_host = self._uuids.get(("", gpuid)), self._uuids.get((node, gpuid))
        return None in (at_chassis, on_host) or at_chassis == on_host

    def _is_settled(self, gpuid: str, by_s: float) -> bool:
        changed = self._changed.get(gpuid)
        return changed is None or changed.t <= by_s


def _host(line: Line) -> str:
    return line.actor.partition("/")[2] if line.layer == "host" else ""


def _number(line: Line) -> int:
    return line.number
