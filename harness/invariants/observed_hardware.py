"""What the journal says is the case: devices on ports, and who holds them. A reducer over lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.harness.journal import Line
from mews.kube.api.objects import Object, is_terminal, key_of, node_name_of, uid_of
from mews.kube.system.invariant import ClusterObjects, Holds, ObservedHolding

Slot = tuple[str, str, str]
"""Pod uid, container, resource."""


class Device(Struct):
    """One device of a chassis, where it is now and where it was before its last line. A chassis may lose its UUID:
    ``uuid_known`` is the last that was told."""

    gpuid: str
    chassis: str
    uuid: str
    port: str | None
    host: str | None
    port_before: str | None
    host_before: str | None
    uuid_before: str
    uuid_known: str
    changed: Line
    pending: bool = False
    present: bool = True
    link: bool = True
    link_before: bool = True


class VisibleDevice(Struct, frozen=True):
    """A device as its host sees it; ``healthy``: all its layers are up, NVML shows it and it answers. ``bdf``: the
    address of its PCI function."""

    kind: str
    healthy: bool
    bdf: str = ""


class DeviceList(Struct, frozen=True):
    """What a device plugin's last list said of its devices, by ``line``."""

    healthy: tuple[str, ...]
    unhealthy: tuple[str, ...]
    line: Line


def known_as(device: str, gpuids: Collection[str]) -> str:
    """Return the one of these GPUIDs that a plugin's device ID means, else the ID itself: somebody else's device plugin
    may call devices with or without the chassis' index."""
    short = device.partition("-")[2]
    if device in gpuids or short in gpuids:
        return device if device in gpuids else short
    longer = [gpuid for gpuid in gpuids if gpuid.partition("-")[2] == device]
    return longer[0] if len(longer) == 1 else device


def slice_of(device: str) -> str:
    """Return the UUID of the GPU of which a device is a time slice, "" for none: NVIDIA's device plugin calls slices
    UUID::N (internal/rm/devices.go, ``AnnotatedID``)."""
    whole, _, number = device.rpartition("::")
    return whole if number.isdecimal() else ""


class ChassisCabling(Struct):
    """Which hosts a chassis is cabled to, and its pool."""

    pool: str
    hosts: tuple[str, ...]


class ObservedHardware(Struct):
    """``devices`` by GPUID; ``holdings`` of live pods only, as kubelets gave them; ``declared``: those that systems
    say; ``checkpoints`` by host as last written; ``lists``: host -> resource -> the devices in its plugin's list, where
    the kubelet has one; ``seen``: host -> GPUID -> as the host sees it; ``offered``: node ->
    resource -> whole number allocatable."""

    devices: dict[str, Device] = field(default_factory=dict)
    chassis: dict[str, ChassisCabling] = field(default_factory=dict)
    holdings: dict[Slot, ObservedHolding] = field(default_factory=dict)
    declared: dict[Slot, ObservedHolding] = field(default_factory=dict)
    checkpoints: dict[str, dict[Slot, tuple[str, ...]]] = field(default_factory=dict)
    seen: dict[str, dict[str, VisibleDevice]] = field(default_factory=dict)
    offered: dict[str, dict[str, int]] = field(default_factory=dict)
    lists: dict[str, dict[str, DeviceList]] = field(default_factory=dict)
    started: set[tuple[str, str]] = field(default_factory=set)
    part_of: tuple[Callable[[str], str], ...] = ()
    _names: dict[str, str] = field(default_factory=dict)
    _unused: set[tuple[str, str]] = field(default_factory=set)
    _ended: set[str] = field(default_factory=set)
    _about: dict[str, Line] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """Take in one line."""
        if line.layer == "chassis":
            self._hardware(line)
        elif line.layer == "kubelet":
            self._kubelet(line)
        elif line.layer == "component" and line.event != "failed":
            self.lists.pop(line.actor.partition("/")[2], None)  # Its kubelet, or its plugins, begin anew.
        elif line.layer == "host":
            self._host(line)
        elif line.layer == "api" and line.actor.startswith("node/"):
            self._node(line)
        elif line.layer == "api" and line.actor.startswith("pod/"):
            self._about[line.actor] = line
            if _ends(line):
                self._end(line.fields["uid"])

    def declare(self, objects: ClusterObjects, holds: Iterable[Holds]) -> Sequence[ObservedHolding]:
        """Take in what systems say of the pods as they are now; the holdings that are new or changed."""
        before = self.declared
        self.declared, self._unused = {}, set()
        for key in sorted(objects.pods):
            for holding in self._declared_by(objects.pods[key], holds):
                self.declared[(holding.uid, holding.container, holding.resource)] = holding
        return [now for slot, now in self.declared.items() if slot not in before or _is_other(before[slot], now)]

    def _declared_by(self, pod: Object, holds: Iterable[Holds]) -> Iterator[ObservedHolding]:
        host, name = node_name_of(pod), key_of(pod)
        if not host or is_terminal(pod) or uid_of(pod) in self._ended:
            return
        line = self._about.get(f"pod/{name}")
        for held in (held for rule in holds for held in rule(pod)):
            devices = tuple(self._gpuid(device) for device in held.devices)
            self._unused |= {(uid_of(pod), resource) for resource in held.instead_of}
            parts_of = tuple(self._gpuid(device) for device in held.parts_of)
            yield ObservedHolding(name, uid_of(pod), held.container, held.resource, host, devices, line, parts_of)

    def _gpuid(self, device: str) -> str:
        by_uuid = (known.gpuid for known in self.devices.values() if known.uuid_known == device)
        return device if device in self.devices else next(by_uuid, device)

    def all_holdings(self) -> Iterator[ObservedHolding]:
        """Yield what live containers hold, by the word of their kubelets and of the systems."""
        yield from (each for each in self.holdings.values() if self.is_used(each))
        yield from self.declared.values()

    def is_used(self, holding: ObservedHolding) -> bool:
        """Return whether its pod uses what its kubelet gave it: some do not, by the word of their system."""
        return (holding.uid, holding.resource) not in self._unused

    def holders(self, gpuid: str) -> Iterator[ObservedHolding]:
        """Yield the live containers that hold the device."""
        for holding in self.all_holdings():
            if gpuid in holding.devices or gpuid in holding.parts_of:
                yield holding

    def _hardware(self, line: Line) -> None:
        if line.event == "table":
            self._table(line)
        elif "gpuid" in line.fields:
            self._move(line)

    def _table(self, line: Line) -> None:
        ports = line.fields.get("ports", {})
        hosts = tuple(dict.fromkeys(host for host in ports.values() if host))
        self.chassis[line.actor] = ChassisCabling(line.fields.get("pool", ""), hosts)
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
        device.port_before, device.host_before, device.uuid_before = device.port, device.host, device.uuid
        device.changed = line
        device.port, device.host, device.present = None, None, False

    def _place(self, row: dict[str, Any], line: Line) -> None:
        known = self.devices.get(row["gpuid"])
        port, uuid = row.get("port"), row.get("uuid", "")
        if known is None:
            self._names.clear()
        self.devices[row["gpuid"]] = Device(
            gpuid=row["gpuid"],
            chassis=line.actor,
            uuid=uuid,
            port=port,
            host=row.get("host"),
            port_before=known.port if known else port,
            host_before=known.host if known else row.get("host"),
            uuid_before=known.uuid if known else uuid,
            uuid_known=uuid or (known.uuid_known if known else ""),
            changed=line,
            pending=known.pending if known else False,
            link=_link(known, line),
            link_before=known.link if known else True,
        )

    def _host(self, line: Line) -> None:
        host, fields = line.actor.partition("/")[2], line.fields
        if line.event == "table":
            rows = fields["devices"]
            self.seen[host] = {gpuid: _seen(row) for gpuid, row in rows.items()}
        elif "gpuid" in fields:
            here, now = self.seen.setdefault(host, {}), _seen(fields)
            known = here.get(fields["gpuid"])
            # A device that has come back may have its dead function at another address beside it.
            if known is None or now.healthy or now.bdf == known.bdf or not known.healthy:
                here[fields["gpuid"]] = now

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
                pod, devices = fields["pod"], self.named(fields["devices"])
                self.holdings[slot] = ObservedHolding(pod, *slot, host, devices, line, self._parts_of(devices))
            case "registered":
                self.lists.get(host, {}).pop(fields["resource"], None)
            case "devices":
                shown = DeviceList(self.named(fields["healthy"]), self.named(fields["unhealthy"]), line)
                self.lists.setdefault(host, {})[fields["resource"]] = shown
            case "container-started":
                self.started.add((fields["uid"], fields["container"]))
            case "checkpoint":
                entries = fields["entries"]
                self.checkpoints[host] = {(uid, c, resource): self.named(ids) for uid, c, resource, ids in entries}
            case "pod-ended" | "rejected":
                self._end(fields["uid"])

    def named(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return a plugin's device IDs as GPUIDs (``known_as``)."""
        return tuple(each if each in self.devices else self._known_as(each) for each in ids)

    def _known_as(self, device: str) -> str:
        if device not in self._names:
            self._names[device] = known_as(device, self.devices)
        return self._names[device]

    def _parts_of(self, devices: Iterable[str]) -> tuple[str, ...]:
        whole = dict.fromkeys(rule(device) for device in devices for rule in (slice_of, *self.part_of))
        return tuple(self._gpuid(uuid) for uuid in whole if uuid)

    def _end(self, uid: str) -> None:
        self._ended.add(uid)
        for held in (self.holdings, self.declared):
            for slot in [slot for slot in held if slot[0] == uid]:
                del held[slot]


def _is_other(before: ObservedHolding, now: ObservedHolding) -> bool:
    return (before.devices, before.parts_of) != (now.devices, now.parts_of)


def _link(known: Device | None, line: Line) -> bool:
    # A device that comes to a port trains its link anew, whoever puts it there.
    if line.event in ("link-down", "link-up", "table", "attached", "edited", "inserted"):
        return line.event != "link-down"
    return known.link if known else True


def _ends(line: Line) -> bool:
    return line.event == "deleted" or (line.event == "phase" and line.fields["phase"] in ("Succeeded", "Failed"))


def _seen(fields: Mapping[str, Any]) -> VisibleDevice:
    return VisibleDevice(fields["kind"], fields["healthy"], str(fields.get("bdf", "")))
