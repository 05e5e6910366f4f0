"""The device lookup table as a dialect shows it, and what every dialect can do with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec import Struct, field


class ListedDevice(Struct, frozen=True):
    """A device; ``port`` is None while it is free."""

    uuid: str
    port: str | None


def port_text(port: str | None) -> str:
    """``port '1'`` or ``no port``."""
    return "no port" if port is None else f"port {port!r}"


class ListedTable(Struct, frozen=True):
    """One listing: rows by device, the host ports that it names, and devices that it has more than once (``twice``)."""

    rows: Mapping[str, ListedDevice]
    ports: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()

    def port(self, device: str) -> str | None:
        """Return where a device is; None where it is free or not listed."""
        row = self.rows.get(device)
        return None if row is None else row.port

    def likely_ports(self) -> tuple[str, ...]:
        """Host ports, those that hold devices first: something is surely cabled to them."""
        held = {row.port: None for row in self.rows.values() if row.port is not None}
        return tuple(dict.fromkeys((*held, *self.ports)))


def more_than_once(names: Iterable[str]) -> tuple[str, ...]:
    """Return those that are there twice or more often."""
    return tuple(name for name, times in Counter(names).items() if times > 1)


class Limits(Struct, frozen=True):
    """How long to wait, in seconds of this machine's time. A quirk profile may give others.

    The first three are the longest that were measured on real Falcon 4005 boxes (contract chassis.md 2: 18.20, 13.38,
    8.82), rounded up; ``settle``: a listing shows a change after that at the latest (there: about 5 s); ``outage``: a
    chassis that does not answer is back after that; ``quiet``: a write without an answer has taken effect by then.
    """

    attach_s: float = 20.0
    detach_s: float = 15.0
    read_s: float = 10.0
    settle_s: float = 6.0
    outage_s: float = 120.0
    quiet_s: float = 20.0


class Units(Struct, frozen=True):
    """What the devices of a chassis are called, where that is another vendor's: the form of a ``uuid`` (a regular
    expression; that of NVML by default), the PCI ``vendor`` and ``class_code``, and Redfish's ``processor`` type."""

    uuid: str = ""
    vendor: str = "0x10de"
    class_code: str = "0x030200"
    processor: str = "GPU"


class Versions(Struct, frozen=True):
    """What the chassis says about itself: its ``service`` (name -> value), and schema -> version."""

    service: Mapping[str, str] = field(default_factory=dict)
    schemas: Mapping[str, str] = field(default_factory=dict)


class TableClient(Protocol):
    """One dialect's way to the table. All of them raise NoAnswerError, HttpServerError and MalformedError.

    A client may have ``content_types``, those that its moves can be sent in, with ``content_type``, the one that they
    are sent in; ``call(device, port)``, the request that moves a device, as one would type it; and
    ``detach_again(device, port)``, where ``detach`` sends nothing for a device that is free: as from that port.
    """

    def read(self) -> ListedTable:
        """Return the listing."""
        ...

    def attach(self, device: str, port: str) -> bool:
        """Ask for a device to be put on a port; what the answer claims."""
        ...

    def detach(self, device: str) -> bool:
        """Ask for a device to be taken off its port; what the answer claims."""
        ...

    def versions(self) -> Versions:
        """Return what the chassis says about itself."""
        ...

    def close(self) -> None:
        """Leave nothing behind, such as a session."""
        ...
