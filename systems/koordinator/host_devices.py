"""The PCI devices of a host as sysfs shows them: where they are, what they are, and their virtual functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mews.kube.system.files import FileTree
from mews.kube.system.vital_product_data import vendor_field
from mews.systems.koordinator.devices import DevicePlace, NodeVirtualFunction

PCI = "sys/bus/pci/devices"
_CPUS = "sys/devices/system/cpu"
_BRIDGES = "0x0604"
_GONE = b"\xff\xff"
_NOWHERE = DevicePlace()
_NODES = {"infiniband_verbs": "/dev/infiniband/", "infiniband_mad": "/dev/infiniband/"}
"""A folder of the device's -> where the device nodes that it names are."""


@dataclass(frozen=True, slots=True)
class HostDevice:
    """One physical PCI function. ``pci_class`` and ``vendor`` as sysfs writes them (``0x120000``, ``0x10ee``);
    ``driver`` is "" without one; ``classes``: the device classes that it has a folder of (``infiniband``);
    ``alive``: it has a driver and its configuration space answers; ``nodes``: its device nodes, and
    ``function_nodes`` those of its virtual functions, by their bus addresses."""

    bus: str
    vendor: str = ""
    pci_class: str = ""
    driver: str = ""
    id: str = ""
    place: DevicePlace = _NOWHERE
    classes: tuple[str, ...] = ()
    functions: tuple[NodeVirtualFunction, ...] = ()
    alive: bool = True
    nodes: tuple[str, ...] = ()
    function_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


class HostDevices:
    """Reads the devices of one host. What stays the same while the same functions are on the bus is read once."""

    def __init__(self, files: FileTree) -> None:
        self._files = files
        self._names: tuple[str, ...] | None = None
        self._found: dict[str, HostDevice] = {}

    async def read(self) -> tuple[HostDevice, ...]:
        """Return all physical functions but bridges, in order of bus address; () for a host without PCI.

        Raises OSError.
        """
        try:
            names = tuple(await self._files.names(PCI))
        except FileNotFoundError:
            return ()
        if names != self._names:
            self._found = {}
            for bus in names:
                device = await self._device(bus)
                if device is not None:
                    self._found[bus] = device
            self._names = names
        return tuple([await self._now(device) for device in self._found.values()])

    async def _device(self, bus: str) -> HostDevice | None:
        pci_class = await self._text(f"{PCI}/{bus}/class")
        folder = await self._names_in(f"{PCI}/{bus}")
        if pci_class.startswith(_BRIDGES) or "physfn" in folder:
            return None
        return HostDevice(
            bus=bus,
            vendor=await self._text(f"{PCI}/{bus}/vendor"),
            pci_class=pci_class,
            id=await self._id(bus),
            place=await self._place(bus),
            functions=await self._functions(bus, folder),
        )

    async def _now(self, device: HostDevice) -> HostDevice:
        """Return what a driver's coming or going changes."""
        below = f"{PCI}/{device.bus}"
        folder = await self._names_in(below)
        uevent = await self._text(f"{below}/uevent")
        driver = next((line[7:] for line in uevent.splitlines() if line.startswith("DRIVER=")), "")
        config = await self._bytes(f"{below}/config")
        function_nodes = {}
        for function in device.functions:
            own = f"{PCI}/{function.bus}"
            function_nodes[function.bus] = await self._nodes(own, await self._names_in(own))
        return replace(
            device,
            driver=driver,
            classes=tuple(name for name in folder if name in ("infiniband", "net", "drm", "block")),
            alive=bool(driver) and config[:2] not in (_GONE, b""),
            nodes=await self._nodes(below, folder),
            function_nodes=function_nodes,
        )

    async def _nodes(self, below: str, folder: Sequence[str]) -> tuple[str, ...]:
        found = []
        for kind, root in _NODES.items():
            if kind in folder:
                found += [f"{root}{name}" for name in await self._names_in(f"{below}/{kind}")]
        return tuple(sorted(found))

    async def _functions(self, bus: str, folder: Sequence[str]) -> tuple[NodeVirtualFunction, ...]:
        numbers = sorted(int(name[6:]) for name in folder if name.startswith("virtfn") and name[6:].isdecimal())
        found = []
        for number in numbers:
            target = await self._files.target(f"{PCI}/{bus}/virtfn{number}")
            found.append(NodeVirtualFunction(number, target.rpartition("/")[2]))
        return tuple(found)

    async def _id(self, bus: str) -> str:
        return vendor_field(await self._bytes(f"{PCI}/{bus}/vpd"))

    async def _place(self, bus: str) -> DevicePlace:
        parts = (await self._files.target(f"{PCI}/{bus}")).split("/")
        path = parts[parts.index("devices") + 1 :]
        numa = _number(await self._text(f"{PCI}/{bus}/numa_node"))
        socket = await self._socket(await self._text(f"{PCI}/{bus}/local_cpulist"))
        return DevicePlace(socket, numa, pcie_of(path), bus)

    async def _socket(self, cpus: str) -> int:
        """Return the socket of the first processor nearby; -1, as koordlet writes, where the host does not say."""
        first = cpus.split(",")[0].split("-")[0]
        if not first.isdecimal():
            return -1
        return _number(await self._text(f"{_CPUS}/cpu{first}/topology/physical_package_id"))

    async def _text(self, path: str) -> str:
        return (await self._bytes(path)).decode("utf-8", "replace").strip()

    async def _bytes(self, path: str) -> bytes:
        """Return a file's content, b"" where it is not there (any more) or may not be read."""
        try:
            return await self._files.read(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return b""

    async def _names_in(self, path: str) -> Sequence[str]:
        try:
            return await self._files.names(path)
        except (FileNotFoundError, NotADirectoryError):
            return ()


def pcie_of(path: Sequence[str]) -> str:
    """Return the switch that a device is below, by its folders from the root complex down: the topmost one's upper
    port, so that adapters and GPUs on the parts of one switch are near; the root complex itself where there is none."""
    return path[2] if len(path) > 3 else path[0]


def sysfs_address(bus: str) -> str:
    """Return a bus address of NVML's (``00000000:3B:00.0``) as sysfs writes it (``0000:3b:00.0``)."""
    domain, _, rest = bus.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else bus.lower()


def by_bus(devices: Sequence[HostDevice]) -> Mapping[str, HostDevice]:
    """Return the same by bus address."""
    return {device.bus: device for device in devices}


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1
