"""Which of a host's PCI devices are of which type: rules as data, so that a new kind of device needs no code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from mews.systems.koordinator.errors import KoordinatorConfigError
from mews.systems.koordinator.host_devices import HostDevice
from mews.systems.koordinator.names import DOMAIN, FPGA, GPU, GPU_NAMES, RDMA

NVIDIA_VENDOR = "0x10de"


class DeviceKind(Struct, frozen=True):
    """Devices of one ``type``, of which a healthy one is ``resource`` 100: all that have what is said here.
    ``pci_class`` and ``vendor`` begin as sysfs writes them; ``device_class`` is a folder of its (``infiniband``)."""

    type: str
    pci_class: str = ""
    vendor: str = ""
    driver: str = ""
    device_class: str = ""
    resource: str = ""

    @property
    def resource_name(self) -> str:
        """The resource on the node: by the type, where nothing else is said."""
        return self.resource or DOMAIN + self.type

    def matches(self, device: HostDevice) -> bool:
        """Return whether the device is of this kind."""
        return (
            device.pci_class.startswith(self.pci_class)
            and device.vendor.startswith(self.vendor)
            and self.driver in ("", device.driver)
            and (not self.device_class or self.device_class in device.classes)
        )


KINDS = (
    DeviceKind(RDMA, device_class="infiniband"),
    DeviceKind(FPGA, pci_class="0x1200", vendor="0x10ee"),
    DeviceKind(FPGA, pci_class="0x1200", driver="dfl-pci"),
)
"""What is known without being told: whatever speaks RDMA; cards of Xilinx, and Intel's FPGAs by their driver."""


def kinds_of(given: Iterable[Mapping[str, Any]], where: str = "kinds") -> tuple[DeviceKind, ...]:
    """Return the kinds of a configuration, before those that are known.

    Raises KoordinatorConfigError, one line.
    """
    known = [field.name for field in fields(DeviceKind)]
    found = []
    for number, each in enumerate(given):
        at = f"{where}[{number}]"
        if not isinstance(each, Mapping) or not set(each) <= set(known):
            raise KoordinatorConfigError(f"{at}: must be a mapping of {', '.join(known)}")
        kind = DeviceKind(**{name: str(value) for name, value in each.items()} | {"type": str(each.get("type", ""))})
        if not kind.type.isalnum() or kind.type == GPU:
            raise KoordinatorConfigError(f"{at}.type: {kind.type!r}: must be letters and digits, and not {GPU}")
        if not (kind.pci_class or kind.vendor or kind.driver or kind.device_class):
            raise KoordinatorConfigError(f"{at}: must say pci_class, vendor, driver or device_class")
        domain, _, name = kind.resource_name.partition("/")
        if not domain or not name or kind.resource_name in GPU_NAMES:
            raise KoordinatorConfigError(f"{at}.resource: {kind.resource!r}: must be DOMAIN/NAME, and no GPU's")
        found.append(kind)
    return (*found, *KINDS)


def kind_of(device: HostDevice, kinds: Iterable[DeviceKind]) -> DeviceKind | None:
    """Return the first kind that it is of; None for one that nobody reports. GPUs are NVML's business."""
    if device.vendor == NVIDIA_VENDOR and device.pci_class.startswith("0x03"):
        return None
    return next((kind for kind in kinds if kind.matches(device)), None)
