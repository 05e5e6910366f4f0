"""A device is taken off its host before it is detached, and not while a process holds it (contract host.md 4)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.board import BOARD_EVENTS, Board
from mews.systems.kubecomp.laws.consent import BY_DESIGN
from mews.systems.kubecomp.laws.own_detach import LAG, OwnOperation, OwnOperations

SURPRISE = "`removal: surprise` detaches a device without taking it off its host (contract host.md 4)"

CAME = ("function-added", "driver-bound", "nvml-visible")


class _Function(Struct, frozen=True):
    """A device as a host's PCI bus shows it, by its last line there."""

    line: Line
    uuid: str


class OffItsHost(Invariant[RunState]):
    """When a detach begins, the host of the device no longer shows its PCI function, because its device manager walked
    the orderly removal. The device manager does not write a removal that blocks because a process holds the device: it
    looks first."""

    number = 31
    name = "a device is taken off its host before it is detached, held by no process"
    events = BOARD_EVENTS | {
        ("chassis", "detach-begun"),
        ("chassis", "device-changed"),
        ("chassis", "host-power"),
        ("host", "table"),
        ("host", "function-removed"),
        ("host", "draining"),
        ("host", "waiting"),
        *(("host", event) for event in CAME),
    }

    def __init__(self, config: KubeCompConfig, board: Board) -> None:
        self._board = board
        self._known = SURPRISE if config.removal == "surprise" else ""
        self._own = OwnOperations(config, board)
        self._there: dict[tuple[str, str], _Function] = {}
        self._odd: set[str] = set()
        self._off: set[str] = set()
        self._draining: dict[str, Line] = {}
        self._seen: dict[int, _Function] = {}
        self._blocked: list[Line] = []

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what hosts show, and what is detached."""
        self._board.take(line)
        if line.layer == "host":
            self._host(line)
        elif line.event == "device-changed":
            self._odd.add(line.fields["gpuid"])
        elif line.event == "host-power":
            (self._off.discard if line.fields.get("on") else self._off.add)(str(line.fields.get("host")))
        elif line.event == "detach-begun" and line.fields.get("old_port") is not None:
            there = self._there.get((str(line.fields["old_host"]), line.fields["gpuid"]))
            if there is not None:
                self._seen[line.number] = there
                self._own.on_line(line)
        return iter(())

    def _host(self, line: Line) -> None:
        host, fields = line.actor.partition("/")[2], line.fields
        if line.event == "table":
            for gpuid, row in fields["devices"].items():
                self._there[host, gpuid] = _Function(line, str(row.get("uuid")))
        elif line.event == "function-removed":
            self._there.pop((host, fields["gpuid"]), None)
        elif line.event == "draining":
            self._draining[fields["gpuid"]] = line
        elif line.event == "waiting":
            self._blocked.append(line)
        else:
            self._there[host, fields["gpuid"]] = _Function(line, str(fields.get("uuid")))

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what was."""
        for own in self._own.due(t, state):
            yield from self._judge(own, state.bound_s(LAG) or 0.0)
        if self._seen and self._own.is_idle:
            self._seen.clear()  # What is left is an operator's doing.
        if self._blocked:
            yield from self._judge_blocked(t, state.bound_s(LAG) or 0.0)

    def _judge(self, own: OwnOperation, lag_s: float) -> Iterator[Breach]:
        host, there = str(own.line.fields["old_host"]), self._seen.pop(own.line.number)
        late = lag_s > 0 and (host, own.gpuid) not in self._there
        unknown = own.gpuid in self._odd or there.uuid != own.line.fields.get("uuid") or host in self._off
        if late or unknown:
            return  # Told late; or nobody there can know which function it is.
        what = f"device {own.gpuid} was detached while {host} had it on its bus"
        consent = own.withdrawal.consent_before(own.line.t + lag_s) if own.withdrawal is not None else None
        key = BY_DESIGN if self._known else (own.gpuid, str(own.line.number))
        yield Breach(key, what, own.line, own.gpuid, after=consent or there.line, known=self._known)

    def _judge_blocked(self, t: float, lag_s: float) -> Iterator[Breach]:
        due = [line for line in self._blocked if t - line.t > lag_s]
        self._blocked = [line for line in self._blocked if t - line.t <= lag_s]
        for line in due:
            gpuid = line.fields["gpuid"]
            draining, withdrawal = self._draining.get(gpuid), self._board.standing(gpuid, line.t, 0.0)
            if withdrawal is None or draining is None or not draining.fields.get("on"):
                continue  # Not its device manager's doing; or somebody could open it between the look and the write.
            what = f"{withdrawal.node} wrote the removal of {gpuid} while a process held it"
            yield Breach(("held", gpuid, withdrawal.request), what, line, gpuid, after=draining)
