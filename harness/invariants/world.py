"""What the journal says is the case: devices on ports, and who holds them. A reducer over lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mews.harness.journal import Line

Slot = tuple[str, str, str]
"""Pod uid, container, resource."""


@dataclass(slots=True)
class Device:
    """One device of a chassis, where it is now and where it was before its last line."""

    gpuid: str
    chassis: str
    uuid: str
    port: str | None
    host: str | None
    port_before: str | None
    uuid_before: str
    changed: Line
    pending: bool = False
    present: bool = True
    link: bool = True
    link_before: bool = True


@dataclass(frozen=True, slots=True)
class Holding:
    """Devices of one resource that a container of a live pod was given."""

    pod: str
    uid: str
    container: str
    resource: str
    host: str
    devices: tuple[str, ...]
    line: Line


@dataclass(frozen=True, slots=True)
class Seen:
    """A device as its host sees it; ``healthy``: all its layers are up, NVML shows it and it answers."""

    kind: str
    healthy: bool


@dataclass(slots=True)
class Chassis:
    """Which hosts a chassis is cabled to, and its pool."""

    pool: str
    hosts: tuple[str, ...]


@dataclass(slots=True)
class World:
    """``devices`` by GPUID; ``holdings`` of live pods only; ``checkpoints`` by host as last written; ``seen``: host ->
    GPUID -> as the host sees it; ``offered``: node -> resource -> whole number allocatable."""

    devices: dict[str, Device] = field(default_factory=dict)
    chassis: dict[str, Chassis] = field(default_factory=dict)
    holdings: dict[Slot, Holding] = field(default_factory=dict)
    checkpoints: dict[str, dict[Slot, tuple[str, ...]]] = field(default_factory=dict)
    seen: dict[str, dict[str, Seen]] = field(default_factory=dict)
    offered: dict[str, dict[str, int]] = field(default_factory=dict)
    started: set[tuple[str, str]] = field(default_factory=set)
    _ended: set[str] = field(default_factory=set)

    def hear(self, line: Line) -> None:
        """Take in one line."""
        if line.layer == "chassis":
            self._hardware(line)
        elif line.layer == "kubelet":
            self._kubelet(line)
        elif line.layer == "host":
            self._host(line)
        elif line.layer == "api" and line.actor.startswith("node/"):
            self._node(line)
        elif line.layer == "api" and _ends(line):
            self._end(line.fields["uid"])

    def holders(self, gpuid: str) -> Iterator[Holding]:
        """The live containers that hold the device."""
        for holding in self.holdings.values():
            if gpuid in holding.devices:
                yield holding

    def _hardware(self, line: Line) -> None:
        if line.event == "table":
            self._table(line)
        elif "gpuid" in line.fields:
            self._move(line)

    def _table(self, line: Line) -> None:
        ports = line.fields.get("ports", {})
        hosts = tuple(dict.fromkeys(host for host in ports.values() if host))
        self.chassis[line.actor] = Chassis(line.fields.get("pool", ""), hosts)
        rows = {row["gpuid"]: row for row in line.fields["devices"].values()}
        for device in self.devices.values():
            if device.chassis == line.actor and device.gpuid not in rows:
                self._leave(device, line)
        for row in rows.values():
            self._place(row, line)

    def _move(self, line: Line) -> None:
        device = self.devices.get(line.fields["gpuid"])
        if line.event in ("attach-begun", "detach-begun", "operation-finished"):
            if device is not None:
                device.pending = line.event != "operation-finished"
        elif device is None:
            self._place(line.fields, line)
        elif line.event == "removed":
            self._leave(device, line)
        else:
            self._place(line.fields, line)

    def _leave(self, device: Device, line: Line) -> None:
        device.port_before, device.uuid_before, device.changed = device.port, device.uuid, line
        device.port, device.host, device.present = None, None, False

    def _place(self, row: dict[str, Any], line: Line) -> None:
        known = self.devices.get(row["gpuid"])
        port, uuid = row.get("port"), row.get("uuid", "")
        self.devices[row["gpuid"]] = Device(
            gpuid=row["gpuid"],
            chassis=line.actor,
            uuid=uuid,
            port=port,
            host=row.get("host"),
            port_before=known.port if known else port,
            uuid_before=known.uuid if known else uuid,
            changed=line,
            pending=known.pending if known else False,
            link=_link(known, line),
            link_before=known.link if known else True,
        )

    def _host(self, line: Line) -> None:
        host, fields = line.actor.partition("/")[2], line.fields
        if line.event == "table":
            rows = fields["devices"]
            self.seen[host] = {gpuid: Seen(row["kind"], row["healthy"]) for gpuid, row in rows.items()}
        elif "gpuid" in fields:
            self.seen.setdefault(host, {})[fields["gpuid"]] = Seen(fields["kind"], fields["healthy"])

    def _node(self, line: Line) -> None:
        node, fields = line.actor.partition("/")[2], line.fields
        if line.event == "created":
            amounts = fields.get("allocatable") or {}
            self.offered[node] = {name: int(amount) for name, amount in amounts.items() if str(amount).isdecimal()}
        elif line.event == "allocatable":
            amount = str(fields["new"])
            self.offered.setdefault(node, {})[fields["resource"]] = int(amount) if amount.isdecimal() else 0
        elif line.event == "deleted":
            self.offered.pop(node, None)

    def _kubelet(self, line: Line) -> None:
        fields, host = line.fields, line.actor.partition("/")[2]
        match line.event:
            case "allocated" if fields["uid"] not in self._ended:
                slot = (fields["uid"], fields["container"], fields["resource"])
                pod, devices = fields["pod"], tuple(fields["devices"])
                self.holdings[slot] = Holding(pod, *slot, host, devices, line)
            case "container-started":
                self.started.add((fields["uid"], fields["container"]))
            case "checkpoint":
                entries = fields["entries"]
                self.checkpoints[host] = {(uid, c, resource): tuple(ids) for uid, c, resource, ids in entries}
            case "pod-ended" | "rejected":
                self._end(fields["uid"])

    def _end(self, uid: str) -> None:
        self._ended.add(uid)
        for slot in [slot for slot in self.holdings if slot[0] == uid]:
            del self.holdings[slot]


def _link(known: Device | None, line: Line) -> bool:
    if line.event in ("link-down", "link-up", "table"):
        return line.event != "link-down"
    return known.link if known else True


def _ends(line: Line) -> bool:
    if not line.actor.startswith("pod/"):
        return False
    return line.event == "deleted" or (line.event == "phase" and line.fields["phase"] in ("Succeeded", "Failed"))
