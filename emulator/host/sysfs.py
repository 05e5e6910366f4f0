"""``/sys``: PCI devices, bridges, slots and drivers of a host (contract host.md section 2; Documentation/ABI/testing/
sysfs-bus-pci of the Linux kernel)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.emulator.host.cards import BRIDGE, Card
from mews.emulator.host.config_space import ONES, SIZE, bridge_config, endpoint_config
from mews.emulator.host.dmi import dmi_folder
from mews.emulator.host.entries import File, Folder, Link, Node
from mews.emulator.host.errors import BadWrite
from mews.emulator.host.function import Function
from mews.emulator.host.host import Host
from mews.emulator.host.operator import HostOperator, bridges_above, parse_switch
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.proc import irq_of

WRITABLE = 0o200
ALWAYS_THERE = ("nvidia",)
"""Drivers whose modules are loaded though they have no device."""

_MMIO = 0x38_0000_0000_00
"""Where BARs begin; each bus has a window of its own of a terabyte."""


class Sysfs:
    """The files of one host's PCI."""

    def __init__(self, host: Host, operator: HostOperator) -> None:
        self._host = host
        self._operator = operator

    def folder(self) -> Folder:
        """Build the folder ``sys``."""
        pci = Folder(
            lambda: {
                "devices": Folder(self._device_links),
                "drivers": Folder(self._drivers),
                "slots": Folder(self._slots),
                "rescan": File(_nothing, WRITABLE, self._rescan(None)),
            }
        )
        bus = Folder(lambda: {"pci": pci})
        kernel = Folder(lambda: {"iommu_groups": Folder(self._groups)})
        classes = Folder(lambda: {"dmi": dmi_folder(self._host.spec)})
        return Folder(lambda: {"bus": bus, "class": classes, "devices": Folder(self._roots), "kernel": kernel})

    # Who is there

    def _shown(self) -> list[Function]:
        return [f for f in self._host.functions() if f.has_function]

    def _domains(self) -> list[str]:
        return sorted({f.bdf.partition(":")[0] for f in self._host.functions()})

    def _device_links(self) -> Mapping[str, Node]:
        links: dict[str, Node] = {}
        for function in self._host.functions():
            for bdf, path in _above(function):
                links.setdefault(bdf, Link(f"../../../devices/{path}"))
            if function.has_function:
                links[function.bdf] = Link(f"../../../devices/{device_path(function)}")
        return links

    def _roots(self) -> Mapping[str, Node]:
        return {f"pci{domain}:00": Folder(lambda domain=domain: self._root(domain)) for domain in self._domains()}  # type: ignore[misc]

    def _root(self, domain: str) -> Mapping[str, Node]:
        below = [f for f in self._host.functions() if f.bdf.startswith(f"{domain}:")]
        numa = below[0].numa_node

        def downstream() -> Mapping[str, Node]:
            return {f.bridge: self._bridge(f.bridge, "downstream", numa, self._device_below(f), f) for f in below}

        def upstream() -> Mapping[str, Node]:
            bdf = f"{domain}:01:00.0"
            return {bdf: self._bridge(bdf, "upstream", numa, downstream)}

        bdf = f"{domain}:00:01.0"
        return {bdf: self._bridge(bdf, "root", numa, upstream)}

    def _groups(self) -> Mapping[str, Node]:
        def group(function: Function) -> Folder:
            link = Link(f"../../../../devices/{device_path(function)}")
            return Folder(lambda: {"devices": Folder(lambda: {function.bdf: link}), "type": _text("DMA-FQ")})

        return {str(f.slot): group(f) for f in self._shown()}

    def _device_below(self, function: Function) -> Callable[[], Mapping[str, Node]]:
        return lambda: {function.bdf: Folder(lambda: self._device(function))} if function.has_function else {}

    # One bridge

    def _bridge(
        self, bdf: str, port: str, numa: int, below: Callable[[], Mapping[str, Node]], leads_to: Function | None = None
    ) -> Folder:
        primary = int(bdf.split(":")[1], 16)
        secondary = int(leads_to.bdf.split(":")[1], 16) if leads_to else primary + 1
        last = secondary if leads_to else 0xFE
        slot = leads_to.slot if leads_to else None

        def children() -> Mapping[str, Node]:
            config = bridge_config(BRIDGE, port, primary=primary, secondary=secondary, last=last, slot=slot)
            return {
                **self._identity(BRIDGE, bdf, "pcieport"),
                "numa_node": _text(numa),
                "local_cpulist": _text(self._cpus(numa)),
                "irq": _text(24 + primary),
                "resource": _lines("0x0000000000000000 0x0000000000000000 0x0000000000000000" for _ in range(17)),
                "config": File(lambda: config, size=SIZE),
                "driver": Link(_up(bdf, self._depth(port)) + "bus/pci/drivers/pcieport"),
                "subsystem": Link(_up(bdf, self._depth(port)) + "bus/pci"),
                "secondary_bus_number": _text(secondary),
                "subordinate_bus_number": _text(last),
                "rescan": File(_nothing, WRITABLE, self._rescan(bdf)),
                **below(),
            }

        return Folder(children, leads_to=below)

    def _depth(self, port: str) -> int:
        return {"root": 3, "upstream": 4, "downstream": 5, "endpoint": 6}[port]

    # One device

    def _device(self, function: Function) -> Mapping[str, Node]:
        card, bdf, root = function.card, function.bdf, _up(function.bdf, self._depth("endpoint"))
        bars = self._bars(function)
        config = (
            ONES
            if function.lost
            else endpoint_config(
                card, bars, irq=irq_of(function), bound=bool(function.bound), serial=function.device.serial
            )
        )
        files: dict[str, Node] = {
            **self._identity(card, bdf, function.bound),
            "numa_node": _text(function.numa_node),
            "local_cpulist": _text(self._cpus(function.numa_node)),
            "irq": _text(irq_of(function)),
            "resource": _lines(_resource(card, bars)),
            "config": File(lambda: config, 0o644, size=SIZE),
            "current_link_speed": _text(_SPEEDS[card.gen]),
            "max_link_speed": _text(_SPEEDS[card.gen]),
            "current_link_width": _text(card.width),
            "max_link_width": _text(card.width),
            "driver_override": File(
                lambda: f"{function.driver_override or '(null)'}\n".encode(), 0o644, self._override(bdf)
            ),
            "enable": _text(1 if function.bound else 0),
            "subsystem": Link(root + "bus/pci"),
            "iommu_group": Link(root + f"kernel/iommu_groups/{function.slot}"),
            "reset": File(_nothing, WRITABLE, self._reset(function)),
            "remove": File(_nothing, WRITABLE, self._remove(bdf)),
            "rescan": File(_nothing, WRITABLE, self._rescan(function.bridge)),
            "vpd": File(lambda: _vpd(function), 0o600),
        }
        if card.virtual_functions:
            files |= {"sriov_totalvfs": _text(card.virtual_functions), "sriov_numvfs": _text(0)}
        files |= {f"resource{n}": File(_nothing, 0o600, size=size) for n, size, _ in card.bars}
        if function.bound:
            files["driver"] = Link(root + f"bus/pci/drivers/{function.bound}")
        return files

    def _identity(self, card: Card, bdf: str, driver: str) -> dict[str, Node]:
        return {
            "vendor": _text(f"0x{card.vendor:04x}"),
            "device": _text(f"0x{card.device:04x}"),
            "class": _text(f"0x{card.pci_class:06x}"),
            "subsystem_vendor": _text(f"0x{card.subsystem_vendor:04x}"),
            "subsystem_device": _text(f"0x{card.subsystem_device:04x}"),
            "revision": _text(f"0x{card.revision:02x}"),
            "modalias": _text(card.modalias),
            "uevent": _lines(_uevent(card, bdf, driver)),
        }

    def _bars(self, function: Function) -> tuple[int, ...]:
        domain, bus, _ = function.bdf.split(":")
        window = _MMIO + (int(domain, 16) << 48) + (int(bus, 16) << 40)
        low = 0x9000_0000 + (int(bus, 16) << 25 & 0x3FFF_FFFF)
        starts, at = [], window
        for _, size, wide in function.card.bars:
            if not wide:
                starts.append(low)
                continue
            at = (at + size - 1) // size * size
            starts.append(at)
            at += size
        return tuple(starts)

    def _cpus(self, numa: int) -> str:
        half = max(self._host.spec.cpus // 2, 1)
        return f"{numa * half}-{numa * half + half - 1}"

    # Slots and drivers

    def _slots(self) -> Mapping[str, Node]:
        return {str(f.slot): self._slot(f) for f in self._host.functions() if f.plugged}

    def _slot(self, function: Function) -> Folder:
        def switch(text: str, now_s: float) -> PendingAction:
            return self._operator.power(function.slot, parse_switch(text), now_s)

        return Folder(
            lambda: {
                "address": _text(function.bdf.rpartition(".")[0]),
                "power": File(lambda: b"%d\n" % function.powered, 0o644, switch),
                "adapter": _text(int(function.link)),
                "latch": _text(int(function.plugged)),
                "attention": _text(0),
                "cur_bus_speed": _text(_SPEEDS[function.card.gen]),
                "max_bus_speed": _text(_SPEEDS[function.card.gen]),
            }
        )

    def _drivers(self) -> Mapping[str, Node]:
        bound: dict[str, list[str]] = {name: [] for name in ALWAYS_THERE}
        for function in self._shown():
            bound.setdefault(function.card.driver, [])
            bound.setdefault(function.takes, [])
            if function.bound:
                bound.setdefault(function.bound, []).append(function.bdf)
        ports = {bdf: path for function in self._host.functions() for bdf, path in _above(function)}
        paths = {f.bdf: device_path(f) for f in self._shown()} | ports
        bound["pcieport"] = sorted(ports)
        return {name: self._driver(name, {bdf: paths[bdf] for bdf in bdfs}) for name, bdfs in sorted(bound.items())}

    def _driver(self, name: str, bound: Mapping[str, str]) -> Folder:
        def bind(text: str, now_s: float) -> PendingAction:
            return self._operator.bind(text.strip(), now_s, name)

        def unbind(text: str, now_s: float) -> PendingAction:
            return self._operator.unbind(text.strip(), now_s, name)

        links = {bdf: Link(f"../../../../devices/{path}") for bdf, path in bound.items()}
        switches = {"bind": File(_nothing, WRITABLE, bind), "unbind": File(_nothing, WRITABLE, unbind)}
        return Folder(lambda: {**links, **(switches if name != "pcieport" else {})})

    # Writes

    def _remove(self, bdf: str) -> Callable[[str, float], PendingAction]:
        def write(text: str, now_s: float) -> PendingAction:
            if not parse_switch(text):
                return _no_action("remove")
            return self._operator.remove(bdf, now_s)

        return write

    def _rescan(self, below: str | None) -> Callable[[str, float], PendingAction]:
        def write(text: str, now_s: float) -> PendingAction:
            if not parse_switch(text):
                return _no_action("rescan")
            return self._operator.rescan(now_s, below)

        return write

    def _reset(self, function: Function) -> Callable[[str, float], PendingAction]:
        def write(text: str, now_s: float) -> PendingAction:
            if not parse_switch(text):
                raise BadWrite("must be 1")
            return _no_action(f"reset of {function.bdf}")

        return write

    def _override(self, bdf: str) -> Callable[[str, float], PendingAction]:
        return lambda text, now_s: self._operator.override(bdf, text.strip(), now_s)


_SPEEDS = {1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}


def device_path(function: Function) -> str:
    """Where a device lies below ``/sys/devices``."""
    root, upstream, bridge = bridges_above(function)
    return f"pci{root.partition(':')[0]}:00/{root}/{upstream}/{bridge}/{function.bdf}"


def _above(function: Function) -> list[tuple[str, str]]:
    parts = device_path(function).split("/")
    return [(parts[n], "/".join(parts[: n + 1])) for n in (1, 2, 3)]


def _up(bdf: str, depth: int) -> str:
    """From a folder that deep below ``/sys`` up to it."""
    return "../" * depth


def _text(value: object) -> File:
    content = f"{value}\n".encode()
    return File(lambda: content)


def _lines(lines: object) -> File:
    content = "".join(f"{line}\n" for line in lines).encode()  # type: ignore[attr-defined]
    return File(lambda: content)


def _nothing() -> bytes:
    return b""


def _no_action(what: str) -> PendingAction:
    return PendingAction(what, lambda: True, lambda: None, done=True)


def _resource(card: Card, bars: tuple[int, ...]) -> list[str]:
    """Start, end and flags of BARs 0 to 5, the ROM and the windows: 13 lines."""
    rows = [(0, 0, 0)] * 13
    for (number, size, wide), start in zip(card.bars, bars, strict=True):
        rows[number] = (start, start + size - 1, 0x14220C if wide else 0x40200)
    return [f"0x{start:016x} 0x{end:016x} 0x{flags:016x}" for start, end, flags in rows]


def _uevent(card: Card, bdf: str, driver: str) -> list[str]:
    return [
        *([f"DRIVER={driver}"] if driver else []),
        f"PCI_CLASS={card.pci_class:X}",
        f"PCI_ID={card.vendor:04X}:{card.device:04X}",
        f"PCI_SUBSYS_ID={card.subsystem_vendor:04X}:{card.subsystem_device:04X}",
        f"PCI_SLOT_NAME={bdf}",
        f"MODALIAS={card.modalias}",
    ]


def _vpd(function: Function) -> bytes:
    """Vital product data (PCI 3.0 appendix I): the name, and of the read-only part the serial number (SN) and, in the
    vendor's field V0, the unique ID that the chassis lists (assumed)."""
    name = function.device.model.encode()
    fields = b""
    for key, value in ((b"SN", function.device.serial), (b"V0", function.device.uuid)):
        content = value.encode()[:255]
        fields += key + bytes([len(content)]) + content
    return (
        b"\x82"
        + len(name).to_bytes(2, "little")
        + name
        + b"\x90"
        + len(fields).to_bytes(2, "little")
        + fields
        + b"\x78"
    )
