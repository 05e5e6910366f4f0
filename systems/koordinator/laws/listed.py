"""The laws of what koordlet lists: a node's devices as its host has them, in its Device and in its status."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.api.quantities import parse
from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.koordinator.journal import DEVICE_PUBLISHED, DEVICE_WITHDRAWN
from mews.systems.koordinator.names import CORE, GPU, MEMORY, RATIO

_FULL = 100
_THERE = ("function-added", "driver-bound", "nvml-visible")
_LEAVES = ("driver-unbound", "function-removed", "link-down", "lost", "powered-off", "nvml-hidden")
_ADAPTERS = ("RDMA", "FPGA")
_LOOKS = ("nvml-hidden", "nvml-visible", "mig-mode")
_COMPONENT = frozenset({("component", event) for event in ("started", "killed", "crashed")})


class _Seen(Struct, frozen=True):
    """A device as its host shows it: bus address and minor number, with the line that says so."""

    bus: str
    minor: int | None
    line: Line


class DevicesAsTheyAre(Invariant[RunState]):
    """No two devices of a type have the same number or the same name. A healthy device is listed with the bus address
    and the switch of its host, and a GPU with its minor number. Every device is below a switch, or below the root
    complex (pkg/koordlet of Koordinator, device collectors). A GPU has 100 of its cores and of its memory. The adapters
    that a host began with are all listed, until something happens to them."""

    number = 1040
    name = "a Device lists each device once, where its host has it"
    ours_alone = True
    events = frozenset({("api", DEVICE_PUBLISHED), *(("host", event) for event in ("table", *_THERE, *_LEAVES))})

    def __init__(self, nodes: Collection[str]) -> None:
        self._nodes = frozenset(nodes)
        self._seen: dict[str, dict[str, _Seen]] = {}
        """Host -> what it shows, by UUID."""
        self._adapters: dict[str, dict[str, Line]] = {}
        """Host -> the bus addresses of the adapters that it began with."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a Device."""
        if line.layer == "host":
            self._host(line, line.actor.partition("/")[2])
        elif line.fields["node"] in self._nodes:
            yield from self._judge(line, line.fields["node"])

    def _host(self, line: Line, host: str) -> None:
        adapters, there = self._adapters.setdefault(host, {}), self._seen.setdefault(host, {})
        if line.event in _LEAVES:
            adapters.pop(str(line.fields.get("bdf")), None)
            return
        for row in line.fields["devices"].values() if line.event == "table" else (line.fields,):
            there[str(row["uuid"])] = _Seen(str(row["bdf"]), row.get("minor"), line)
            if line.event == "table" and row.get("kind") in _ADAPTERS and row.get("healthy"):
                adapters[str(row["bdf"])] = line

    def _judge(self, line: Line, node: str) -> Iterator[Breach]:
        listed = {(each.get("topology") or {}).get("busID") for each in line.fields["devices"]}
        for bus, began in self._adapters.get(node, {}).items():
            if bus not in listed:
                yield Breach((node, bus), f"the Device of {node} does not list the adapter at {bus}", line, after=began)
        known: set[tuple[str, Any]] = set()
        for device in line.fields["devices"]:
            kind, minor, name = str(device.get("type")), device.get("minor", 0), str(device.get("id") or "")
            label = f"{kind} {name or minor}"
            twins = {(kind, minor)} | ({(kind, name)} if name else set())
            if twins & known:
                yield Breach((node, label, "twice"), f"the Device of {node} lists {label} (number {minor}) twice", line)
            known |= twins
            for wrong, after in self._wrong(node, device, kind, name) if device.get("health") else ():
                yield Breach((node, label, wrong), f"the Device of {node} lists {label} {wrong}", line, after=after)

    def _wrong(self, node: str, device: Mapping[str, Any], kind: str, name: str) -> Iterator[tuple[str, Line | None]]:
        place, there = device.get("topology") or {}, self._seen.get(node, {})
        seen, bus = there.get(name), place.get("busID")
        if not there:
            return  # a host without PCI
        if not bus or not place.get("pcieID"):
            yield "without its place", seen.line if seen is not None else None
        elif seen is not None and seen.bus != bus:
            yield f"at {bus}, and its host has it at {seen.bus}", seen.line
        if kind != GPU:
            return
        if seen is not None and seen.minor is not None and device.get("minor", 0) != seen.minor:
            yield f"with number {device.get('minor', 0)}, and its driver gives it {seen.minor}", seen.line
        has = device.get("resources") or {}
        if any(str(has.get(each)) != str(_FULL) for each in (CORE, RATIO)) or not has.get(MEMORY):
            yield f"with {dict(has)}", None


class _Node(Struct):
    """A node's Device and what its status shows."""

    created: Line | None = None
    published: Line | None = None
    shown: dict[str, str] = field(default_factory=dict)


_PROMPT_S = 0.1
"""koordlet is woken by its node, and by its Device."""


class ListedAtOnce(Invariant[RunState]):
    """koordlet writes a Device when its node appears, and again after somebody deletes it. What it writes onto the
    node's status are the sums of the healthy GPUs of that Device (v1.6.0,
    pkg/slo-controller/noderesource/plugins/gpudeviceresource). It looks at NVML every ``poll_s``. A new GPU is listed
    then; a GPU that has left or is in MIG mode is no longer healthy. Nothing is owed while a component is down."""

    number = 1041
    name = "a node has its Device immediately, and shows its sums"
    of_time = True
    ours_alone = True
    events = _COMPONENT | {
        *(("host", event) for event in _LOOKS),
        *(("api", event) for event in (DEVICE_PUBLISHED, DEVICE_WITHDRAWN, "created", "deleted", "allocatable")),
    }

    def __init__(self, nodes: Collection[str], poll_s: float) -> None:
        self._of = frozenset(nodes)
        self._poll_s = poll_s
        self._nodes: dict[str, _Node] = {}
        self._owed: dict[tuple[str, str], Line] = {}
        self._down: set[str] = set()

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take in nodes, Devices and hosts; what comes late is late."""
        yield from self.on_time(line.t, state)
        if line.layer == "component":
            self._owed.clear()
            self._down.discard(line.actor) if line.event == "started" else self._down.add(line.actor)
            return
        name = line.fields["node"] if line.actor == "devices" else line.actor.partition("/")[2]
        if name not in self._of or (line.layer == "api" and line.actor.partition("/")[0] not in ("node", "devices")):
            return
        node = self._nodes.setdefault(name, _Node())
        if line.layer == "host":
            self._host(name, node, line)
        else:
            self._api(name, node, line)
        self._settle(name, node, line)

    def _api(self, name: str, node: _Node, line: Line) -> None:
        match line.event:
            case "created":
                node.created, node.shown = line, {key: str(value) for key, value in line.fields["allocatable"].items()}
            case "deleted":
                self._nodes.pop(name, None)
                self._owed = {key: since for key, since in self._owed.items() if key[0] != name}
            case "allocatable":
                node.shown[line.fields["resource"]] = str(line.fields["new"] or 0)
            case _:
                node.published = line if line.event == DEVICE_PUBLISHED else None

    def _host(self, name: str, node: _Node, line: Line) -> None:
        uuid = str(line.fields["uuid"])
        for owed in ("listed", "unlisted"):
            self._owed.pop((name, f"{owed} {uuid}"), None)
        comes = line.event == "nvml-visible"
        leaves = line.event == "nvml-hidden" or bool(line.fields.get("on"))
        if line.fields.get("kind") == "GPU" and node.published is not None and not self._down and (comes or leaves):
            self._owed[name, f"{'listed' if comes else 'unlisted'} {uuid}"] = line

    def _settle(self, name: str, node: _Node, line: Line) -> None:
        """Note what is owed by this line, and what is not owed any more."""
        gpus = [each for each in node.published.fields["devices"] if each["type"] == GPU] if node.published else []
        healthy = {str(each.get("id")) for each in gpus if each.get("health")}
        listed = {str(each.get("id")) for each in gpus}
        for key in [key for key in self._owed if key[0] == name and " " in key[1]]:
            owed, _, uuid = key[1].partition(" ")
            if (uuid in listed) if owed == "listed" else (uuid not in healthy):
                del self._owed[key]
        is_there = node.created is not None and name in self._nodes
        self._owe((name, "Device"), is_there and node.published is None, line)
        sums = {each: _FULL * len(healthy) for each in (CORE, RATIO)} if gpus else {}
        differs = any(parse(node.shown.get(each, 0)) != amount for each, amount in sums.items())
        self._owe((name, "sums"), is_there and differs, line)

    def _owe(self, key: tuple[str, str], is_owed: bool, line: Line) -> None:
        if not is_owed or self._down:
            self._owed.pop(key, None)
        else:
            self._owed.setdefault(key, line)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what was owed for too long."""
        for (name, what), since in list(self._owed.items()) if self._owed else ():
            looks_s = 2 * self._poll_s if " " in what else 0.0
            if t - since.t <= _PROMPT_S + looks_s + 2 * (state.bound_s("lag_s") or 0.0):
                continue
            del self._owed[name, what]
            if state.clock_from(self.number, since.t) <= since.t:
                node = self._nodes.get(name, _Node())
                yield Breach(
                    (name, what, str(since.number)), f"{name}: {_lacks(what)}", since, after=node.published,
                    due_s=since.t,
                )  # fmt: skip


def _lacks(what: str) -> str:
    if what == "Device":
        return "there is no Device of it"
    if what == "sums":
        return "its status does not show the sums of its Device"
    owed, _, uuid = what.partition(" ")
    if owed == "listed":
        return f"its Device does not list {uuid}, which NVML shows"
    return f"its Device lists {uuid} as healthy, which NVML does not offer"
