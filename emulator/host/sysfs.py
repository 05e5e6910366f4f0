"""``/sys``: PCI devices, bridges, slots and drivers of a host (contract host.md section 2; Documentation/ABI/testing/
sysfs-bus-pci of the Linux kernel)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mews.emulator.hardware.addresses import Bridge, ports_path, root_of
from mews.emulator.hardware.cards import BRIDGE, VIRTUAL, VIRTUAL_OFFSET, VIRTUAL_STRIDE, Card
from mews.emulator.host.config_space import ONES, SIZE, bridge_config, endpoint_config
from mews.emulator.host.dmi import dmi_folder
from mews.emulator.host.entries import File, Folder, Link, MadeNodes, Node
from mews.emulator.host.errors import BadWriteError
from mews.emulator.host.function import Function
from mews.emulator.host.host import Host
from mews.emulator.host.operator import HostOperator, parse_switch
from mews.emulator.host.pending import PendingAction
from mews.emulator.host.proc import irq_of
from mews.emulator.host.rdma import rdma_classes, rdma_folders

WRITABLE = 0o200
ALWAYS_THERE = ("nvidia",)
"""Drivers whose modules are loaded though they have no device."""

VIRTUAL_GROUPS = 1_000_000
"""IOMMU groups of virtual functions are numbered from here on."""

DEVICES_DEPTH = 2
"""``devices/pciDDDD:BB`` below ``/sys``."""

_MMIO = 0x38_0000_0000_00
"""Where BARs begin; each bus has a window of its own of a terabyte."""


Way = tuple[Bridge, ...]
"""The bridges from the root down to one."""


class Sysfs:
    """The files of one host's PCI."""

    def __init__(self, host: Host, operator: HostOperator) -> None:
        self._host = host
        self._operator = operator
        self._of_bridges = self._bridge_files()
        self._of_devices = self._device_files()

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
        classes = Folder(lambda: {"dmi": dmi_folder(self._host.spec), **rdma_classes(self._host)})
        return Folder(lambda: {"bus": bus, "class": classes, "devices": Folder(self._roots), "kernel": kernel})

    # Who is there

    def _ways(self) -> list[Way]:
        """Return the ports from the root down to each device, and to each switch of the server itself."""
        return [*self._host.bus.own_switches, *(f.above for f in self._host.bus.functions())]

    def _ports(self) -> dict[str, str]:
        """Return every port, and where it lies below ``/sys/devices``."""
        return {way[n].bdf: ports_path(way[: n + 1]) for way in self._ways() for n in range(len(way))}

    def _device_links(self) -> Mapping[str, Node]:
        links: dict[str, Node] = {bdf: Link(f"../../../devices/{path}") for bdf, path in self._ports().items()}
        links |= {f.bdf: Link(f"../../../devices/{f.path}") for f in self._host.bus.on_bus()}
        return links

    def _roots(self) -> Mapping[str, Node]:
        roots = {root_of(way) for way in self._ways()}
        return {name: Folder(lambda name=name: self._root(name)) for name in sorted(roots)}  # type: ignore[misc]

    def _root(self, name: str) -> Mapping[str, Node]:
        return self._bridges([way for way in self._ways() if root_of(way) == name], ())

    def _bridges(self, ways: list[Way], above: Way) -> dict[str, Node]:
        """Return the ports right below others, of those on these ways."""
        depth = len(above)
        nearer = {way[: depth + 1]: None for way in ways if len(way) > depth and way[:depth] == above}
        return {way[-1].bdf: self._bridge(way) for way in sorted(nearer, key=lambda way: way[-1].bdf)}

    def _groups(self) -> Mapping[str, Node]:
        def group(function: Function) -> Folder:
            link = Link(f"../../../../devices/{function.path}")
            return Folder(lambda: {"devices": Folder(lambda: {function.bdf: link}), "type": _text("DMA-FQ")})

        return {str(_group(f)): group(f) for f in self._host.bus.on_bus()}

    # One bridge

    def _bridge(self, way: Way) -> Folder:
        def below() -> Mapping[str, Node]:
            ports = self._bridges(self._ways(), way)
            found = [f for f in self._host.bus.on_bus() if f.above == way]
            return {**ports, **{f.bdf: Folder(lambda f=f: self._device(f)) for f in found}}  # type: ignore[misc]

        def children() -> Mapping[str, Node]:
            return MadeNodes(self._of_bridges, way, below)

        return Folder(children, leads_to=below)

    def _bridge_files(self) -> Mapping[str, Callable[[Way], Node]]:
        def root(way: Way) -> str:
            return "../" * (len(way) + DEVICES_DEPTH)

        return {
            **{name: _of_bridge(make) for name, make in _IDENTITY.items()},
            "numa_node": lambda way: _text(way[-1].numa_node),
            "local_cpulist": lambda way: _text(self._host.cpus_near(way[-1].numa_node)),
            "irq": lambda way: _text(24 + _primary(way)),
            "resource": lambda way: _lines(
                "0x0000000000000000 0x0000000000000000 0x0000000000000000" for _ in range(17)
            ),
            "config": lambda way: File(lambda: self._bridge_config(way), size=SIZE),
            "driver": lambda way: Link(root(way) + "bus/pci/drivers/pcieport"),
            "subsystem": lambda way: Link(root(way) + "bus/pci"),
            "secondary_bus_number": lambda way: _text(way[-1].secondary),
            "subordinate_bus_number": lambda way: _text(way[-1].last),
            "rescan": lambda way: File(_nothing, WRITABLE, self._rescan(way[-1].bdf)),
        }

    def _bridge_config(self, way: Way) -> bytes:
        one = way[-1]
        slot = next((f.slot for f in self._host.bus.functions() if f.above == way), None)
        return bridge_config(BRIDGE, one.port, primary=_primary(way), secondary=one.secondary, last=one.last, slot=slot)

    # One device

    def _device(self, function: Function) -> Mapping[str, Node]:
        return MadeNodes(self._of_devices, function, lambda: self._some_devices(function))

    def _device_files(self) -> Mapping[str, Callable[[Function], Node]]:
        """Return what every device has."""
        return {
            **{name: _of_device(make) for name, make in _IDENTITY.items()},
            "numa_node": lambda f: _text(f.numa_node),
            "local_cpulist": lambda f: _text(self._host.cpus_near(f.numa_node)),
            "irq": lambda f: _text(irq_of(f)),
            "resource": lambda f: _lines(_resource(f.card, self._bars(f))),
            "config": lambda f: File(lambda: self._config(f), 0o644, size=SIZE),
            "current_link_speed": lambda f: _text(_SPEEDS[f.card.gen]),
            "max_link_speed": lambda f: _text(_SPEEDS[f.card.gen]),
            "current_link_width": lambda f: _text(f.card.width),
            "max_link_width": lambda f: _text(f.card.width),
            "driver_override": lambda f: File(
                lambda: f"{f.driver_override or '(null)'}\n".encode(), 0o644, self._override(f.bdf)
            ),
            "enable": lambda f: _text(1 if f.bound else 0),
            "subsystem": lambda f: Link(_root(f) + "bus/pci"),
            "iommu_group": lambda f: Link(_root(f) + f"kernel/iommu_groups/{_group(f)}"),
            "reset": lambda f: File(_nothing, WRITABLE, self._reset(f)),
            "remove": lambda f: File(_nothing, WRITABLE, self._remove(f.bdf)),
            "rescan": lambda f: File(_nothing, WRITABLE, self._rescan(f.bridge)),
        }

    def _some_devices(self, function: Function) -> dict[str, Node]:
        """Return what only some have."""
        files: dict[str, Node] = {**self._sharing(function), **rdma_folders(function)}
        if function.physical is None:
            files["vpd"] = File(lambda: _vpd(function), 0o600)
        files |= {f"resource{n}": File(_nothing, 0o600, size=size) for n, size, _ in function.card.bars}
        if function.bound:
            files["driver"] = Link(_root(function) + f"bus/pci/drivers/{function.bound}")
        return files

    def _config(self, function: Function) -> bytes:
        if function.lost:
            return ONES
        return endpoint_config(
            function.card,
            self._bars(function),
            irq=irq_of(function),
            bound=bool(function.bound),
            serial=function.device.serial,
            virtual=len(function.virtual),
        )

    def _sharing(self, function: Function) -> dict[str, Node]:
        """Return what a physical function says of its virtual ones, and these of it
        (Documentation/PCI/pci-iov-howto)."""
        if function.physical is not None:
            return {"physfn": Link(f"../{function.physical.bdf}")}
        if not function.card.virtual_functions:
            return {}
        made = VIRTUAL.get(function.card.driver)
        came = [(place, one) for place, one in enumerate(function.virtual) if one.has_function]
        return {
            "sriov_totalvfs": _text(function.card.virtual_functions),
            "sriov_numvfs": File(lambda: b"%d\n" % len(function.virtual), 0o644, self._set_virtual(function.bdf)),
            "sriov_drivers_autoprobe": File(
                lambda: b"%d\n" % function.autoprobe, 0o644, self._set_autoprobe(function.bdf)
            ),
            **({"sriov_vf_device": _text(f"{made.device:x}")} if made else {}),
            "sriov_offset": _text(VIRTUAL_OFFSET),
            "sriov_stride": _text(VIRTUAL_STRIDE),
            **{f"virtfn{place}": Link(f"../{one.bdf}") for place, one in came},
        }

    def _bars(self, function: Function) -> tuple[int, ...]:
        domain, bus, own = function.bdf.split(":")
        window = _MMIO + (int(domain, 16) << 48) + (int(bus, 16) << 40) + (_number(own) << 30)
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

    # Slots and drivers

    def _slots(self) -> Mapping[str, Node]:
        return {str(f.slot): self._slot(f) for f in self._host.bus.functions() if f.plugged}

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
        for function in self._host.bus.on_bus():
            bound.setdefault(function.card.driver, [])
            bound.setdefault(function.takes, [])
            if function.bound:
                bound.setdefault(function.bound, []).append(function.bdf)
        ports = self._ports()
        paths = {f.bdf: f.path for f in self._host.bus.on_bus()} | ports
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
                raise BadWriteError("must be 1")
            return _no_action(f"reset of {function.bdf}")

        return write

    def _set_virtual(self, bdf: str) -> Callable[[str, float], PendingAction]:
        def write(text: str, now_s: float) -> PendingAction:
            if not (text.strip().isascii() and text.strip().isdecimal()):
                raise BadWriteError(f"{text.strip()[:40]!r}: must be a number")
            return self._operator.set_virtual(bdf, int(text.strip()[:10]), now_s)

        return write

    def _set_autoprobe(self, bdf: str) -> Callable[[str, float], PendingAction]:
        return lambda text, now_s: self._operator.set_autoprobe(bdf, parse_switch(text), now_s)

    def _override(self, bdf: str) -> Callable[[str, float], PendingAction]:
        return lambda text, now_s: self._operator.override(bdf, text.strip(), now_s)


_SPEEDS = {1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe"}


_IDENTITY: Mapping[str, Callable[[Card, str, str], Node]] = {
    "vendor": lambda card, bdf, driver: _text(f"0x{card.vendor:04x}"),
    "device": lambda card, bdf, driver: _text(f"0x{card.device:04x}"),
    "class": lambda card, bdf, driver: _text(f"0x{card.pci_class:06x}"),
    "subsystem_vendor": lambda card, bdf, driver: _text(f"0x{card.subsystem_vendor:04x}"),
    "subsystem_device": lambda card, bdf, driver: _text(f"0x{card.subsystem_device:04x}"),
    "revision": lambda card, bdf, driver: _text(f"0x{card.revision:02x}"),
    "modalias": lambda card, bdf, driver: _text(card.modalias),
    "uevent": lambda card, bdf, driver: _lines(_uevent(card, bdf, driver)),
}
"""What a card, its address and its driver say of bridges and devices alike."""


def _of_bridge(make: Callable[[Card, str, str], Node]) -> Callable[[Way], Node]:
    return lambda way: make(BRIDGE, way[-1].bdf, "pcieport")


def _of_device(make: Callable[[Card, str, str], Node]) -> Callable[[Function], Node]:
    return lambda function: make(function.card, function.bdf, function.bound)


def _primary(way: Way) -> int:
    """Return the bus that the last bridge of the way is on."""
    return int(way[-1].bdf.split(":")[1], 16)


def _root(function: Function) -> str:
    """Return it from the device's folder to ``/sys``."""
    return "../" * (len(function.above) + 1 + DEVICES_DEPTH)


def _number(own: str) -> int:
    """Device and function of an address, as one number."""
    device, _, function = own.partition(".")
    return int(device, 16) << 3 | int(function)


def _group(function: Function) -> int:
    """Return the IOMMU group: each function is alone in its own."""
    if function.physical is None:
        return function.slot
    return VIRTUAL_GROUPS + 256 * function.slot + _number(function.bdf.split(":")[2])


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
